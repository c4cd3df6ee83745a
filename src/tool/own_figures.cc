/// lamina's own figures of a measurement: a document and lines.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "api/inside.h"
#include "base/cpu.h"
#include "measure/process_memory.h"
#include "tool/interrupt.h"
#include "tool/outcome.h"
#include "tool/properties.h"

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

/// Settings as they are used, and the processors of each stream.
void add_settings(nlohmann::json& j, const CompiledModel& compiled) {
  j["properties"] = to_json(compiled.properties());
  const auto& placement = Inside::of(compiled).settings().placement;
  j["stream_cpus"] = nlohmann::json::array();
  for (const auto& stream : placement.streams) j["stream_cpus"].push_back(stream.cpus);
  j["binding"] = compiled.property("CPU_BIND_THREAD");
}

nlohmann::json latency_of(const std::vector<double>& sorted) {
  if (sorted.empty()) return nullptr;
  return {{"min", sorted.front()},
          {"median", percentile_of(sorted, 0.5)},
          {"mean", mean_of(sorted)},
          {"max", sorted.back()}};
}

/// Prints latencies by shape, if there are several shapes or -pcseq was given.
void print_groups(const Outcome& r) {
  for (std::size_t g = 0; g < r.l.groups.size() && (r.o.pcseq || r.l.groups.size() > 1); ++g) {
    const auto& ms = r.latencies.groups[g];
    if (ms.empty()) continue;
    r.o.common.say("  {}. {}: median {:.3f} ms  (min {:.3f}, mean {:.3f}, max {:.3f}; {} runs)", g + 1,
                   r.l.groups[g].name, percentile_of(ms, 0.5), ms.front(), mean_of(ms), ms.back(), ms.size());
  }
}

}  // namespace

double Outcome::frames() const {
  double sum = 0;
  for (std::size_t g = 0; g < l.groups.size(); ++g)
    sum += static_cast<double>(l.groups[g].batch) * static_cast<double>(latencies.groups[g].size());
  return sum;
}

nlohmann::json document_of(const Outcome& r) {
  const auto& [o, l, s, latencies, counters] = r;
  nlohmann::json out{{"model", o.common.model},
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
                       {"median", percentile_of(latencies.ms, 0.5)},
                       {"mean", mean_of(latencies.ms)},
                       {"p90", percentile_of(latencies.ms, 0.9)},
                       {"p99", percentile_of(latencies.ms, 0.99)},
                       {"max", latencies.ms.back()}}},
                     {"throughput_fps", r.fps()},
                     {"batch", l.groups[0].batch},
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
  add_settings(out, *l.compiled);
  for (std::size_t g = 0; g < l.groups.size() && l.groups.size() > 1; ++g)
    out["groups"].push_back({{"name", l.groups[g].name},
                             {"batch", l.groups[g].batch},
                             {"count", latencies.groups[g].size()},
                             {"latency_ms", latency_of(latencies.groups[g])}});
  if (o.percentile != 50)
    out["latency_ms"][fmt::format("percentile_{}", o.percentile)] =
        percentile_of(latencies.ms, 0.01 * o.percentile);
  return out;
}

void print_figures(const Outcome& r, const nlohmann::json& document) {
  const auto& [o, l, s, latencies, counters] = r;
  const auto& c = o.common;
  c.say(
      "latency     median {:.3f} ms  (min {:.3f}, mean {:.3f}, p90 {:.3f}, p99 {:.3f}, max {:.3f}; {} runs)",
      percentile_of(latencies.ms, 0.5), latencies.ms.front(), mean_of(latencies.ms),
      percentile_of(latencies.ms, 0.9), percentile_of(latencies.ms, 0.99), latencies.ms.back(),
      latencies.ms.size());
  if (o.percentile != 50)
    c.say("            {} percentile {:.3f} ms", o.percentile,
          percentile_of(latencies.ms, 0.01 * o.percentile));
  print_groups(r);
  c.say("throughput  {:.1f} {} with {} request{} in flight on {} stream{}", r.fps(),
        l.groups.size() > 1      ? "frames/s"
        : l.groups[0].batch == 1 ? "inferences/s"
                                 : fmt::format("frames/s ({} in each inference)", l.groups[0].batch),
        s.requests, s.requests == 1 ? "" : "s", s.streams, s.streams == 1 ? "" : "s");
  c.say(
      "load        {:.1f} ms, first inference {:.1f} ms: read {:.1f}, optimise {:.1f}, plan {:.1f}, pack "
      "{:.1f}, run {:.1f}",
      l.load_ms, l.first_ms, l.phases.read, l.phases.optimize, l.phases.plan, l.phases.pack,
      l.phases.first_inference);
  print_memory(c, l, document["memory"]);
  c.say("on          {}, {}, {} thread{}", processor_name(), name_of(effective_isa()), s.threads(),
        s.threads() == 1 ? "" : "s");
  c.say("precision   {}", to_string(l.precisions()));
}

}  // namespace lamina::tool
