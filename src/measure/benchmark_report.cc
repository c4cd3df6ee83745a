/// The document about a measurement.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/guard.h"
#include "base/json_text.h"
#include "base/text.h"
#include "lamina/benchmark.h"

namespace lamina {
namespace {

using nlohmann::json;

json json_of(const std::vector<Property>& properties) {
  auto out = json::object();
  for (const auto& p : properties)
    out[p.key] = {{"value", p.value}, {"asked", p.asked}, {"reason", p.reason}, {"read_only", p.read_only}};
  return out;
}

json json_of(const BenchmarkMemory& m) {
  return {{"now_mb", m.now},
          {"packed_weights_mb", m.packed_weights},
          {"read_weights_mb", m.read_weights},
          {"tensors_mb", m.tensors},
          {"tensors_sum_mb", m.tensors_sum},
          {"tensors_live_mb", m.tensors_live},
          {"model_file_mb", m.model_file},
          {"code_mb", m.code},
          {"libraries_mb", m.libraries},
          {"rest_mb", m.rest}};
}

json json_of(const LoadPhases& p) {
  return {{"read", p.read},
          {"optimize", p.optimize},
          {"plan", p.plan},
          {"pack", p.pack},
          {"first_inference", p.first_inference}};
}

json latency_of(const Latencies& l) {
  if (l.ms.empty()) return nullptr;
  return {{"min", l.min()}, {"median", l.percentile(50)}, {"mean", l.mean()}, {"max", l.max()}};
}

json json_of(const GroupLatencies& g) {
  return {{"name", g.name},
          {"batch", g.batch},
          {"count", g.latencies.ms.size()},
          {"latency_ms", latency_of(g.latencies)}};
}

json json_of(const MeasuredLayer& l) {
  json out{{"name", l.name},     {"operator", l.op},         {"kernel", l.kernel},
           {"layout", l.layout}, {"precision", l.precision}, {"us", l.microseconds},
           {"share", l.share},   {"flops", l.flops},         {"bytes", l.bytes}};
  if (l.microseconds > 0) {
    out["gflops"] = l.flops / l.microseconds / 1e3;
    out["gbs"] = l.bytes / l.microseconds / 1e3;
    out["limit"] = {{"share", l.limit}, {"by", l.compute ? "compute" : "memory"}};
  }
  return out;
}

void add_layers(json& to, const MeasuredLayers& m) {
  auto& layers = to["layers"] = json::array();
  for (const auto& l : m.layers) layers.push_back(json_of(l));
  layers.push_back({{"name", "(overhead)"}, {"kernel", ""}, {"us", m.overhead}});
  to["profile"] = {
      {"us", m.whole.microseconds}, {"runs", m.runs}, {"flops", m.whole.flops}, {"bytes", m.whole.bytes}};
  auto& kernels = to["kernels"] = json::array();
  for (const auto& k : m.kernels)
    kernels.push_back({{"kernel", k.kernel}, {"count", k.count}, {"us", k.microseconds}, {"limit", k.limit}});
  auto rates = json::array();
  for (const auto& [bytes, rate] : m.machine.bandwidth)
    rates.push_back({{"bytes", bytes}, {"gbs", rate * 1e-9}});
  to["machine"] = {{"threads", m.machine.threads}, {"gflops", m.machine.flops * 1e-9}, {"bandwidth", rates}};
}

json document_of(const BenchmarkReport& r) {
  const auto& l = r.latencies;
  json out{{"model", r.model},
           {"precision", r.precision},
           {"precision_used", r.precision_used},
           {"precision_layers", r.precision_layers},
           {"precision_reason", r.precision_reason},
           {"threads", r.threads()},
           {"streams", r.streams},
           {"requests", r.requests},
           {"threads_per_stream", r.threads_per_stream},
           {"stream_cpus", r.stream_cpus},
           {"isa", r.isa},
           {"processor", r.processor},
           {"latency_ms",
            {{"min", l.min()},
             {"median", l.percentile(50)},
             {"mean", l.mean()},
             {"p90", l.percentile(90)},
             {"p99", l.percentile(99)},
             {"max", l.max()}}},
           {"throughput_fps", r.throughput()},
           {"batch", r.groups.empty() ? 1 : r.groups[0].batch},
           {"load_ms", r.load_ms},
           {"first_inference_ms", r.first_inference_ms},
           {"loaded_from_cache", r.loaded_from_cache},
           {"load_phases_ms", json_of(r.load_phases)},
           {"memory", json_of(r.memory)},
           {"before_mb", r.memory.before},
           {"peak_rss_mb", r.memory.peak},
           {"arena_mb", r.memory.tensors},
           {"weights_mb", r.memory.packed_weights},
           {"count", l.ms.size()},
           {"interrupted", r.interrupted},
           {"properties", json_of(r.properties)}};
  for (const auto& p : r.properties)
    if (p.key == "CPU_BIND_THREAD") out["binding"] = p.value;
  if (r.percentile != 50)
    out["latency_ms"][fmt::format("percentile_{}", r.percentile)] = l.percentile(r.percentile);
  for (std::size_t g = 0; g < r.groups.size() && r.groups.size() > 1; ++g)
    out["groups"].push_back(json_of(r.groups[g]));
  if (r.layers) add_layers(out, *r.layers);
  return out;
}

}  // namespace

std::string BenchmarkReport::json() const {
  return guarded("BenchmarkReport::json", [&] { return json_text(document_of(*this)); });
}

}  // namespace lamina
