/// lamina benchmark: latency, throughput, load time, memory, layer by layer.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/inside.h"
#include "base/atomic_file.h"
#include "base/cpu.h"
#include "base/error.h"
#include "tool/benchmark.h"
#include "tool/interrupt.h"
#include "tool/layer_table.h"
#include "tool/process_memory.h"
#include "tool/properties.h"
#include "tool/runtime_graph.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

/// What is in memory, in MiB; kinds that add up to what is resident now.
nlohmann::json memory_of(const BenchmarkOptions& o, const Subject& l) {
  constexpr double kMiB = 1048576;
  const auto process = process_memory(o.common.model);
  double constants = 0, sum = 0, live = 0;
  std::set<const void*> seen;
  for (const auto& plan : Inside::runner_of(*l.request).plans()) {
    sum += static_cast<double>(plan->memory.sum);
    live = std::max(live, static_cast<double>(plan->memory.live));
    for (const auto& t : plan->tensors)
      if (t.place == Place::constant && seen.insert(t.constant.raw()).second)
        constants += static_cast<double>(t.constant.bytes());
  }
  const auto packed = static_cast<double>(l.compiled->weight_memory());
  const auto arena = static_cast<double>(l.request->memory());
  return {{"now_mb", process.whole() / kMiB},
          {"packed_weights_mb", packed / kMiB},
          {"read_weights_mb", constants / kMiB},
          {"tensors_mb", arena / kMiB},
          {"tensors_sum_mb", sum / kMiB},
          {"tensors_live_mb", live / kMiB},
          {"model_file_mb", process.model / kMiB},
          {"code_mb", process.code / kMiB},
          {"libraries_mb", process.libraries / kMiB},
          {"rest_mb", std::max(0.0, process.rest - packed - arena) / kMiB}};
}

void print_memory(const Common& c, const Subject& l, const nlohmann::json& m) {
  const auto mb = [&](const char* key) { return m[key].get<double>(); };
  c.say(
      "memory      peak {:.1f} MiB (before the model {:.1f}); now {:.1f}: packed weights {:.1f}, tensors "
      "{:.1f}, model file "
      "{:.1f}, generated code {:.1f}, libraries {:.1f}, rest {:.1f}",
      peak_resident_mb(), l.before_mb, mb("now_mb"), mb("packed_weights_mb"), mb("tensors_mb"),
      mb("model_file_mb"), mb("code_mb"), mb("libraries_mb"), mb("rest_mb"));
  c.say(
      "tensors     {:.2f} MiB in the arena; {:.2f} if none shared memory, {:.2f} alive at once at most; "
      "weights that "
      "kernels read {:.2f}",
      mb("tensors_mb"), mb("tensors_sum_mb"), mb("tensors_live_mb"), mb("read_weights_mb"));
}

/// What the command line says of streams, as options say it.
Options with_streams(const BenchmarkOptions& o) {
  auto options = o.common.options();
  if (o.hint == "latency") options.hint = PerformanceHint::latency;
  if (o.hint == "throughput" || o.hint == "tput") options.hint = PerformanceHint::throughput;
  if (o.hint == "cumulative_throughput" || o.hint == "ctput")
    options.hint = PerformanceHint::cumulative_throughput;
  if (o.hint == "none") options.hint = PerformanceHint::none;
  if (o.streams >= 0) options.streams = o.streams;
  if (o.requests > 0 && options.hint_requests == 0)
    options.hint_requests = static_cast<std::size_t>(o.requests);
  return options;
}

/// Streams as they were made, and requests in flight.
struct Traffic {
  int streams, each, requests;
  int threads() const { return std::max(streams, 1) * each; }
};

Traffic traffic_of(const BenchmarkOptions& o, const CompiledModel& compiled) {
  const auto best = static_cast<int>(compiled.optimal_requests());
  return {compiled.streams(), compiled.threads(), o.api == "sync" ? 1 : o.requests > 0 ? o.requests : best};
}

/// Settings as they are used, and the processors of each stream.
void add_settings(nlohmann::json& j, const CompiledModel& compiled) {
  j["properties"] = to_json(compiled.properties());
  const auto& placement = Inside::of(compiled).settings().placement;
  j["stream_cpus"] = nlohmann::json::array();
  for (const auto& stream : placement.streams) j["stream_cpus"].push_back(stream.cpus);
  j["binding"] = compiled.property("CPU_BIND_THREAD");
}

void check_words(const BenchmarkOptions& o) {
  if (o.api == "sync" && o.requests > 1)
    throw UsageError(fmt::format("--api sync: one request at a time, not {} (--requests)", o.requests));
  if (o.runtime_graph == "-") throw UsageError("--runtime-graph -: wanted FILE.xml");
  if (!o.interactive) return;
  if (o.pc || o.top > 0 || !o.runtime_graph.empty() || !o.common.json.empty() || o.requests > 0 ||
      !o.api.empty())
    throw UsageError(
        "--interactive: goes without --pc, --top, --runtime-graph, --json, --requests and --api: lines on "
        "standard input say what to do");
}

nlohmann::json document_of(const BenchmarkOptions& o, const Subject& l, const Traffic& s,
                           const Latencies& latencies, double fps) {
  return {{"model", o.common.model},
          {"precision", o.common.precision == "int8" ? "model" : o.common.precision},
          {"precision_used", l.precisions().bf16() ? "bf16" : "f32"},
          {"precision_layers", l.precisions().layers},
          {"precision_reason", l.precisions().reason},
          {"threads", s.threads()},
          {"streams", s.streams},
          {"requests", s.requests},
          {"threads_per_stream", s.each},
          {"isa", name_of(effective_isa())},
          {"processor", processor_name()},
          {"latency_ms",
           {{"min", latencies.ms.front()},
            {"median", latencies.percentile(0.5)},
            {"mean", latencies.mean()},
            {"p90", latencies.percentile(0.9)},
            {"p99", latencies.percentile(0.99)},
            {"max", latencies.ms.back()}}},
          {"throughput_fps", fps},
          {"batch", l.batch},
          {"load_ms", l.load_ms},
          {"first_inference_ms", l.first_ms},
          {"loaded_from_cache", Inside::of(*l.compiled).loaded_from_cache()},
          {"load_phases_ms",
           {{"read", l.phases.read},
            {"optimize", l.phases.optimize},
            {"plan", l.phases.plan},
            {"pack", l.phases.pack},
            {"first_inference", l.phases.first_inference}}},
          {"memory", memory_of(o, l)},
          {"before_mb", l.before_mb},
          {"peak_rss_mb", peak_resident_mb()},
          {"arena_mb", static_cast<double>(l.request->memory()) / 1048576},
          {"weights_mb", static_cast<double>(l.compiled->weight_memory()) / 1048576},
          {"count", latencies.ms.size()},
          {"interrupted", interrupted() != 0}};
}

void print_figures(const Common& c, const Subject& l, const Traffic& s, const Latencies& latencies,
                   double fps) {
  c.say(
      "latency     median {:.3f} ms  (min {:.3f}, mean {:.3f}, p90 {:.3f}, p99 {:.3f}, max {:.3f}; {} runs)",
      latencies.percentile(0.5), latencies.ms.front(), latencies.mean(), latencies.percentile(0.9),
      latencies.percentile(0.99), latencies.ms.back(), latencies.ms.size());
  c.say("throughput  {:.1f} {} with {} request{} in flight on {} stream{}", fps,
        l.batch == 1 ? "inferences/s" : fmt::format("frames/s ({} in each inference)", l.batch), s.requests,
        s.requests == 1 ? "" : "s", s.streams, s.streams == 1 ? "" : "s");
  c.say(
      "load        {:.1f} ms, first inference {:.1f} ms: read {:.1f}, optimise {:.1f}, plan {:.1f}, pack "
      "{:.1f}, run {:.1f}",
      l.load_ms, l.first_ms, l.phases.read, l.phases.optimize, l.phases.plan, l.phases.pack,
      l.phases.first_inference);
}

int run_benchmark(BenchmarkOptions& o, const Until& until) {
  check_words(o);
  auto options = with_streams(o);
  o.pc = o.pc || o.top > 0;
  const bool profiled = o.pc || !o.runtime_graph.empty();
  options.profile = profiled;
  options.keep_weights = options.keep_weights || !o.runtime_graph.empty();  // it tells what rules did
  if (o.interactive) return interactive(o, options);
  auto l = load(o, options);
  const auto s = traffic_of(o, *l.compiled);
  o.common.note(l.notes);
  Latencies latencies;
  Profile profile;
  auto* const into = profiled ? &profile : nullptr;
  const Interruptible here;
  {
    Progress progress("measuring " + o.common.model, o.common.quiet);
    latencies = s.requests == 1 ? measure(*l.request, until, into)
                                : measure_at_once(*l.compiled, l.inputs, static_cast<std::size_t>(s.requests),
                                                  until, into);
  }
  if (interrupted())
    tell(fmt::format("lamina: interrupted: this is what {} run{} gave", latencies.ms.size(),
                     latencies.ms.size() == 1 ? "" : "s"));
  const double fps = latencies.per_second() * static_cast<double>(l.batch);
  auto j = document_of(o, l, s, latencies, fps);
  add_settings(j, *l.compiled);
  print_figures(o.common, l, s, latencies, fps);
  print_memory(o.common, l, j["memory"]);
  o.common.say("on          {}, {}, {} thread{}", processor_name(), name_of(effective_isa()), s.threads(),
               s.threads() == 1 ? "" : "s");
  o.common.say("precision   {}", to_string(l.precisions()));
  if (o.pc)
    report_layers(o.common, profile, measure_limits(l.compiled->threads()), static_cast<std::size_t>(o.top),
                  j);
  if (!o.runtime_graph.empty())
    write_file(o.runtime_graph, runtime_graph(std::filesystem::path(o.common.model).stem().string(),
                                              Inside::of(*l.compiled), profile));
  write_json(o.common, j);
  return interrupted() ? 128 + interrupted() : 0;
}

}  // namespace

Verb setup_benchmark(OptionSet& options) {
  auto o = std::make_shared<BenchmarkOptions>();
  o->inputs.sizes_wanted = true;
  add_model(options, o->common);
  add_input_options(options, o->inputs);
  options.choice("--hint", o->hint,
                 {"latency", "throughput", "tput", "cumulative_throughput", "ctput", "none"}, "HINT",
                 "latency: one stream per node; throughput: as many as promise most (default: one stream)");
  const auto seconds = options.number("--seconds", o->seconds, 0.0, 86400.0, "S", "How long to measure (3)");
  const auto iterations =
      options.number("--iterations", o->iterations, 1L, 100000000L, "N",
                     "How many inferences to measure; with --seconds: until both are reached");
  options.choice("--api", o->api, {"sync", "async"}, "API", "sync: one request at a time");
  options.number(
      "--requests", o->requests, 1, 1024, "N",
      "Requests in flight; latencies count from when a request is ready to run (default: streams)");
  options.number(
      "--streams", o->streams, 0, 1024, "N",
      "Requests that run at once, each on its share of the threads; 0: no threads of lamina's own");
  options.number("--batch", o->inputs.batch, 1, 65536, "N",
                 "Batch size: of all inputs whose first dimension is free");
  options.flag("--pc", o->pc, "Layer by layer (also -pc)");
  options.number("--top", o->top, 1, 1000000, "K", "Only the slowest layers; goes with --pc");
  const auto interactive = options.flag("--interactive", o->interactive, "Obey lines on standard input");
  interactive.excludes(seconds);
  interactive.excludes(iterations);
  options.text("--runtime-graph", o->runtime_graph, "FILE.xml",
               "Write what ran, with kernels and times, as an OpenVINO runtime graph that Netron opens");
  add_compile_options(options, o->common);
  add_json(options, o->common);
  return [=] {
    Until until{seconds.given() || !iterations.given() ? o->seconds : 0, 1};
    if (iterations.given()) until.runs = static_cast<std::size_t>(o->iterations);
    return run_benchmark(*o, until);
  };
}

}  // namespace lamina::tool
