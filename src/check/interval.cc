#include "check/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "graph/subgraph.h"
#include "interpreter/interpreter.h"
#include "kernels/epilogue.h"
#include "ops/convolution.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/reduction.h"

namespace lamina::checking {
namespace {

/// Bound of rounding, relative to the sum of magnitudes and to results of later functions. No rounding turns
/// a number into an infinity.
constexpr double kRounding = 0x1p-20;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// Operators that mix their operand's elements: so many times moved at random, and how much more than what
/// was found that way is granted.
constexpr int kTries = 4;
constexpr double kMargin = 4;

using Radius = std::vector<double>;

bool is_floats(const Tensor& t) { return t.valid() && is_float(t.element_type()); }
Radius values_of(const Tensor& t) { return to_doubles(t.to_aligned()); }
Tensor of(const Tensor& like, const Radius& values) {
  return from_doubles(like.element_type(), like.shape(), values);
}

/// True if each element of the result is an element of an operand.
bool selects(const Op& op) { return op.has(Trait::selects | Trait::moves | Trait::reads_part); }

class OneNode {
 public:
  OneNode(const Node& node, const std::vector<Interval>& in, const PropagateOptions& options)
      : node_(node), in_(in), options_(options) {
    for (const auto& x : in) middles_.push_back(x.middle);
    for (auto& t : interpret_node(node, middles_)) out_.push_back({std::move(t), {}});
  }

  std::vector<Interval> result() && {
    const bool exact = std::all_of(in_.begin(), in_.end(), [](auto& x) { return x.radius.empty(); });
    if (node_.op.has(Trait::elementwise)) {
      if (!exact) one_by_one();
      if (!selects(node_.op) && !node_.op.has(Trait::levels)) round();
      if (node_.op.is<FakeQuantize>()) round_levels();
    } else if (node_.op.has(Trait::products)) {
      products();
    } else if (selects(node_.op) || node_.op.has(Trait::sums)) {
      if (!exact) both_ends();
      if (node_.op.has(Trait::sums)) round_sums();
    } else {
      if (!exact) at_random();
      round_all();
      if (node_.op.is<ReduceProd>()) round_product();
    }
    return std::move(out_);
  }

 private:
  std::vector<Tensor> run(const std::vector<Tensor>& in) const { return interpret_node(node_, in); }

  /// The operand, each element moved by its radius times what `times` says, if that is a number. An element
  /// with an infinite radius may be anything: it becomes an infinity, or NaN as `times`, whatever it was.
  template <class F>
  Tensor moved(const Interval& x, F&& times) const {
    if (x.radius.empty()) return x.middle;
    auto values = values_of(x.middle);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double r = x.radius[i], by = times(i);
      if (std::isinf(r))
        values[i] = by * r;
      else if (r != 0 && !std::isnan(by))
        values[i] += by * r;
    }
    return of(x.middle, values);
  }

  /// How far the results are from the middle.
  std::vector<Radius> distances(const std::vector<Tensor>& in) const {
    std::vector<Tensor> results;
    try {
      results = run(in);
    } catch (const Error&) {  // such as an index that leads outside
      results.resize(out_.size());
    }
    std::vector<Radius> off;
    for (std::size_t k = 0; k < out_.size(); ++k) {
      const auto& middle = out_[k].middle;
      if (!results[k].valid() || results[k].shape() != middle.shape()) {
        off.emplace_back(middle.size(), kUnbounded);
        continue;
      }
      const auto a = values_of(results[k]), b = values_of(middle);
      off.emplace_back(a.size(), 0);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
        const auto d = std::fabs(a[i] - b[i]);
        off.back()[i] = same ? 0 : std::isnan(d) ? kUnbounded : d;
      }
    }
    return off;
  }

  Radius& radius(std::size_t k) {
    auto& r = out_[k].radius;
    r.resize(out_[k].middle.size(), 0);
    return r;
  }

  void grow(const std::vector<Radius>& to) {
    for (std::size_t k = 0; k < out_.size(); ++k) {
      auto& r = radius(k);
      for (std::size_t i = 0; i < r.size(); ++i) r[i] = std::max(r[i], to[k][i]);
    }
  }

  /// Element by element the function is taken to rise or fall between the two ends of each operand. What may
  /// be anything may be NaN, too.
  void one_by_one() {
    for (std::size_t j = 0; j < in_.size(); ++j) {
      if (in_[j].radius.empty()) continue;
      const bool any = is_floats(middles_[j]) && std::ranges::count(in_[j].radius, kUnbounded) != 0;
      Radius most(out_[0].middle.size(), 0);
      for (const double times : {-1.0, 1.0, kNan}) {
        if (std::isnan(times) && !any) continue;
        auto in = middles_;
        in[j] = moved(in_[j], [&](std::size_t) { return times; });
        const auto off = distances(in);
        for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], off[0][i]);
      }
      auto& r = radius(0);
      for (std::size_t i = 0; i < r.size(); ++i) r[i] += most[i];
    }
  }

  /// The result of a monotonic operator lies between its results for both ends of the operands' intervals.
  void both_ends() {
    for (const double times : {-1.0, 1.0}) {
      std::vector<Tensor> in;
      for (const auto& x : in_) in.push_back(moved(x, [&](std::size_t) { return times; }));
      grow(distances(in));
    }
  }

  void at_random() {
    SplitMix random(1);
    for (int t = 0; t < kTries; ++t) {
      std::vector<Tensor> in;
      for (const auto& x : in_)
        in.push_back(moved(x, [&](std::size_t) { return random.below(2) ? 1.0 : -1.0; }));
      auto off = distances(in);
      for (std::size_t k = 0; k < off.size(); ++k)
        for (auto& d : off[k]) d *= is_floats(out_[k].middle) ? kMargin : d > 0 ? kUnbounded : 0;
      grow(off);
    }
  }

  /// A function's own rounding: a part of its result or, as 1 + erf(x) loses digits, of its operand.
  void round() {
    if (!is_floats(out_[0].middle)) return;
    const auto y = values_of(out_[0].middle);
    const bool unary = in_.size() == 1 && is_floats(middles_[0]) && middles_[0].size() == y.size();
    const auto x = unary ? values_of(middles_[0]) : Radius();
    auto& r = radius(0);
    for (std::size_t i = 0; i < y.size(); ++i)
      if (std::isfinite(y[i]))
        r[i] += kRounding * std::max(std::fabs(y[i]), unary ? std::min(std::fabs(x[i]), 1.0) : 0);
  }

  void round_levels() {
    const auto &low = middles_.at(3), &high = middles_.at(4);
    if (!options_.reckoned || !options_.reckoned(low, high)) return;
    double largest = 0;
    for (const auto& end : {low, high})
      for (const double v : values_of(end)) largest = std::max(largest, std::fabs(v));
    for (auto& r : radius(0)) r += kRounding * largest;
  }

  /// Widens the results of operators that mix all elements by a part of the largest result.
  void round_all() {
    for (std::size_t k = 0; k < out_.size(); ++k) {
      if (!is_floats(out_[k].middle)) continue;
      double largest = 0;
      for (const double v : values_of(out_[k].middle))
        if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
      for (auto& r : radius(k)) r += kRounding * largest;
    }
  }

  /// Magnitudes, in f32: kernels keep sums of f16 in f32, and what cancels may pass the range of f16. What is
  /// no finite number decides a sum whatever the order, and counts as 0.
  static Tensor size_of(const Tensor& t) {
    if (!is_floats(t)) return t;
    auto values = values_of(t);
    for (auto& v : values) v = std::isfinite(v) ? std::fabs(v) : 0;
    return as_sum(t, values);
  }
  static Tensor as_sum(const Tensor& like, const Radius& values) {
    const bool wide = bits_of(like.element_type()) > 32;
    return from_doubles(wide ? like.element_type() : ElementType::f32, like.shape(), values);
  }
  std::vector<Tensor> sizes() const {
    std::vector<Tensor> out;
    for (const auto& t : middles_) out.push_back(size_of(t));
    return out;
  }

  /// Widens finite results by a part of what the node makes of `in`, which it returns; empty for integers.
  Radius add_part(const std::vector<Tensor>& in, double part) {
    if (!is_floats(out_[0].middle)) return {};
    auto sums = values_of(run(in).at(0));
    const auto y = values_of(out_[0].middle);
    auto& r = radius(0);
    for (std::size_t i = 0; i < r.size(); ++i)
      if (std::isfinite(y[i])) r[i] += part * std::fabs(sums[i]);
    return sums;
  }

  /// A mean is a sum first, of so many terms. Windows of AvgPool overlap.
  double terms_of_mean(std::size_t results) const {
    if (node_.op.has(Trait::products)) return 1;
    double terms = static_cast<double>(middles_[0].size()) / static_cast<double>(results);
    if (const auto* pool = node_.op.as<AvgPool>())
      terms = std::accumulate(pool->kernel.begin(), pool->kernel.end(), 1.0, std::multiplies<>());
    return std::max(1.0, terms);
  }

  /// Where f32 holds a product but not all that may stand on the way to it, the order of the factors decides.
  void round_product() {
    if (out_[0].middle.element_type() != ElementType::f32) return;
    const auto product_of = [&](double low, double high) {
      auto factors = values_of(middles_[0]);
      for (auto& v : factors) v = std::isfinite(v) ? std::clamp(std::fabs(v), low, high) : 1;
      auto in = middles_;
      in[0] = from_doubles(ElementType::f64, middles_[0].shape(), factors);
      return values_of(run(in).at(0));
    };
    const auto large = product_of(1, kUnbounded), small = product_of(0, 1);
    auto& r = radius(0);
    for (std::size_t i = 0; i < r.size(); ++i) {
      const bool over = large[i] > FLT_MAX, under = small[i] < FLT_MIN;
      const double product = large[i] * small[i];
      if ((over && under) || (over && product <= FLT_MAX) || (under && product >= FLT_MIN)) r[i] = kUnbounded;
    }
  }

  void round_sums() {
    const auto sums = add_part(sizes(), kRounding);
    if (out_[0].middle.element_type() != ElementType::f32 || sums.empty()) return;
    const double most = kLargestSum / terms_of_mean(sums.size());
    auto& r = radius(0);
    for (std::size_t i = 0; i < r.size(); ++i)
      if (std::fabs(sums[i]) > most) r[i] = kUnbounded;
  }

  /// Integers as floats, of the size that they may have without their zero point.
  Tensor size_of_integers(std::size_t operand) const {
    const auto zero = zero_point_input(node_.op, operand);
    double most = 0;
    if (zero < middles_.size() && middles_[zero].valid())
      for (const double z : values_of(middles_[zero])) most = std::max(most, std::fabs(z));
    auto values = values_of(middles_[operand]);
    for (auto& v : values) v = std::fabs(v) + most;
    return from_doubles(ElementType::f32, middles_[operand].shape(), values);
  }

  /// Sums of integers are exact: they differ where an operand does.
  void products_of_integers() {
    for (std::size_t j = 0; j < 2; ++j) {
      if (in_[j].radius.empty()) continue;
      std::vector<Tensor> in{size_of_integers(0), size_of_integers(1)};
      in[j] = from_doubles(ElementType::f32, middles_[j].shape(), in_[j].radius);
      if (node_.op.is<ConvolutionBackpropData>() && middles_.size() > 3)
        in.insert(in.end(), {Tensor(), middles_[3]});
      const auto sums = values_of(run(in).at(0));
      auto& r = radius(0);
      for (std::size_t i = 0; i < r.size(); ++i) r[i] += std::fabs(sums[i]);
    }
  }

  /// Radius of products: a part of the magnitudes, and each operand's radius times the other's magnitudes.
  void products() {
    if (!is_floats(middles_[0])) return products_of_integers();
    if (!is_floats(out_[0].middle)) return;
    round_sums();
    for (std::size_t j = 0; j < std::min<std::size_t>(2, in_.size()); ++j) {
      if (in_[j].radius.empty()) continue;
      std::vector<Tensor> in{size_of(middles_[0]), size_of(middles_[1])};
      in[j] = as_sum(middles_[j], in_[j].radius);
      if (!node_.op.is<MatMul>())  // without bias
        for (std::size_t k = 3; k < in_.size(); ++k) in.resize(k), in.push_back(middles_[k]);
      const auto sums = add_part(in, 1);
      auto& r = radius(0);
      for (std::size_t i = 0; i < r.size(); ++i)  // an operand may be anything, or a sum passes the range
        if (!std::isfinite(sums[i])) r[i] = kUnbounded;
    }
    if (in_.size() > 2 && !in_[2].radius.empty()) {  // a bias
      double most = 0;
      for (const double v : in_[2].radius) most = std::max(most, v);
      for (auto& r : radius(0)) r += most;
    }
  }

  const Node& node_;
  const std::vector<Interval>& in_;
  const PropagateOptions& options_;
  std::vector<Tensor> middles_;
  std::vector<Interval> out_;
};

/// The nodes of the body in the place of the node.
void spread(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  const Graph& body = node.bodies[0];
  std::vector<ValueId> places(body.value_slots());
  for (std::size_t i = 0; i < body.inputs().size(); ++i) places[body.inputs()[i].index] = node.inputs.at(i);
  add_copies(graph, body, body.order(), places);
  const auto result = node.outputs[0], made = places[body.results()[0].value.index];
  const auto name = graph.value(result).name;
  graph.replace(result, made);
  graph.erase(id);
  graph.set_value_name(made, name);
}

}  // namespace

void decompose_all(Graph& graph) {
  for (const auto id : graph.order()) {
    std::vector<NodeId> parts{id};
    if (can_decompose(graph, graph.node(id))) parts = decompose(graph, id);
    for (const auto part : parts)
      if (epilogue_size(graph.node(part)) > 0 && !graph.node(part).op.is<Elementwise>())
        decompose_epilogue(graph, part, 0);
  }
  for (const auto id : graph.order())
    if (graph.node(id).op.is<Elementwise>()) spread(graph, id);
}

std::vector<Interval> propagate(const Graph& graph, const std::vector<Interval>& in,
                                const PropagateOptions& options) {
  std::vector<Interval> values(graph.value_slots());
  for (std::size_t i = 0; i < in.size(); ++i) values[graph.inputs()[i].index] = in[i];
  for (std::uint32_t v = 0; v < values.size(); ++v)
    if (const auto* c = graph.constant({v})) values[v].middle = *c;
  for (const auto id : graph.order()) {
    const Node& n = graph.node(id);
    std::vector<Interval> operands;
    for (const auto v : n.inputs) operands.push_back(v.valid() ? values[v.index] : Interval{});
    auto out = OneNode(n, operands, options).result();
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (options.observe) options.observe(n.outputs[i], out[i]);
      values[n.outputs[i].index] = std::move(out[i]);
    }
  }
  std::vector<Interval> results;
  for (const auto& r : graph.results()) results.push_back(values[r.value.index]);
  return results;
}

}  // namespace lamina::checking
