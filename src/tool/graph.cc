/// lamina graph: drawings of a model.
#include <algorithm>
#include <filesystem>

#include "api/inside.h"
#include "api/resolve.h"
#include "base/atomic_file.h"
#include "base/cpu.h"
#include "base/words.h"
#include "draw/graph_draw.h"
#include "draw/rewrite_report.h"
#include "explain/drawing_plan.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct GraphOptions {
  Common common;
  InputOptions inputs;
  std::string stage = "optimized", output;
  bool compare = false;
  double seconds = 0.3;
  std::size_t columns = 0;
};

enum class Format { svg, dot, html };

Format format_of(const std::string& path) {
  const auto ending = lower_case(std::filesystem::path(path).extension().string());
  if (ending == ".svg") return Format::svg;
  if (ending == ".dot" || ending == ".gv") return Format::dot;
  if (ending == ".html" || ending == ".htm") return Format::html;
  throw UsageError(fmt::format("--output {}: wanted a name that ends with .svg, .html or .dot", path));
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string with_count(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

void describe(Drawing& p, const GraphOptions& o, const LoadedModel& model, const std::string& what) {
  p.title = fmt::format("{}: {}", file_name(o.common.model), what);
  p.notes.push_back(format_text(model.loaded()));
  for (const auto& u : model.unsupported()) p.notes.push_back("unsupported: " + u);
}

std::vector<Drawing> original(const GraphOptions& o, const LoadedModel& model) {
  const auto graph = with_shapes(model.loaded().graph, o.common);
  std::vector<Drawing> out{drawing_of_file(graph, graph.sources)};
  const auto layers = out[0].nodes.size() - graph.inputs().size() - graph.results().size();
  describe(out[0], o, model, fmt::format("original, {}", with_count(layers, "node")));
  return out;
}

std::vector<Drawing> optimized(const GraphOptions& o, const LoadedModel& model) {
  Settings settings{.options = o.common.options()};
  decide_precision(settings, host());
  settings.placement.threads = threads_to_compile(settings.options);
  const auto original = with_shapes(model.loaded().graph, o.common);
  const Logger log(settings.options.log, LogLevel::debug);
  const auto rewritten = rewrite_model(original, settings, host(), log, model.rules());
  for (const auto& note : precision_sentences(settings)) log.info("{}", note);
  tell(rewritten.facts, log);
  const auto& optimized = rewritten.model.graph;
  std::map<NodeId, std::size_t> before, after;
  std::vector<Drawing> out;
  if (o.compare) out.push_back(drawing_of_file(original, original.sources, &before));
  out.push_back(drawing_of(optimized, &after));
  const auto was = original.node_count(), is = optimized.node_count();
  if (!o.compare) {
    describe(out[0], o, model, fmt::format("optimized, {} of {} left", is, with_count(was, "node")));
    return out;
  }
  match({out[0], original, before}, {out[1], optimized, after}, rewritten.ledger);
  describe(out[0], o, model, fmt::format("{} before, {} after optimisation", with_count(was, "node"), is));
  out[0].notes.push_back("Nodes with the same number and colour belong together; dashed ones were removed.");
  out[0].heading = "original";
  out[1].heading = "optimized";
  return out;
}

std::vector<Drawing> still(const GraphOptions& o) {
  const Model model = open_model(o.common);
  const auto& loaded = Inside::of(model);
  Progress progress("drawing " + o.common.model, o.common);
  return o.compare || o.stage == "optimized" ? optimized(o, loaded) : original(o, loaded);
}

std::vector<Drawing> runtime(const GraphOptions& o) {
  auto options = o.common.options();
  options.profile = true;
  options.keep_weights = true;  // what rules did is not in the files of compiled models
  Session s(o.common, o.inputs, options);
  o.common.note(s.notes);
  const auto profile = profile_runs(s.request, o.seconds);
  std::vector<Drawing> out{drawing_of(profile.plans(), &profile)};
  std::size_t steps = 0;
  double arena = 0;
  for (const auto& plan : profile.plans()) {
    steps += plan->steps.size();
    arena += static_cast<double>(plan->memory.arena);
  }
  describe(out[0], o, Inside::of(s.model), fmt::format("{} at run time", with_count(steps, "step")));
  out[0].notes.push_back(
      fmt::format("{:.3f} ms, mean of {} runs; {}, {}, {}; tensors {}, packed weights {}",
                  profile.whole() / 1000, profile.runs(), processor_name(), name_of(effective_isa()),
                  with_count(static_cast<std::size_t>(s.impl().threads()), "thread"), human_bytes(arena),
                  human_bytes(static_cast<double>(s.compiled.weight_memory()))));
  return out;
}

int run(const GraphOptions& o, Format format) {
  std::vector<Drawing> drawings;
  if (o.stage == "runtime")
    drawings = runtime(o);
  else
    drawings = still(o);
  const DrawOptions options{o.columns, 1.4};
  write_file(o.output, format == Format::svg   ? to_svg(drawings, options)
                       : format == Format::dot ? to_dot(drawings)
                                               : to_html(drawings, options));
  return 0;
}

/// A key of --set.
bool is_of_rewriting(std::string_view key) {
  const auto bare = bare_key(key);
  return bare == "DISABLE" || bare == "EXEMPT" || bare == "STOP_AFTER";
}

/// Refuses options that have no effect on the stage or the format.
void check_words(const GraphOptions& o, const OptionSet& options, Format format) {
  const auto refuse = [&](std::initializer_list<const char*> names, const char* reason) {
    for (const auto* name : names)
      if (options.given(name)) throw UsageError(fmt::format("{}: {}", name, reason));
  };
  if (o.compare && options.given("--stage"))
    throw UsageError("--compare shows original and optimized: it cannot be combined with --stage");
  if (o.stage != "runtime")
    refuse({"--seconds", "--input", "--inputs", "--mean", "--scale", "--layout", "--color", "--fit", "--seed",
            "--threads", "--max-isa", "--precision", "--force", "--tune"},
           "needs --stage runtime: nothing is planned and nothing runs for the other stages");
  if (o.stage == "original")
    refuse({"--disable", "--exempt", "--set"},
           "cannot be combined with --stage original, which shows the model of the file");
  if (o.stage == "optimized")
    for (const auto& pair : o.common.set)
      if (!is_of_rewriting(pair.substr(0, pair.find('='))))
        throw UsageError(
            fmt::format("--set {}: needs --stage runtime: only DISABLE, EXEMPT and STOP_AFTER change "
                        "the optimised graph",
                        pair));
  if (format == Format::dot)
    refuse({"--columns"}, "needs .svg or .html: the program that draws a .dot file places its nodes");
}

}  // namespace

Verb setup_graph(OptionSet& options) {
  auto o = std::make_shared<GraphOptions>();
  add_model(options, o->common);
  options.choice(
      "--stage", o->stage, {"original", "optimized", "runtime"}, "STAGE",
      "original: as in the file; optimized: after all optimisations; runtime: as it runs, with times");
  options.flag("--compare", o->compare, "Original and optimized side by side, in matching colours");
  options.text("-o,--output", o->output, "FILE", "What to write: .svg, .html (with search and zoom) or .dot")
      .required();
  options.number("--seconds", o->seconds, 0.0, 86400.0, "S", "How long to measure for the stage runtime");
  options.number("--columns", o->columns, std::size_t{0}, std::size_t{100}, "N",
                 "Columns of long graphs; 0: as many as fit a page");
  add_input_options(options, o->inputs);
  add_compile_options(options, o->common);
  return [o, options] {
    const auto format = format_of(o->output);
    o->common.options();  // keys that are wrong are that first
    check_words(*o, options, format);
    return run(*o, format);
  };
}

}  // namespace lamina::tool
