#include "quantise/drift.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/eval.h"

namespace lamina {

void Drift::add(const Tensor& exact, const Tensor& other) {
  if (exact.shape() != other.shape()) {  // how many boxes a detector finds, say
    not_comparable_ += std::max(exact.size(), other.size());
    return;
  }
  const auto a = to_doubles(exact), b = to_doubles(other);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      ++(same ? not_finite_ : not_comparable_);
      continue;
    }
    const double difference = std::fabs(a[i] - b[i]);
    ++count_;
    signal_ += a[i] * a[i];
    noise_ += difference * difference;
    sum_ += difference;
    max_ = std::max(max_, difference);
  }
}

double Drift::mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }

double Drift::relative() const {
  constexpr auto kInfinite = std::numeric_limits<double>::infinity();
  if (not_comparable_) return kInfinite;
  if (noise_ == 0) return 0;
  return signal_ == 0 ? kInfinite : std::sqrt(noise_ / signal_);
}

double Drift::sqnr() const { return -20 * std::log10(relative()); }

}  // namespace lamina
