#include "check/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/element_types.h"
#include "ops/eval.h"

namespace lamina::checking {
namespace {

/// True if both are the same number, or neither is a number.
template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

/// Difference of two integers, also of 64-bit ones that are equal as doubles.
template <class T>
double distance(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(a - b);
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<double>(a < b ? y - x : x - y);
}

void compare_floats(Difference& d, const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      d.mismatches += !same(a[i], b[i]);
      continue;
    }
    d.max = std::max(d.max, std::fabs(a[i] - b[i]));
    d.mean += std::fabs(a[i] - b[i]);
    d.largest = std::max(d.largest, std::fabs(b[i]));
  }
  if (!a.empty()) d.mean /= static_cast<double>(a.size());
}

}  // namespace

Difference difference(const Tensor& got, const Tensor& wanted, const Tolerance& tolerance) {
  Difference d;
  if (!got.valid() || !wanted.valid() || got.shape() != wanted.shape() ||
      is_float(got.element_type()) != is_float(wanted.element_type())) {
    d.comparable = d.within = false;
    return d;
  }
  if (!is_float(wanted.element_type())) {
    with_number_type(wanted.element_type(), [&]<class T>() {
      const auto a = to_numbers<T>(got), b = to_numbers<T>(wanted);
      for (std::size_t i = 0; i < a.size(); ++i) {
        d.mismatches += a[i] != b[i];
        d.max = std::max(d.max, distance(a[i], b[i]));
      }
    });
    d.within = d.mismatches == 0;
    return d;
  }
  compare_floats(d, to_doubles(got.to_aligned()), to_doubles(wanted.to_aligned()));
  const auto& t = is_half(wanted.element_type()) ? kOfHalf : tolerance;
  d.limit = t.limit(d.largest);
  d.within = d.mismatches == 0 && d.max <= d.limit;
  return d;
}

void grant(Difference& d, const Tensor& got, const Tensor& wanted, const std::vector<double>& slack) {
  if (d.within || !d.comparable) return;
  with_number_type(wanted.element_type(), [&]<class T>() {
    const auto a = to_numbers<T>(got.to_aligned()), b = to_numbers<T>(wanted.to_aligned());
    std::size_t undecided = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto off = distance(a[i], b[i]);
      if (same(a[i], b[i]) || off <= d.limit) continue;
      if (!(off <= d.limit + slack[i]) && !std::isinf(slack[i])) return;
      ++undecided;
    }
    d.undecided = undecided;
    d.within = true;
  });
}

std::string to_string(const Difference& d) {
  if (!d.comparable) return "other shape or type";
  if (d.within && d.undecided)
    return fmt::format(
        "largest difference {:.3g}; {} values beyond the limit of {:.3g}, each explained by rounding", d.max,
        d.undecided, d.limit);
  if (d.limit == 0 && d.within) return "the same";
  if (d.limit == 0)
    return fmt::format("{} differ, by at most {:.3g}",
                       d.mismatches ? fmt::format("{} values", d.mismatches) : "values", d.max);
  if (d.mismatches) return fmt::format("{} values not finite in one only", d.mismatches);
  return fmt::format("max {:.3g} of {:.3g} allowed, mean {:.2g}", d.max, d.limit, d.mean);
}

}  // namespace lamina::checking
