/// Element-wise operators whose other operands have axes are hoisted above the Transpose between channels
/// first and last that stands behind a convolution, to its epilogue. Their operands are transposed instead,
/// which is nothing where these have one axis, and no more than another layout for whole tensors.
#include <algorithm>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/transposes.h"

namespace lamina {
namespace {

bool is_convolution(const Node& n) {
  return n.op.is<Convolution>() || n.op.is<ConvolutionBackpropData>() || n.op.is<BinaryConvolution>();
}

/// Dequantize goes the other way: integers are transposed.
bool works_on_elements(const Graph&, const Node& n) {
  return n.op.has(Trait::elementwise) && n.bodies.empty() && n.outputs.size() == 1 && !n.op.is<Dequantize>();
}

/// Whether the order moves channels from the second axis to the last one, or back.
bool moves_channels(const Ints& order) {
  if (order.size() < 3) return false;
  const auto last = to_channels_last(order.size());
  return order == last || order == inverse(last);
}

/// A convolution makes the value, perhaps behind other such operators, and nobody else reads anything on the
/// way. `budget`: values that are looked at.
bool comes_from_convolution(const Graph& g, ValueId v, int& budget) {
  const auto maker = v.valid() ? g.producer(v) : NodeId();
  if (!maker.valid() || g.readers(v) != 1 || --budget < 0) return false;
  const Node& n = g.node(maker);
  if (is_convolution(n)) return true;
  return works_on_elements(g, n) && std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId in) {
           return comes_from_convolution(g, in, budget);
         });
}

struct Above {
  Permuted made;
  Ints order;
};

Found<Above> above(const Match& m, const Pattern& transpose) {
  const Graph& g = m.graph();
  const Node &n = m.root_node(), &moved = m.node(transpose);
  const auto order = order_of(g, moved);
  int budget = 64;
  if (!order || !moves_channels(*order) || !comes_from_convolution(g, moved.inputs[0], budget))
    return std::nullopt;
  const auto &from = m.type(transpose).shape, &to = g.type(n.outputs[0]).shape;
  if (!to.ranked() || !from.same(to)) return Verdict::no("it changes the shape {}", to_string(from));
  // The node's own Transpose would be hoisted over then, without end.
  for (const auto v : n.inputs)
    if (!(v == m.value(transpose)) && comes_from_convolution(g, v, budget))
      return Verdict::no("{} comes from a convolution, too, and its axes are in another order", m.label(v));
  auto made = with_transposes(m, m.root(), *order);
  if (!made) return made.verdict();
  return Above{std::move(made).take(), *order};
}

}  // namespace

void add_hoist_arithmetic(Rules& rules) {
  const auto transpose =
      node("Transpose", [](const Graph& g, const Node& n) { return order_of(g, n).has_value(); }, {any()})
          .used_once();
  const auto first = node("element-wise operator", works_on_elements, {transpose}),
             second = node("element-wise operator", works_on_elements, {any(), transpose});
  rules.push_back(rule("hoist-arithmetic",
                       "Hoists arithmetic above the Transpose after a convolution, into its epilogue",
                       RuleSet::integers, either({first, second}))
                      .when([=](const Match& m) { return above(m, transpose); })
                      .make([=](Rewrite& r, const Above& found) {
                        const auto id = add_moved(r, r.match().root(), found.made, {}, found.order);
                        const auto y = r.graph().node(id).outputs[0];
                        r.named_after(transpose);
                        r.replace(r.add(Transpose{}, {y, r.constant(ints_tensor(found.made.outputs[0]))}));
                      }));
}

}  // namespace lamina
