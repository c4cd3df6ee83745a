#include "api/rewrite_model.h"

#include <algorithm>

#include "base/arena.h"
#include "rewrite/fold_budget.h"
#include "rules/flush_denormals.h"
#include "rules/narrowed.h"
#include "rules/widen_half.h"

namespace lamina {
RuleOptions optimize_options(const Options& options, std::shared_ptr<const Rules> more) {
  RuleOptions o;
  o.disable = options.disable;
  o.exempt = options.exempt;
  o.stop_after = options.stop_after;
  o.more = std::move(more);
  if (std::erase(o.disable, "all") != 0) {  // beside it other names must be known, too
    for (const auto& rule : all_rules()) o.disable.push_back(rule.name);
    for (const auto& rule : o.more ? *o.more : Rules()) o.disable.push_back(rule.name);
  }
  if (options.progress)  // tells after each set of rules
    o.after_set = [progress = options.progress, done = 0.0](const Graph&, RuleSet set) mutable {
      done = std::max(done, std::min(1.0, static_cast<double>(set) / static_cast<double>(RuleSet::chains)));
      progress("rewriting", done);
    };
  return o;
}

namespace {

/// A sentence about constants that are computed at each run; empty if there are none.
std::string not_folded(const Ledger& ledger) {
  std::size_t count = 0;
  std::string first;
  for (const auto& e : ledger.of_rule("fold-constants")) {
    if (e.kind != LedgerEntry::Kind::refused || !e.text.starts_with(kNotFolded)) continue;
    if (count++ == 0) first = e.node;
  }
  if (count == 0) return {};
  return fmt::format(
      "constants are computed at each run from {} on{}: folding them would take more work or memory than the "
      "model's weights justify (explain --why fold-constants)",
      first, count == 1 ? std::string() : fmt::format(" and {} other nodes", count - 1));
}

RuleOptions of_precision(RuleOptions o, Precision used, const Machine& machine) {
  o.machine = &machine;
  o.bf16 = used == Precision::bf16;
  o.integers = used != Precision::f32;
  return o;
}

}  // namespace

RuleOptions late_optimize_options(const Options& options, Precision used, const Machine& machine,
                                  std::shared_ptr<const Rules> more) {
  auto o = of_precision(optimize_options(options, std::move(more)), used, machine);
  if (o.bf16)
    o.narrowed = [all = std::make_shared<NarrowedConstants>()](const Tensor& t) { return (*all)(t); };
  o.folding = FoldBudget();
  if (o.stop_after >= 0) o.stop_after = 0;  // a limit on rewrites counts those of compiling
  return o;
}

void tell(const RewritingFacts& facts, const Logger& log) {
  for (const auto* notes : {&facts.widened, &facts.warnings})
    for (const auto& note : *notes) log.warning("{}", note);
}

RewrittenModel rewrite_model(Graph graph, const Settings& settings, const Machine& machine, const Logger& log,
                             std::shared_ptr<const Rules> more, RewriteObserver* observer) {
  RewrittenModel m;
  m.facts.widened = widen_half(graph);
  m.model = without_variables(std::move(graph));
  m.original = m.model.graph;
  auto rewriting =
      of_precision(optimize_options(settings.options, std::move(more)), settings.precision, machine);
  rewriting.last = RuleSet::chains;  // types are a matter of plans
  rewriting.observer = observer;
  for (const auto& pattern : Exemptions(rewriting.exempt).idle(m.original))
    m.facts.warnings.push_back(fmt::format("exempt \"{}\": matches the name of no node", pattern));
  on_threads(settings.placement.threads, [&] {
    optimize(m.model.graph, rewriting, m.ledger);
    m.facts.denormals = flush_denormals(m.model.graph);
  });
  for (const auto& [rule, why] : m.ledger.stopped())
    m.facts.warnings.push_back(fmt::format("{}; it is left out", why));
  if (auto note = not_folded(m.ledger); !note.empty()) m.facts.warnings.push_back(std::move(note));
  for (const auto& [rule, count] : m.ledger.counts())
    if (count.hits) log.debug("{}: {} times", rule, count.hits);
  return m;
}

}  // namespace lamina
