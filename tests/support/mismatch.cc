#include "tests/support/mismatch.h"

#include <algorithm>
#include <cmath>

#include "check/difference.h"
#include "graph/shape.h"
#include "ops/eval.h"

namespace lamina::testing {

std::string mismatch(const Tensor& got, const Tensor& wanted, double share) {
  if (!got.valid()) return "no tensor";
  const TensorType a{got.element_type(), Shape::of(got.shape())},
      b{wanted.element_type(), Shape::of(wanted.shape())};
  if (!(a == b)) return fmt::format("{}, wanted {}", to_string(a), to_string(b));
  const bool floats = is_float(wanted.element_type());
  const auto x = to_doubles(got), y = to_doubles(wanted);
  double largest = 0;
  for (const double v : y)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  const double limit = floats ? share * checking::kOfKernels.limit(largest) : 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])) || std::fabs(x[i] - y[i]) <= limit) continue;
    return fmt::format("element {} of {}: {}, wanted {}{}", i, x.size(), x[i], y[i],
                       floats ? fmt::format(" +- {:.2g}", limit) : "");
  }
  return floats || got.same_as(wanted) ? "" : "other bytes";
}

}  // namespace lamina::testing
