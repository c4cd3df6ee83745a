#include "tests/quantised/bounds.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "ops/activation.h"
#include "ops/eval.h"
#include "ops/walk.h"
#include "rules/weights.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

constexpr double kSums = 2e-7;          // of the largest sum: what an order of sums changes
constexpr double kRelative = 0x1p-22;   // of its result: what an operator may be off
constexpr double kBesideOne = 0x1p-21;  // what functions are off that compute with numbers near 1

bool is_one_of(const Node& n, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), n.op.name()) != names.end();
}

/// What `n`, which reads `x`, may be off where it gives `y`.
double rounding(const Node& n, double x, double y) {
  if (!std::isfinite(y)) return 0;
  if (is_one_of(n, {"Abs", "Clamp", "Relu", "Round", "Maximum", "Minimum"})) return 0;
  if (is_one_of(n, {"Gelu", "Mish"}) && std::isfinite(x))  // x times a number next to 1 without that 1
    return kBesideOne / 2 * std::fabs(x) + kRelative * std::fabs(y);
  if (is_one_of(n, {"Elu", "HardSigmoid", "HSwish"})) return kBesideOne + kRelative * std::fabs(y);
  if (is_one_of(n, {"Add", "Subtract"}) && std::isfinite(x))  // the larger addend is no larger than both
    return kRelative * (std::fabs(x) + std::fabs(y));
  // Kernels without fused multiply-add lose digits of the exponent before they take the exponential function.
  if (is_one_of(n, {"Exp", "Power", "Sigmoid", "SoftPlus"}) && y != 0)
    return kRelative * std::fabs(y) * (1 + std::fabs(std::log(std::fabs(y))));
  return kRelative * std::fabs(y);
}

/// Follows the bounds from the sums to the end.
class Chain {
 public:
  Chain(const Values& values, ValueId sums) : values_(values), at_(sums) {
    b_.low = b_.high = to_doubles(values[sums.index]);
    b_.undecided.resize(b_.low.size());
    const double off = kSums * largest(values[sums.index]);
    for (auto& v : b_.low) v -= off;
    for (auto& v : b_.high) v += off;
  }

  void step(const Node& n) {
    for (std::size_t k = 0; k < n.inputs.size(); ++k)
      if (n.inputs[k] == at_) check_input(n, k);
    const auto x = to_doubles(values_[at_.index]), y = to_doubles(values_[n.outputs[0].index]);
    const auto before = b_;
    b_.low = b_.high = y;
    // Where functions turn: Abs and squares; Gelu; Mish; HSwish.
    constexpr double kFar = std::numeric_limits<double>::infinity();
    for (const double turn : {-kFar, kFar, 0.0, -0.7518, -1.1925, -1.5}) include(n, before, turn);
    for (std::size_t i = 0; i < y.size(); ++i) {
      b_.low[i] -= rounding(n, x[i], b_.low[i]);
      b_.high[i] += rounding(n, x[i], b_.high[i]);
      if (is_one_of(n, {"HardSigmoid"})) b_.low[i] = std::max(b_.low[i], 0.0);
      if (b_.low[i] > 0 && b_.low[i] < FLT_MIN) b_.low[i] = 0;  // denormal results may be 0
      if (b_.high[i] < 0 && b_.high[i] > -FLT_MIN) b_.high[i] = 0;
    }
    at_ = n.outputs[0];
  }

  ValueId at() const { return at_; }
  const Bounds& bounds() const { return b_; }

 private:
  void check_input(const Node& n, std::size_t input) {
    const auto x = to_doubles(values_[at_.index]);
    const bool divisor = n.op.name() == "Divide" && input == 1;
    const bool base = n.op.name() == "Power" && input == 0;
    const bool loses_nan = n.op.is<Relu>() || n.op.is<Clamp>();
    for (std::size_t i = 0; i < x.size(); ++i)
      if ((divisor && b_.low[i] <= 0 && b_.high[i] >= 0) || (base && b_.low[i] < 0 && b_.high[i] >= 0) ||
          (loses_nan && std::isnan(x[i])))
        b_.undecided[i] = true;
  }

  /// Takes in what `n` gives at the number within the bounds `before` that is nearest to `x`.
  void include(const Node& n, const Bounds& before, double x) {
    std::vector<double> points(before.low.size());
    bool inside = false;
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[i] = std::min(std::max(x, before.low[i]), before.high[i]);
      if (std::isnan(before.low[i])) points[i] = before.low[i];
      inside = inside || points[i] == x;
    }
    if (std::isfinite(x) && !inside) return;
    const Tensor& here = values_[at_.index];
    const auto made = from_doubles(here.element_type(), here.shape(), points);
    Values in;
    for (const auto v : n.inputs) in.push_back(!v.valid() ? Tensor() : v == at_ ? made : values_[v.index]);
    const auto y = to_doubles(interpret_node(n, in)[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (std::isnan(y[i]) != std::isnan(b_.low[i])) b_.undecided[i] = true;
      b_.low[i] = std::min(b_.low[i], y[i]);
      b_.high[i] = std::max(b_.high[i], y[i]);
    }
  }

  const Values& values_;
  ValueId at_;
  Bounds b_;
};

}  // namespace

Values all_values(const Graph& g, const Values& inputs) {
  Values values(g.value_slots());
  for (std::uint32_t v = 0; v < values.size(); ++v)
    if (const auto* c = g.constant({v})) values[v] = *c;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[g.inputs()[i].index] = inputs[i];
  for (const auto id : g.order()) {
    Values in;
    for (const auto v : g.node(id).inputs) in.push_back(v.valid() ? values[v.index] : Tensor());
    const auto out = interpret_node(g.node(id), in);
    for (std::size_t i = 0; i < out.size(); ++i) values[g.node(id).outputs[i].index] = out[i];
  }
  return values;
}

NodeId product_of(const Graph& g) {
  for (const auto id : g.order())
    if (has_weights(g.node(id))) return id;
  return {};
}

double largest(const Tensor& t) {
  double most = 0;
  for (const double v : to_doubles(t))
    if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}

Bounds bounds_of(const Graph& g, const Values& values, ValueId end) {
  Chain chain(values, g.node(product_of(g)).outputs[0]);
  for (const auto id : g.order()) {
    if (chain.at() == end) break;
    const Node& n = g.node(id);
    if (std::find(n.inputs.begin(), n.inputs.end(), chain.at()) != n.inputs.end()) chain.step(n);
  }
  return chain.bounds();
}

}  // namespace lamina::testing
