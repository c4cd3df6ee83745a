#include "measure/layer_rates.h"

#include <algorithm>
#include <map>

namespace lamina {
namespace {

/// How near a layer is to what the machine can do.
struct Reach {
  double share = 0;
  bool compute = false;  ///< bound by arithmetic, else by memory
};

Reach reach_of(const LayerRow& r, const MachineLimits& limits) {
  const double bytes = r.work.bytes, seconds = r.microseconds * 1e-6, rate = limits.bandwidth_at(bytes);
  if (seconds <= 0 || rate <= 0 || limits.flops <= 0) return {};
  return {limits.least_seconds(r.flops(), bytes) / seconds, r.flops() / limits.flops > bytes / rate};
}

MeasuredLayer layer_of(const LayerRow& r, double whole, const MachineLimits& limits) {
  const auto reach = reach_of(r, limits);
  MeasuredLayer out;
  out.microseconds = r.microseconds;
  out.flops = r.work.flops();
  out.bytes = r.work.bytes;
  out.limit = reach.share;
  out.compute = reach.compute;
  out.name = r.name;
  out.op = r.op;
  out.kernel = r.kernel;
  out.layout = r.layout;
  out.precision = r.precision;
  out.share = whole > 0 ? r.microseconds / whole : 0;
  return out;
}

std::vector<MeasuredKernel> totals_of(const std::vector<LayerRow>& rows, const MachineLimits& limits) {
  std::map<std::string, MeasuredKernel> by_kernel;
  for (const auto& r : rows) {
    auto& t = by_kernel[r.kernel];
    t.kernel = r.kernel;
    ++t.count;
    t.microseconds += r.microseconds;
    t.limit += 1e6 * limits.least_seconds(r.flops(), r.work.bytes);  // microseconds, until all are known
    t.flops += r.work.flops();
    t.bytes += r.work.bytes;
  }
  std::vector<MeasuredKernel> out;
  for (auto& [kernel, total] : by_kernel) {
    total.limit = total.microseconds > 0 ? total.limit / total.microseconds : 0;
    out.push_back(std::move(total));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.microseconds > b.microseconds; });
  return out;
}

}  // namespace

MeasuredLayers layers_with_rates(const Profile& profile, const MachineLimits& limits) {
  MeasuredLayers out;
  out.runs = profile.runs();
  out.whole.microseconds = profile.whole();
  const auto rows = rows_of(profile);
  double sum = 0;
  NodeWork all;
  for (const auto& r : rows) {
    out.layers.push_back(layer_of(r, profile.whole(), limits));
    sum += r.microseconds;
    all.multiply_adds += r.work.multiply_adds;
    all.others += r.work.others;
    all.bytes += r.work.bytes;
  }
  out.whole.flops = all.flops();
  out.whole.bytes = all.bytes;
  out.overhead = profile.whole() - sum;
  out.kernels = totals_of(rows, limits);
  out.machine = {limits.threads, limits.flops, limits.bandwidth};
  return out;
}

}  // namespace lamina
