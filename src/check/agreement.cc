#include "check/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/element_types.h"
#include "ops/eval.h"

namespace lamina::checking {
namespace {

std::string shape_of(const Tensor& t) { return fmt::format("[{}]", fmt::join(t.shape(), ",")); }

std::string why_not_comparable(const Tensor& got, const Tensor& stored) {
  if (!got.valid() || !stored.valid()) return "there is no such output";
  if (got.shape() != stored.shape())
    return fmt::format("its shape is {}, stored is {}", shape_of(got), shape_of(stored));
  if (is_float(got.element_type()) != is_float(stored.element_type()))
    return fmt::format("its element type is {}, stored is {}", name_of(got.element_type()),
                       name_of(stored.element_type()));
  return {};
}

}  // namespace

Dims place_of(std::size_t index, const Dims& shape) {
  Dims out(shape.size(), 0);
  for (std::size_t i = shape.size(); i-- > 0;) {
    out[i] = static_cast<std::int64_t>(index % static_cast<std::size_t>(shape[i]));
    index /= static_cast<std::size_t>(shape[i]);
  }
  return out;
}

Agreement measured(const Pairs& p, bool detections) {
  Agreement out;
  const auto d = differences(p);
  out.count = d.size();
  out.snr = decibel(rms_of(d), rms_of(p.b));
  double ab = 0, aa = 0, bb = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (std::fabs(d[i]) > out.largest) out.largest = std::fabs(d[i]), where = i;
    if (!both_finite(p.a[i], p.b[i])) continue;
    ab += p.a[i] * p.b[i], aa += p.a[i] * p.a[i], bb += p.b[i] * p.b[i];
  }
  out.cosine = aa == bb && aa == 0 ? 1 : aa * bb > 0 ? ab / std::sqrt(aa) / std::sqrt(bb) : 0;
  if (!detections && !d.empty()) out.where = place_of(where, p.shape);
  if (!detections) out.ranking = ranking_of(p);
  return out;
}

std::size_t count_mismatches(const Tensor& a, const Tensor& b) {
  std::size_t out = 0;
  with_number_type(a.element_type(), [&]<class T>() {
    const auto x = to_numbers<T>(a.to_aligned()), y = to_numbers<T>(b.to_aligned());
    // NaN is the same as NaN.
    for (std::size_t i = 0; i < x.size(); ++i) out += x[i] != y[i] && (x[i] == x[i] || y[i] == y[i]);
  });
  return out;
}

Agreement agreement(const Tensor& got, const Tensor& stored, bool detections) {
  Agreement out;
  out.fault = why_not_comparable(got, stored);
  if (!out.ok()) return out;
  if (is_float(got.element_type())) return measured(pairs_of(got, stored, detections), detections);
  out = measured(pairs_of(got, stored, false), false);
  out.integers = true;
  out.ranking.reset();
  out.mismatches = count_mismatches(got, stored);
  return out;
}

std::string to_string(const Agreement& a) {
  std::vector<std::string> parts;
  if (a.count == 0 && !a.ok()) return a.fault;
  if (a.integers && a.allowed == 0) {
    parts.push_back(a.mismatches ? fmt::format("{} of {} values differ", a.mismatches, a.count) : "the same");
    if (a.loss && a.loss->largest == 0)
      parts.push_back("scores there are as good");
    else if (a.loss)
      parts.push_back(fmt::format("a score there is worse by {:.3g} ({:.3g} or less is right)",
                                  a.loss->largest, a.loss->allowed));
  } else {
    auto snr = std::isinf(a.snr) ? std::string(a.snr > 0 ? "the same" : "0 was expected throughout")
                                 : fmt::format("{:.1f} dB", a.snr);
    if (std::isfinite(a.snr) && a.wanted_snr != 0)
      snr += fmt::format(" ({:.1f} or more is right)", a.wanted_snr);
    parts.push_back(snr);
    if (a.ranking) {
      const auto& r = *a.ranking;
      if (r.rows == 1)
        parts.push_back(r.top1   ? "top-1 and top-5 agree"
                        : r.top5 ? "top-1 differs, top-5 agrees"
                                 : "top-1 and top-5 differ");
      else
        parts.push_back(fmt::format("top-1 agrees in {} and top-5 in {} of {} rows", r.top1, r.top5, r.rows));
    }
    if (a.largest > 0) {
      auto largest = fmt::format("largest error {:.3g}", a.largest);
      if (!a.where.empty()) largest += fmt::format(" at [{}]", fmt::join(a.where, ","));
      if (a.allowed != 0) largest += fmt::format(" ({:.3g} or less is right)", a.allowed);
      parts.push_back(largest);
    }
  }
  auto out = fmt::format("{}", fmt::join(parts, ", "));
  return a.ok() ? out : out + ": " + a.fault;
}

}  // namespace lamina::checking
