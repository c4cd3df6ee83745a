/// What `lamina benchmark` measures: a model read, compiled and warm.
#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "tool/benchmark.h"
#include "tool/input_groups.h"
#include "tool/layouts.h"
#include "tool/preprocessing.h"
#include "tool/reshape.h"
#include "tool/session.h"

namespace lamina::tool {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

/// The layout of images, as benchmark_app guesses it; else unknown.
std::string layout_by_rank(const Dims& d) {
  if (d.size() != 4) return "...";
  if (d[1] == 3 || d[1] == 1) return "N,C,H,W";
  return d[3] == 3 || d[3] == 1 ? "N,H,W,C" : "...";
}

/// "    x (node: x) : f32 / [N,C,H,W] / [1,3,64,64]"; `layouts`: of inputs, where nothing is said it is
/// guessed.
void say_ports(const Steps& steps, const char* title, const std::vector<Port>& ports,
               const Layouts* layouts = nullptr, const InputGroup* group = nullptr) {
  steps.info(title);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& p = ports[i];
    std::string shape;
    const bool known = group && i < group->inputs.size();
    const auto& dims = known ? group->inputs[i].shape() : p.shape;
    for (const auto d : dims) shape += (shape.empty() ? "" : ",") + (d < 0 ? "?" : std::to_string(d));
    const auto letters = layouts ? layouts->of(p.name) : "";
    const auto layout = !layouts          ? "..."
                        : letters.empty() ? layout_by_rank(dims)
                                          : fmt::format("{}", fmt::join(letters, ","));
    steps.info(fmt::format("    {} (node: {}) : {} / [{}] / [{}]", p.name, p.name, name_of(p.type), layout,
                           p.ranked || known ? shape : "..."));
  }
}

/// Says what is done to the shapes of inputs.
Model reshaped_model(const Model& file, const BenchmarkCommand& o, const Steps& steps) {
  const auto begin = Clock::now();
  std::vector<std::string> said;
  auto model = reshaped(file, o, &said);
  for (const auto& line : said) steps.note(line);
  if (!said.empty())
    steps.info(fmt::format("Reshape model took {:.2f} ms", milliseconds(begin, Clock::now())));
  return model;
}

/// Why the cache folder is not used; empty if it is.
std::string why_not_kept(const BenchmarkCommand& o, const Options& options, const Model& model) {
  if (has_preprocessing(o)) return "a model with other element types, means or scales is not cached";
  if (model.is_compiled()) return "the model is compiled already";
  if (!o.runtime_graph.empty())
    return o.typed("--runtime-graph", "-exec_graph_path") + " needs data that cached models do not hold";
  return options.keep_weights ? "KEEP_WEIGHTS needs the original weights, which cached models do not hold"
                              : "";
}

/// Options that keep enough plans, so that none of the groups, which run in turn, is planned again.
Options with_plans(Options options, std::size_t groups) {
  const Options usual;
  if (!options.given.contains("CACHED_PLANS") && options.cached_plans == usual.cached_plans)
    options.cached_plans = std::min<std::size_t>(usual.cached_plans * groups, 1000);
  return options;
}

/// Steps 4 to 6: the first look at the file, which maps it only, says what inputs there are. Inputs are read
/// before the model, so that their memory counts to what was there before.
Options look(const BenchmarkCommand& o, Options options, const Steps& steps, Subject& l) {
  steps.step(4);
  steps.info("Loading model files");
  const auto begin = Clock::now();
  const Model file(o.common.model, o.common.reading());
  for (const auto& warning : file.warnings()) options.log(LogLevel::warning, warning);
  if (o.from_file)
    steps.info("Skipping the step for loading model from file");
  else
    steps.info(fmt::format("Read model took {:.2f} ms", milliseconds(begin, Clock::now())));
  steps.info("Original model I/O parameters:");
  const Layouts layouts(o.inputs.image.layout, file.inputs());
  say_ports(steps, "Model inputs:", file.inputs(), &layouts);
  say_ports(steps, "Model outputs:", file.outputs());
  steps.step(5);
  const auto model = with_preprocessing(reshaped_model(file, o, steps), o);
  if (const auto why = why_not_kept(o, options, model); !options.cache_dir.empty() && !why.empty()) {
    const auto cdir = o.typed("CACHE_DIR", "CACHE_DIR");
    steps.warn(fmt::format("{}CACHE_DIR has no effect: {}", cdir == "CACHE_DIR" ? "" : cdir + ": ", why));
  }
  // Without a measurement no data is needed, and sizes may stay open.
  if (o.only_compiles())
    l.groups.push_back({{}, std::max(o.inputs.batch, 1), ""});
  else
    l.groups = gather_groups(o, model, steps, l.notes);
  steps.info(fmt::format("Model batch size: {}", l.groups[0].batch));
  steps.step(6);
  say_ports(steps, "Model inputs:", model.inputs(), &layouts, l.groups.data());
  say_ports(steps, "Model outputs:", model.outputs());
  options = with_plans(std::move(options), l.groups.size());
  if (o.common.tune && !o.only_compiles())
    options = tuned_options(o.common, model, std::move(options), l.groups[0].inputs);
  l.outputs = model.outputs();
  return options;
}

}  // namespace

Subject load(const BenchmarkCommand& o, Options options, const Steps& steps) {
  Subject l;
  options = look(o, std::move(options), steps, l);
  steps.step(7);
  l.before_mb = resident_mb();
  const auto begin = Clock::now();
  Progress progress("loading " + o.common.model, o.common);
  const auto model = with_preprocessing(reshaped(Model(o.common.model, o.common.reading()), o), o);
  const auto read = Clock::now();
  options.progress = progress.callback();
  l.compiled.emplace(model, options);
  const auto ready = Clock::now();
  const LoadTimes load{milliseconds(begin, read), milliseconds(read, ready), l.before_mb};
  l.load_ms = load.read_ms + load.compile_ms;
  // Without a measurement there are no inputs.
  if (!o.only_compiles()) l.benchmark.emplace(*l.compiled, l.groups, load);
  l.read_ms = o.from_file ? 0 : load.read_ms;
  l.compile_ms = o.from_file ? l.load_ms : load.compile_ms;
  steps.info(fmt::format("Compile model took {:.2f} ms", l.compile_ms));
  return l;
}

}  // namespace lamina::tool
