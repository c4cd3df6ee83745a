/// lamina benchmark: latency, throughput, load time, memory, layer by layer.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/cpu.h"
#include "base/error.h"
#include "tool/benchmark_app.h"
#include "tool/device_config.h"
#include "tool/interrupt.h"
#include "tool/layer_table.h"
#include "tool/outcome.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

/// Streams as they were made, and requests in flight.
struct Traffic {
  int streams;
  std::size_t requests;
  bool sync;
};

Traffic traffic_of(const BenchmarkCommand& o, const CompiledModel& compiled) {
  const auto asked = static_cast<std::size_t>(o.requests);
  Traffic t{compiled.streams(), asked > 0 ? asked : compiled.optimal_requests(), o.api == "sync"};
  if (t.sync) t.requests = 1;
  // lamina's own form takes the shorter way with one request.
  t.sync = t.sync || (!o.app && o.api.empty() && t.requests == 1);
  return t;
}

void check_words(const BenchmarkCommand& o) {
  if (o.runtime_graph == "-") throw UsageError("--runtime-graph -: wanted FILE.xml");
  if (o.trace == "-") throw UsageError("--trace -: wanted FILE.json");
  if (!o.interactive) return;
  if (o.pc || o.top > 0 || !o.runtime_graph.empty() || !o.trace.empty() || !o.common.json.empty() ||
      o.requests > 0 || !o.api.empty() || !o.report_type.empty() || !o.pcsort.empty())
    throw UsageError(
        "--interactive: cannot be combined with --pc, --top, --runtime-graph, --trace, --json, --requests, "
        "--api and reports: standard input has the commands");
}

/// What is found now is not found after the measurement. Pipes and devices are not touched.
void check_targets(const BenchmarkCommand& o) {
  std::vector<std::string> paths{o.runtime_graph, o.trace, o.common.json};
  if (o.wants_reports()) {
    make_report_folder(o);
    paths.push_back((std::filesystem::path(o.report_folder) / "benchmark_report").string());
  }
  for (const auto& path : paths) {
    std::error_code error;
    const auto there = std::filesystem::status(path, error).type();
    using enum std::filesystem::file_type;
    if (path.empty() || path == "-") continue;
    if (there == directory) fail(ErrorCode::bad_file, "{}: it is a folder, wanted a file", path);
    if (there == not_found || there == regular) AtomicFile probe(path);
  }
}

/// Steps 1 to 3.
Options prepare(BenchmarkCommand& o, const Given& given, const Steps& steps) {
  steps.step(1);
  steps.info("Parsing input parameters");
  for (const auto& line : o.idle) steps.warn(line);
  if (!o.only_compiles()) check_targets(o);
  steps.step(2);
  steps.info(version());
  steps.info("Device info:");
  steps.info(fmt::format("CPU: {}", processor_name()));
  steps.step(3);
  auto options = settings_of(o, given, steps);
  options.log = steps.log(options.log);
  options.profile =
      options.profile || o.pc || !o.runtime_graph.empty() || !o.trace.empty() || o.wants_counters();
  if (!o.dump_config.empty()) write_device_config(o.dump_config, options);
  options.keep_weights = options.keep_weights || !o.runtime_graph.empty();  // it tells what rules did
  return options;
}

/// Steps 8 and 9, and how to measure. Iterations go up to a multiple of the requests.
BenchmarkOptions how_to_measure(BenchmarkCommand& o, const Subject& l, const Traffic& t, const Steps& steps) {
  steps.step(8);
  steps.info("Model:");
  for (const auto& p : l.compiled->properties()) steps.info(fmt::format("  {}: {}", p.key, p.value));
  steps.step(9);
  for (const auto& line : l.notes) steps.note(line);
  if (o.inference_only.empty()) o.inference_only = l.groups.size() > 1 ? "false" : "true";
  const auto requests = static_cast<long>(t.requests);
  if (o.counted && !t.sync && o.iterations % requests != 0) {
    const auto aligned = (o.iterations + requests - 1) / requests * requests;
    steps.warn(fmt::format("{}: {} iterations become {}, a multiple of {} requests",
                           o.typed("--iterations", "-niter"), o.iterations, aligned, requests));
    o.iterations = aligned;
  }
  BenchmarkOptions how;
  how.seconds = o.timed ? o.seconds : 0;
  how.iterations = o.counted ? static_cast<std::size_t>(o.iterations) : 0;
  how.api = t.sync ? BenchmarkApi::sync : BenchmarkApi::async;
  how.requests = t.requests;
  how.copy_inputs = o.inference_only == "false";
  how.warm_up = !o.no_warmup;
  how.frames_per_second = o.most_frames;
  how.percentile = o.percentile;
  how.layers = o.pc && !o.app;
  how.counters = o.wants_counters();
  how.trace = !o.trace.empty();
  how.runtime_graph = !o.runtime_graph.empty();
  return how;
}

/// What stands in brackets behind step 10.
std::string limits_of(const BenchmarkCommand& o, const Traffic& t) {
  std::string text = t.sync
                         ? "Start inference synchronously"
                         : fmt::format("Start inference asynchronously, {} inference requests", t.requests);
  if (!t.sync && !o.streams.empty()) text += fmt::format(" using {} streams for CPU", t.streams);
  text += ", limits: ";
  if (o.timed) text += fmt::format("{:.0f} ms duration", 1e3 * o.seconds);
  if (o.counted) text += fmt::format("{}{} iterations", o.timed ? ", " : "", o.iterations);
  return text;
}

/// -niter 0: the model is compiled, and that is all.
int stop_here(const BenchmarkCommand& o, const Subject& l, const Steps& steps) {
  for (const auto& line : l.notes) steps.note(line);
  if (o.pc || !o.runtime_graph.empty() || !o.trace.empty() || !o.report_type.empty() || !o.pcsort.empty())
    steps.warn(fmt::format("{} 0: nothing is measured, there is nothing to report",
                           o.typed("--iterations", "-niter")));
  if (!o.app) o.common.say("load        {:.1f} ms", l.load_ms);
  steps.info(fmt::format("The model is compiled; {} 0 measures nothing", o.typed("--iterations", "-niter")));
  write_json(o.common, {{"model", o.common.model}, {"load_ms", l.load_ms}, {"count", 0}});
  return 0;
}

/// Step 11.
void tell_outcome(const Outcome& r, const Steps& steps) {
  const auto& o = r.o;
  steps.step(11);
  if (!o.app) print_figures(r);
  if (r.report.layers) print_layers(o.common, *r.report.layers, static_cast<std::size_t>(o.top), o.pcsort);
  Writings writings;
  if (!o.runtime_graph.empty())
    writings.attempt([&] { write_file(o.runtime_graph, r.report.runtime_graph); });
  if (!o.trace.empty()) writings.attempt([&] { write_file(o.trace, r.report.trace); });
  write_reports(r, steps, writings);
  if (o.app) say_counters(r);
  if (o.app) say_closing_block(r, steps);
  writings.attempt([&] { write_json(o.common, nlohmann::json::parse(r.report.json())); });
  writings.check();
}

int run_benchmark(BenchmarkCommand& o, const Given& given) {
  check_words(o);
  const Steps steps(o.app && !o.interactive, o.common);
  const auto options = prepare(o, given, steps);
  if (o.interactive) return interactive(o, options);
  auto l = load(o, options, steps);
  if (o.only_compiles()) return stop_here(o, l, steps);
  if (!o.app && !o.no_warmup) l.warm_up();
  std::optional<Interruptible> measuring(std::in_place);
  const auto traffic = traffic_of(o, *l.compiled);
  auto how = how_to_measure(o, l, traffic, steps);
  steps.step(10, limits_of(o, traffic));
  steps.info(
      how.copy_inputs
          ? "Benchmarking in full mode (inputs filling are included in measurement loop)."
          : "Benchmarking in inference only mode (inputs filling are not included in measurement loop).");
  if (o.app && !o.no_warmup) {
    l.warm_up();
    steps.info(fmt::format("First inference took {:.2f} ms", l.first_ms));
  }
  how.stop = measuring->stop();
  how.progress = [&](std::string_view stage, double) {
    // The report may take longer than an interrupted process has.
    if (stage == "reporting") measuring.reset();
  };
  Outcome r{o, l, {}};
  {
    Progress progress("measuring " + o.common.model, o.common);
    r.report = l.benchmark->measure(how);
  }
  if (interrupted())
    tell(fmt::format("lamina: interrupted: these are the results of {} run{}", r.report.latencies.ms.size(),
                     r.report.latencies.ms.size() == 1 ? "" : "s"));
  tell_outcome(r, steps);
  return interrupted() ? 128 + interrupted() : 0;
}

void add_report_options(OptionSet& options, BenchmarkCommand& o) {
  options.choice("--report-type", o.report_type,
                 {"no_counters", "average_counters", "detailed_counters", "sort_detailed_counters"}, "TYPE",
                 "Write benchmark_report.csv, with times of layers: average_counters, detailed_counters");
  options.text("--report-folder", o.report_folder, "FOLDER", "Folder for reports (.)");
  options.flag("--json-stats", o.json_stats, "Write reports as JSON");
  options.choice(
      "--pcsort", o.pcsort, {"sort", "no_sort", "simple_sort"}, "ORDER",
      "Write benchmark_sorted_report.csv: slowest first, in the model's order, or executed ones only");
  options.flag("--pcseq", o.pcseq, "Print latencies for each data shape");
  options.number(
      "--percentile", o.percentile, 1, 100, "P",
      "Also report this percentile of the latencies; in benchmark_app's output instead of the median");
  options.text("--trace", o.trace, "FILE.json",
               "Write when each inference and each step of it ran, for Perfetto and chrome://tracing");
  options.text(
      "--runtime-graph", o.runtime_graph, "FILE.xml",
      "Write the steps that ran, with kernels and times, as an OpenVINO runtime graph, which Netron opens");
  options.text("--dump-config", o.dump_config, "FILE.json", "Write the settings that were given");
  options.text("--load-config", o.load_config, "FILE.json",
               "Settings: {\"CPU\": {\"NUM_STREAMS\": \"3\"}}; the command line wins");
}

void add_traffic_options(OptionSet& options, BenchmarkCommand& o) {
  options.choice("--api", o.api, {"sync", "async"}, "API", "sync: one request at a time");
  options.number("--requests", o.requests, 1, 1024, "N",
                 "Requests in flight; a latency begins when its request is started (default: the best number "
                 "for the streams)");
  options.text("--streams", o.streams, "N",
               "Number of streams: requests that run at the same time, each on its share of the threads; a "
               "number, AUTO or NUMA; 0: no threads of lamina's own");
  options.number("--batch", o.inputs.batch, 1, 65536, "N",
                 "Batch size: of all inputs whose first dimension, or N of --layout, is free");
  options.list("--data-shape", o.data_shape, "NAME[...][...]",
               "Shapes of data where the model or --shape leaves sizes open; several run in turn");
  options.number("--max-rate", o.most_frames, 0.0, 1e9, "FPS", "Limit the rate to so many frames per second");
  options.choice("--inference-only", o.inference_only, {"true", "false"}, "BOOL",
                 "false: inputs are copied into the request for each inference");
  options.flag("--no-warmup", o.no_warmup, "Measure the first inference, too");
  options.flag("--from-file", o.from_file, "Count reading as a part of compiling");
  options.list("--mean-values", o.mean_values, "[V,V,V]",
               "Subtracted from inputs by channel, as a layer of the model; also NAME[V,V,V],...");
  options.list("--scale-values", o.scale_values, "[V,V,V]",
               "Inputs minus the means are divided by them, likewise");
  options.list("--types", o.types, "ip=T, op=T, iop=NAME:T,...", "Element types of inputs and outputs")
      .hidden();
  options.list("--image-info", o.image_info, "NAME", "Input that is filled with the size of the images")
      .hidden();
  options.list("--made-up", o.made_up, "NAME", "Input that gets random values").hidden();
  options.list("--written", o.written, "OPTION", "").hidden();
  options.list("--idle", o.idle, "SENTENCE", "").hidden();
  options.flag("--as-benchmark-app", o.app, "").hidden();
}

/// lamina's own options beside those that were spelt as benchmark_app's.
void complete_written(BenchmarkCommand& o, const OptionSet& options) {
  for (const auto& [name, value] : options.written()) {
    const auto spelt = std::any_of(o.written.begin(), o.written.end(),
                                   [&, n = name](const auto& w) { return w.starts_with(n + " "); });
    if (!spelt && name != "--set")
      o.written.push_back(fmt::format("{} {}{}{}", name, name, value.empty() ? "" : "=", value));
  }
}

}  // namespace

Verb setup_benchmark(OptionSet& options) {
  auto o = std::make_shared<BenchmarkCommand>();
  o->inputs.layouts_of_any = true;
  o->inputs.files_in_order = true;
  add_model(options, o->common);
  add_input_options(options, o->inputs);
  options.choice("--hint", o->hint,
                 {"latency", "throughput", "tput", "cumulative_throughput", "ctput", "none"}, "HINT",
                 "latency: one stream per node; throughput: the number with the highest predicted throughput "
                 "(default: one stream)");
  const auto seconds = options.number("--seconds", o->seconds, 0.0, 86400.0, "S", "How long to measure (3)");
  const auto iterations = options.number(
      "--iterations", o->iterations, 0L, 100000000L, "N",
      "How many inferences to measure; with --seconds: until both are reached; 0: compile only");
  add_traffic_options(options, *o);
  options.flag("--pc", o->pc, "Print the time of each layer (also -pc)");
  options.number("--top", o->top, 1, 1000000, "K", "With --pc: print the slowest layers only");
  const auto interactive = options.flag("--interactive", o->interactive, "Read commands from standard input");
  interactive.excludes(seconds);
  interactive.excludes(iterations);
  add_report_options(options, *o);
  add_compile_options(options, o->common);
  add_json(options, o->common);
  options.remark(benchmark_app_help());
  return [=]() mutable {
    o->timed = seconds.given();
    o->inputs.spare_files = o->app;
    o->counted = iterations.given();
    complete_written(*o, options);
    return run_benchmark(*o, [&](const std::string& name) { return options.given(name); });
  };
}

}  // namespace lamina::tool
