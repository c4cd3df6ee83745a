#include "check/pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element_types.h"
#include "check/detections.h"
#include "ops/eval.h"

namespace lamina::checking {
namespace {

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

bool both_finite(double a, double b) { return std::isfinite(a) && std::isfinite(b); }

double decibel(double noise, double signal) {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return signal == 0 ? -std::numeric_limits<double>::infinity() : 20 * std::log10(signal / noise);
}

Pairs pairs_of(const Tensor& a, const Tensor& b, bool detections) {
  if (!detections) return {to_doubles(a.to_aligned()), to_doubles(b.to_aligned()), a.shape()};
  Pairs out;
  pair_detections(a, b, out.a, out.b);
  out.shape = {static_cast<std::int64_t>(out.a.size())};
  return out;
}

Slices slices_along(const Numbers& values, const Dims& shape, std::size_t axis) {
  const auto size = static_cast<std::size_t>(shape[axis]);
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  Slices out{values.size() / size, Numbers(size, 0)};
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) out.rms[i / inner % size] += values[i] * values[i];
  for (auto& v : out.rms) v = std::sqrt(v / static_cast<double>(out.length));
  return out;
}

double rms_of(const Numbers& values) {
  double sum = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v * v;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

double largest_of(const Numbers& values) {
  double out = 0;
  for (const double v : values)
    if (std::isfinite(v)) out = std::max(out, std::fabs(v));
  return out;
}

double mean_of(const Numbers& values) {
  double sum = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

Numbers differences(const Pairs& p) {
  Numbers out(p.a.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = both_finite(p.a[i], p.b[i]) ? p.a[i] - p.b[i] : 0;
  return out;
}

std::size_t not_finite_in_one(const Pairs& p) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < p.a.size(); ++i)
    out += !both_finite(p.a[i], p.b[i]) && !same_number(p.a[i], p.b[i]);
  return out;
}

}  // namespace lamina::checking
