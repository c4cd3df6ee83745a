#include "tests/rules/by_value.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"

namespace lamina::testing {

std::vector<Tensor> seeded_inputs(const Graph& graph, std::uint64_t seed) {
  std::vector<Tensor> out;
  for (auto v : graph.inputs()) {
    const auto& type = graph.type(v);
    Dims dims;
    for (const auto& d : type.shape.dims()) dims.push_back(std::clamp<std::int64_t>(3, d.low(), d.high()));
    auto t = seeded_tensor(type.element, dims, seed * 1000 + v.index);
    if (is_float(type.element)) {
      auto values = to_doubles(t);
      for (auto& x : values) x *= 4;  // beyond the bounds of clamps
      t = from_doubles(type.element, dims, values);
    }
    out.push_back(std::move(t));
  }
  return out;
}

std::string difference_by_value(const Graph& a, const Graph& b, const std::vector<Tensor>& inputs,
                                double tolerance) {
  const auto x = interpret(a, inputs), y = interpret(b, inputs);
  if (x.size() != y.size()) return fmt::format("{} results and {}", x.size(), y.size());
  for (std::size_t r = 0; r < x.size(); ++r) {
    const auto& name = a.results()[r].name;
    if (x[r].shape() != y[r].shape() || x[r].element_type() != y[r].element_type())
      return fmt::format("result {}: shape {} and {}", name, to_string(x[r].shape()),
                         to_string(y[r].shape()));
    if (!is_float(x[r].element_type())) {
      if (!x[r].same_as(y[r])) return fmt::format("result {} differs", name);
      continue;
    }
    const auto u = to_doubles(x[r]), v = to_doubles(y[r]);
    double largest = 0;
    for (double w : u)
      if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
    for (std::size_t i = 0; i < u.size(); ++i)
      if (!(u[i] == v[i] || (std::isnan(u[i]) && std::isnan(v[i])) ||
            std::fabs(u[i] - v[i]) <= tolerance * largest))
        return fmt::format("result {}, element {}: {} and {}", name, i, u[i], v[i]);
  }
  return {};
}

}  // namespace lamina::testing
