#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "ops/walk.h"
#include "rules/rules.h"
#include "rules/shrink_constants.h"
#include "rules/stored_weights.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// What stands on a constant of few bits, from the constant on, once it is moved itself.
struct Moved {
  StoredWeights from;
  Tensor numbers;
  std::vector<std::vector<Tensor>> operands;  ///< of each node, but for the first
};

/// What the root makes of a constant in place of what it reads.
Found<Tensor> moved_constant(const Match& m, Tensor tensor) {
  const Node& n = m.root_node();
  std::vector<Tensor> inputs{std::move(tensor)};
  for (std::size_t i = 1; i < n.inputs.size(); ++i) inputs.push_back(*m.graph().constant(n.inputs[i]));
  try {
    return evaluate_node(n, inputs, {}).at(0);
  } catch (const Error& e) {
    return Verdict::no("{}", e.what());
  }
}

/// Operands along axes that are joined with others would have to be repeated.
Found<Tensor> moved_operand(const Match& m, const Tensor& operand, const Dims& dims) {
  if (operand.size() == 1) return operand.reshaped({});
  const auto all = broadcast(Shape::of(operand.shape()), Shape::of(dims));
  if (!all || !(*all == Shape::of(dims))) return Verdict::no("a scale is larger than what it scales");
  auto spread = moved_constant(m, from_doubles(operand.element_type(), dims,
                                               broadcast_values(to_doubles(operand), operand.shape(), dims)));
  if (!spread) return spread.verdict();
  auto out = without_repeats(*spread);
  if (out.size() > operand.size())
    return Verdict::no("scales of shape {} lie along an axis that it joins with another",
                       to_string(operand.shape()));
  return out;
}

Found<Moved> moved(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  if (!m.stored || g.readers(n.inputs[0]) != 1) return std::nullopt;
  auto from = stored_weights(g, n.inputs[0]);
  if (!from || g.node(from->nodes[0]).op.is<Dequantize>()) return std::nullopt;
  for (std::size_t i = 1; i < n.inputs.size(); ++i)
    if (!n.inputs[i].valid() || !g.constant(n.inputs[i])) return std::nullopt;
  const auto numbers = moved_constant(m, *g.constant(from->numbers));
  if (!numbers) return numbers.verdict();
  Moved out{*from, *numbers, {}};
  for (const auto id : from->nodes) {
    if (m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
    auto& operands = out.operands.emplace_back();
    for (std::size_t i = 1; i < g.node(id).inputs.size(); ++i) {
      const auto* t = g.constant(g.node(id).inputs[i]);
      if (!t) return std::nullopt;
      auto now = moved_operand(m, *t, g.constant(from->numbers)->shape());
      if (!now) return now.verdict();
      operands.push_back(*now);
    }
  }
  return out;
}

void make_moved(Rewrite& r, const Moved& found) {
  const Graph& g = r.graph();
  auto y = r.constant(found.numbers, g.value(found.from.numbers).name);
  for (std::size_t k = 0; k < found.from.nodes.size(); ++k) {
    const auto id = found.from.nodes[k];
    std::vector<ValueId> inputs{y};
    for (std::size_t i = 0; i < found.operands[k].size(); ++i)
      inputs.push_back(r.constant(found.operands[k][i], g.value(g.node(id).inputs[i + 1]).name));
    r.absorb(id);
    r.named_after(id);
    y = r.add(Op(g.node(id).op), std::move(inputs));
  }
  r.replace(y);
}

bool moves_stored(const Graph& g, const Node& n) {
  return n.inputs[0].valid() && stored_weights(g, n.inputs[0]).has_value();
}

}  // namespace

void add_move_stored_weights(Rules& rules) {
  rules.push_back(
      rule(
          "move-stored-weights",
          "Transposes and reshapes stored weights of few bits instead of the floats made from them, in files",
          RuleSet::portable, is<Transpose, Reshape, Unsqueeze, Squeeze>().that(moves_stored))
          .when(moved)
          .make(make_moved));
}

}  // namespace lamina
