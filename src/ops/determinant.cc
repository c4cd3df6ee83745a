#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/cancellation.h"
#include "ops/matmul.h"

namespace lamina {

void Determinant::infer(InferContext& c) const {
  c.require(is_float(c.element(0)) || c.element(0) == ElementType::undefined, "x is of {}, wanted floats",
            name_of(c.element(0)));
  const auto& shape = c.shape(0);
  if (!shape.ranked()) return c.set(0, c.element(0), Shape());
  const auto rank = shape.rank();
  c.require(rank >= 2 && shape[rank - 1].fits(shape[rank - 2]), "x has shape {}, wanted square matrices",
            to_string(shape));
  std::vector<Dim> out;
  for (std::size_t i = 0; i + 2 < rank; ++i) out.push_back(shape[i]);
  c.set(0, c.element(0), Shape(std::move(out)));
}

namespace {

/// Elimination with the largest pivot of each column; a is the matrix's memory. Without a pivot it is 0,
/// unless 0 meets what is not finite.
double determinant(double* a, std::size_t n) {
  const bool finite = std::all_of(a, a + n * n, [](double v) { return std::isfinite(v); });
  double out = 1;
  StopPoints points;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    const double p = a[pivot * n + k];
    if (p == 0) return finite ? 0 : std::numeric_limits<double>::quiet_NaN();
    out *= pivot == k ? p : -p;
    for (std::size_t j = k; j < n && pivot != k; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / p;
      for (std::size_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      points(static_cast<std::int64_t>(n - k));
    }
  }
  return out;
}

}  // namespace

void Determinant::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  const auto n = static_cast<std::size_t>(c.dims(0).back());
  std::vector<double> out(c.out().size());
  for (std::size_t m = 0; m < out.size(); ++m) out[m] = determinant(x.data() + m * n * n, n);
  c.store(0, out);
}

}  // namespace lamina
