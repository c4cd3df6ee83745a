#include "tool/rounding.h"

#include <algorithm>
#include <cmath>

#include "interpreter/interpreter.h"
#include "kernels/epilogue.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "ops/eval.h"

namespace lamina::tool {
namespace {

/// Of the sum of magnitudes; of what functions behind it give.
constexpr double kRounding = 0x1p-20;

/// A tensor and how far correct kernels may be off; without `radius` it is exact.
struct Interval {
  Tensor middle;
  std::vector<double> radius;
};

/// A graph of the node alone, every operator of its epilogue behind it.
struct Alone {
  Graph graph;
  std::vector<Tensor> in;
};

Alone alone(const Graph& g, NodeId id, const std::vector<Tensor>& in) {
  Alone a;
  const Node& n = g.node(id);
  std::vector<ValueId> inputs, seen(g.value_slots());
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const auto v = n.inputs[i];
    if (v.valid() && !seen[v.index].valid()) {
      seen[v.index] = a.graph.add_input("", {in[i].element_type(), Shape::of(in[i].shape())});
      a.in.push_back(in[i]);
    }
    inputs.push_back(v.valid() ? seen[v.index] : ValueId{});
  }
  const auto copy = a.graph.add_node(n.op, std::move(inputs), n.name, -1, n.bodies);
  a.graph.add_result("y", a.graph.node(copy).outputs[0]);
  std::vector<NodeId> parts{copy};
  if (can_decompose(a.graph, n)) parts = decompose(a.graph, copy);
  for (const auto part : parts)
    if (epilogue_size(a.graph.node(part)) > 0) split_epilogue(a.graph, part, 0);
  return a;
}

bool is_floats(const Tensor& t) { return t.valid() && is_float(t.element_type()); }

Tensor of(const Tensor& like, const std::vector<double>& values) {
  return from_doubles(like.element_type(), like.shape(), values);
}

/// The middles, moved by `times` their radius.
std::vector<Tensor> moved(const std::vector<Interval>& in, double times) {
  std::vector<Tensor> out;
  for (const auto& x : in) {
    out.push_back(x.middle);
    if (x.radius.empty()) continue;
    auto values = to_doubles(x.middle.to_aligned());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += times * x.radius[i];
    out.back() = of(x.middle, values);
  }
  return out;
}

bool rounds_to_levels(const Op& op) {
  const auto name = op.name();
  return name == "FakeQuantize" || name == "Quantize" || name == "DynamicQuantize" || name == "Round";
}

/// What a function's own rounding adds: a part of its result or, as 1 + erf(x) loses digits, of its operand.
void add_rounding(const Tensor& operand, const std::vector<double>& result, std::vector<double>& radius) {
  const auto x = is_floats(operand) ? to_doubles(operand.to_aligned()) : std::vector<double>();
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double lost = x.size() == result.size() ? std::min(std::fabs(x[i]), 1.0) : 0;
    radius[i] += kRounding * std::max(std::fabs(result[i]), lost);
  }
}

/// Element by element the function is taken to rise or fall between the two ends.
Interval through_elements(const Node& n, const std::vector<Interval>& in) {
  Interval y{interpret_node(n, moved(in, 0)).at(0), {}};
  if (std::all_of(in.begin(), in.end(), [](auto& x) { return x.radius.empty(); })) return y;
  const auto middle = to_doubles(y.middle.to_aligned());
  y.radius.assign(middle.size(), 0);
  for (const double times : {-1.0, 1.0}) {
    const auto end = to_doubles(interpret_node(n, moved(in, times)).at(0).to_aligned());
    for (std::size_t i = 0; i < end.size(); ++i)
      if (const auto off = std::fabs(end[i] - middle[i]); off > y.radius[i]) y.radius[i] = off;
  }
  if (is_floats(y.middle) && !rounds_to_levels(n.op))
    add_rounding(n.inputs.size() == 1 ? in[0].middle : Tensor(), middle, y.radius);
  return y;
}

/// Sums of products: of the magnitudes a part, and the operand's radius times the weights' magnitudes.
Interval through_sums(const Node& n, const std::vector<Interval>& in) {
  Interval y{interpret_node(n, moved(in, 0)).at(0), {}};
  if (!is_floats(y.middle)) return y;
  std::vector<Tensor> sizes, radii;
  for (std::size_t i = 0; i < in.size(); ++i) {
    auto size = in[i].middle;
    if (is_floats(size)) {
      auto values = to_doubles(size.to_aligned());
      for (auto& v : values) v = std::fabs(v);
      size = of(size, values);
    }
    sizes.push_back(size);
    if (i < 2) radii.push_back(i == 0 && !in[0].radius.empty() ? of(size, in[0].radius) : size);
  }
  y.radius = to_doubles(interpret_node(n, sizes).at(0).to_aligned());
  for (auto& r : y.radius) r = std::fabs(r) * kRounding;
  if (in[0].radius.empty()) return y;
  const auto more = to_doubles(interpret_node(n, radii).at(0).to_aligned());
  for (std::size_t i = 0; i < more.size(); ++i) y.radius[i] += more[i];
  return y;
}

/// Node by node, groups of element-wise operators too.
Interval through(const Graph& g, const std::vector<Interval>& in) {
  std::vector<Interval> values(g.value_slots());
  for (std::size_t i = 0; i < in.size(); ++i) values[g.inputs()[i].index] = in[i];
  for (const auto id : g.order()) {
    const Node& n = g.node(id);
    std::vector<Interval> operands;
    for (const auto v : n.inputs) {
      operands.push_back(v.valid() ? values[v.index] : Interval{});
      if (const auto* c = v.valid() ? g.constant(v) : nullptr) operands.back().middle = *c;
    }
    const bool group = n.op.is<Elementwise>() && n.bodies.size() == 1;
    const bool sums = n.op.has(Trait::epilogue) && n.bodies.empty() && !n.op.has(Trait::elementwise);
    values[n.outputs[0].index] = group  ? through(n.bodies[0], operands)
                                 : sums ? through_sums(n, operands)
                                        : through_elements(n, operands);
  }
  return values[g.results()[0].value.index];
}

}  // namespace

bool quantises(const Graph& graph) {
  for (std::uint32_t n = 0; n < graph.node_slots(); ++n) {
    if (graph.node({n}).erased()) continue;
    if (rounds_to_levels(graph.node({n}).op)) return true;
    for (const auto& body : graph.node({n}).bodies)
      if (quantises(body)) return true;
  }
  return false;
}

std::optional<std::vector<double>> undecided(const Graph& graph, NodeId id, const std::vector<Tensor>& in) {
  const Node& node = graph.node(id);
  if (!node.op.has(Trait::epilogue) || node.op.has(Trait::elementwise) || node.outputs.size() != 1 ||
      !std::any_of(node.bodies.begin(), node.bodies.end(), quantises))
    return std::nullopt;
  const auto a = alone(graph, id, in);
  std::vector<Interval> inputs;
  for (const auto& t : a.in) inputs.push_back({t, {}});
  auto radius = through(a.graph, inputs).radius;
  if (radius.empty()) return std::nullopt;
  return radius;
}

}  // namespace lamina::tool
