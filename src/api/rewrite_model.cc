#include "api/rewrite_model.h"

#include "rules/flush_denormals.h"
#include "rules/widen_half.h"

namespace lamina {
namespace {

/// What the model's types and the option do to its precision.
void settle_precision(RewrittenModel& m, Graph& graph, Precision asked, const Logger& log) {
  m.precision_notes = widen_half(graph);
  m.widened = !m.precision_notes.empty();
  for (const auto& note : m.precision_notes) log.warning("{}", note);
  const auto note = [&](LogLevel level, const char* text) {
    m.precision_notes.emplace_back(text);
    log.log(level, "{}", text);
  };
  if (asked == Precision::bf16) note(LogLevel::warning, "bf16 is not used yet: everything runs in f32");
  if (asked == Precision::f32)
    note(LogLevel::info,
         "f32 was asked for: floating-point values are f32 and quantise steps literal anyway");
}

}  // namespace

OptimizeOptions optimize_options(const Options& options) {
  OptimizeOptions o;
  o.disable = options.disable;
  o.exempt = options.exempt;
  o.stop_after = options.stop_after;
  if (std::erase(o.disable, "all") != 0)  // beside it other names must be known, too
    for (const auto& rule : all_rules()) o.disable.push_back(rule.name);
  if (options.progress)  // tells after each set of rules
    o.after_set = [progress = options.progress, done = 0](const Graph&, std::string_view) mutable {
      progress("rewriting", ++done / (1.0 + static_cast<double>(RuleSet::chains)));
    };
  return o;
}

OptimizeOptions late_optimize_options(const Options& options) {
  auto o = optimize_options(options);
  if (o.stop_after >= 0) o.stop_after = 0;  // a limit on rewrites counts those of compiling
  return o;
}

RewrittenModel rewrite_model(Graph graph, const Options& options, const Logger& log) {
  RewrittenModel m;
  settle_precision(m, graph, options.precision.value_or(Precision::model), log);
  m.model = without_variables(std::move(graph));
  m.original = m.model.graph;
  const auto rewriting = optimize_options(options);
  for (const auto& pattern : Exemptions(rewriting.exempt).idle(m.original))
    log.warning("exempt \"{}\": fits the name of no node", pattern);
  optimize(m.model.graph, rewriting, m.ledger);
  for (const auto& [rule, count] : m.ledger.counts())
    if (count.hits) log.debug("{}: {} times", rule, count.hits);
  m.denormals = flush_denormals(m.model.graph);
  return m;
}

}  // namespace lamina
