/// The public functions of lamina/draw.h.
#include "lamina/draw.h"

#include <filesystem>
#include <map>

#include "api/at_work.h"
#include "api/inside.h"
#include "api/limit_checks.h"
#include "api/preparing.h"
#include "api/resolve.h"
#include "api/rewrite_model.h"
#include "base/cpu.h"
#include "base/guard.h"
#include "base/table_text.h"
#include "base/text.h"
#include "base/users_calls.h"
#include "draw/graph_draw.h"
#include "draw/rewrite_report.h"
#include "explain/drawing_plan.h"

namespace lamina {
namespace {

constexpr std::string_view kWhat = "the drawing";

std::string with_count(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// The title and notes of a page, which stand in its first drawing.
void describe_page(Drawing& first, const LoadedModel& model, const std::string& what) {
  const auto file = std::filesystem::path(model.path()).filename().string();
  first.title = fmt::format("{}: {}", file, what);
  first.notes.push_back(format_text(model.loaded()));
  for (const auto& u : model.unsupported()) first.notes.push_back("unsupported: " + u);
}

/// The graph with the shapes of these inputs, all of the model's or none.
Graph with_shapes_of(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (inputs.empty()) return graph;
  if (inputs.size() != graph.inputs().size())
    fail(ErrorCode::bad_input, "{} given, the model has {}", with_count(inputs.size(), "input"),
         graph.inputs().size());
  Graph g = graph;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto v = g.inputs()[i];
    const auto type = g.type(v);
    const auto shape = Shape::of(inputs[i].shape());
    if (type.element != inputs[i].element_type() || !type.shape.fits(shape))
      fail(ErrorCode::bad_input, "input \"{}\" is {}, not {}", g.value(v).name, to_string(type),
           to_string(TensorType{inputs[i].element_type(), shape}));
    g.set_type(v, {type.element, shape});
  }
  g.infer_types();
  return g;
}

std::vector<Drawing> original_drawing(const LoadedModel& model, const std::vector<Tensor>& inputs) {
  const auto graph = with_shapes_of(model.loaded().graph, inputs);
  std::vector<Drawing> out{drawing_of_file(graph, graph.sources)};
  const auto layers = out[0].nodes.size() - graph.inputs().size() - graph.results().size();
  describe_page(out[0], model, fmt::format("original, {}", with_count(layers, "node")));
  return out;
}

/// `settings`: with the precision decided.
std::vector<Drawing> optimized_drawings(const LoadedModel& model, const Settings& settings,
                                        const Machine& machine, const Logger& log,
                                        const DrawOptions& options) {
  const auto original = with_shapes_of(model.loaded().graph, options.inputs);
  const auto rewritten = rewrite_model(original, settings, machine, log, model.rules());
  for (const auto& note : precision_sentences(settings)) log.info("{}", note);
  tell(rewritten.facts, log);
  const auto& optimized = rewritten.model.graph;
  const auto was = original.node_count(), is = optimized.node_count();
  std::map<NodeId, std::size_t> before, after;
  std::vector<Drawing> out;
  if (options.stage == DrawStage::optimized) {
    out.push_back(drawing_of(optimized, &after));
    describe_page(out[0], model, fmt::format("optimized, {} of {} left", is, with_count(was, "node")));
    return out;
  }
  out.push_back(drawing_of_file(original, original.sources, &before));
  out.push_back(drawing_of(optimized, &after));
  match({out[0], original, before}, {out[1], optimized, after}, rewritten.ledger);
  describe_page(out[0], model, fmt::format("{} before, {} after optimisation", with_count(was, "node"), is));
  out[0].notes.push_back("Nodes with the same number and colour belong together; dashed ones were removed.");
  out[0].heading = "original";
  out[1].heading = "optimized";
  return out;
}

std::vector<Drawing> runtime_drawing(const CompiledModel& model, const DrawOptions& options) {
  const auto& compiled = Inside::of(model);
  if (options.inputs.size() != model.inputs().size())
    fail(ErrorCode::bad_input, "the stage runtime runs on {}, and {} given",
         with_count(model.inputs().size(), "input"), options.inputs.size());
  auto request = model.create_request();
  request.set_profile(true);
  for (std::size_t i = 0; i < options.inputs.size(); ++i) request.set_input(i, options.inputs[i]);
  const auto profile = profile_runs(request, options.seconds, options.stop);
  std::vector<Drawing> out{drawing_of(profile.plans(), &profile)};
  std::size_t steps = 0;
  double arena = 0;
  for (const auto& plan : profile.plans()) {
    steps += plan->steps.size();
    arena += static_cast<double>(plan->memory.arena);
  }
  describe_page(out[0], compiled.model(), fmt::format("{} at run time", with_count(steps, "step")));
  out[0].notes.push_back(
      fmt::format("{:.3f} ms, mean of {} runs; {}, {}, {}; tensors {}, packed weights {}",
                  profile.whole() / 1000, profile.runs(), processor_name(), name_of(effective_isa()),
                  with_count(static_cast<std::size_t>(compiled.threads()), "thread"), human_bytes(arena),
                  human_bytes(static_cast<double>(model.weight_memory()))));
  return out;
}

std::string drawing_text(const std::vector<Drawing>& drawings, const DrawOptions& options) {
  const PageOptions page{options.columns, 1.4};
  switch (options.format) {
    case DrawFormat::dot:
      return to_dot(drawings);
    case DrawFormat::html:
      return to_html(drawings, page);
    case DrawFormat::svg:
      break;
  }
  return to_svg(drawings, page);
}

/// A drawing of what does not run, within the limits. `make`: gives the drawings.
template <class Make>
std::string still_drawing(const WorkBounds& bounds, const ModelLimits& limits, const DrawOptions& options,
                          const Make& make) {
  const AtWork here;
  const TokenSignal stop(options.stop);
  return run_stoppable(preparing_rules(kWhat, stop, limits), [&] {
    stop_point();
    const Within within(&bounds);
    return drawing_text(make(), options);
  });
}

void check_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > 86400)
    fail(ErrorCode::bad_option, "{} seconds of measuring, wanted 0 to 86400", seconds);
}

std::string draw_compiled(const CompiledModel& model, const DrawOptions& options) {
  check_seconds(options.seconds);
  const auto& compiled = Inside::of(model);
  if (options.stage == DrawStage::runtime) return drawing_text(runtime_drawing(model, options), options);
  return still_drawing(compiled.bounds(), compiled.options().limits, options, [&] {
    if (options.stage == DrawStage::original) return original_drawing(compiled.model(), options.inputs);
    auto settings = compiled.settings();
    settings.options.progress = of_user(options.progress);
    return optimized_drawings(compiled.model(), settings, compiled.program()->machine(), Logger(), options);
  });
}

std::string draw_model(const Model& model, const Options& how, DrawOptions options) {
  check_seconds(options.seconds);
  if (!options.progress) options.progress = how.progress;
  if (!options.stop.stop_possible()) options.stop = how.stop;
  if (options.stage == DrawStage::runtime) {
    auto compiling = how;
    compiling.progress = options.progress;
    compiling.stop = options.stop;
    return draw_compiled(CompiledModel(model, compiling), options);
  }
  const auto& loaded = Inside::of(model);
  const auto bounds = bounds_of(how.limits, loaded.bounds().given, loaded.bounds().memory);
  return still_drawing(bounds, how.limits, options, [&] {
    if (options.stage == DrawStage::original) return original_drawing(loaded, options.inputs);
    Settings settings{.options = how};
    settings.options.progress = of_user(options.progress);
    decide_precision(settings, host());
    settings.placement.threads = threads_to_compile(settings.options);
    const Logger log(settings.options.log, LogLevel::debug);
    return optimized_drawings(loaded, settings, host(), log, options);
  });
}

}  // namespace

DrawStage draw_stage_named(std::string_view name) {
  return guarded("draw_stage_named", [&] {
    if (name == "original" || name == "before") return DrawStage::original;
    if (name == "optimized" || name == "after") return DrawStage::optimized;
    if (name == "both") return DrawStage::both;
    if (name == "runtime") return DrawStage::runtime;
    fail(ErrorCode::bad_option,
         "stage \"{}\", wanted original (or before), optimized (or after), both or runtime", name);
  });
}

DrawFormat draw_format_named(std::string_view name) {
  return guarded("draw_format_named", [&] {
    if (name == "svg") return DrawFormat::svg;
    if (name == "html") return DrawFormat::html;
    if (name == "dot") return DrawFormat::dot;
    fail(ErrorCode::bad_option, "format \"{}\", wanted svg, html or dot", name);
  });
}

std::string draw(const Model& model, const Options& options, const DrawOptions& draw_options) {
  return guarded("draw", [&] { return draw_model(model, options, draw_options); });
}

std::string draw(const CompiledModel& model, const DrawOptions& draw_options) {
  return guarded("draw", [&] { return draw_compiled(model, draw_options); });
}

}  // namespace lamina
