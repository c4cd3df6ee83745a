/// Activations and arithmetic with one number are hoisted above the reshapes, transposes and joints between
/// them and the convolutions, matrix products or poolings whose epilogues then take them.
#include <algorithm>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// Nodes between a host and an activation that is to go there. A chain without a host is walked up from each
/// of its nodes: without a bound the time would grow with the square of its length.
constexpr int kMostBetween = 64;

/// All operands but input `running` are single numbers.
bool others_are_numbers(const Graph& g, const Node& n, std::size_t running) {
  for (std::size_t i = 0; i < n.inputs.size(); ++i)
    if (i != running && n.inputs[i].valid() && !single_value(g, n.inputs[i])) return false;
  return true;
}

/// Each element depends on the one in its place alone, wherever that is.
bool computes_elementwise(const Graph& g, const Node& n, std::size_t running) {
  const bool simple = n.op.has(Trait::unary_elementwise) || n.op.has(Trait::binary_elementwise) ||
                      n.op.is<PRelu>() || n.op.is<FakeQuantize>();
  return simple && n.bodies.empty() && n.outputs.size() == 1 && others_are_numbers(g, n, running) &&
         g.type(n.outputs[0]).element == g.type(n.inputs[running]).element;
}

/// What makes the moved value: a node that has an epilogue, perhaps behind further movements, and activations
/// that will follow this one.
bool comes_from_host(const Graph& g, const Node& movement) {
  int left = kMostBetween;
  for (auto id = g.producer(movement.inputs[0]); id.valid() && --left >= 0;
       id = g.producer(g.node(id).inputs[0])) {
    if (is_host(g.node(id))) return true;
    if (!moves_elements(g.node(id)) && !computes_elementwise(g, g.node(id), 0)) return false;
  }
  return false;
}

/// Nobody else wants what lies between the host and the movement.
Verdict read_once(const Match& m, ValueId v) {
  const Graph& g = m.graph();
  for (;; v = g.node(g.producer(v)).inputs[0]) {
    if (g.readers(v) != 1) return Verdict::no("{} is also read by others", m.label(v));
    if (is_host(g.node(g.producer(v)))) return Verdict::yes();
  }
}

/// A number that cannot add axes to what it meets.
ValueId as_number(Rewrite& r, ValueId v, const Dims& shape) {
  const Tensor* t = r.graph().constant(v);
  return t && t->shape() != shape ? r.constant(t->to_aligned().reshaped(shape)) : v;
}

/// The node on another value in the place of input `running`.
ValueId hoisted(Rewrite& r, const Node& root, std::size_t running, ValueId v) {
  auto inputs = root.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (i == running)
      inputs[i] = v;
    else if (root.op.is<PRelu>())
      inputs[i] = as_number(r, inputs[i], {1});
    else if (!root.op.has(Trait::unary_elementwise))
      inputs[i] = as_number(r, inputs[i], {});
  return r.add(Op(root.op), std::move(inputs));
}

/// Joins nothing but results of nodes with epilogues, which nobody else reads.
bool joins_hosts(const Graph& g, const Node& n) {
  return n.op.is<Concat>() && std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
           int left = kMostBetween;
           while (v.valid() && g.readers(v) == 1 && g.producer(v).valid() && --left >= 0) {
             const Node& p = g.node(g.producer(v));
             if (is_host(p)) return true;
             if (!computes_elementwise(g, p, 0)) return false;
             v = p.inputs[0];
           }
           return false;
         });
}

void add_over_concat(Rules& rules) {
  const auto concat = node("Concat", joins_hosts, {}).used_once();
  const auto activation = node(
      "activation", [](const Graph& g, const Node& n) { return computes_elementwise(g, n, 0); }, {concat});
  rules.push_back(
      rule("hoist-activation-over-concat",
           "Hoists an activation above a Concat of convolutions or matrix products, to each of them",
           RuleSet::runtime, activation)
          .when([=](const Match& m) -> Verdict {
            const auto& type = m.type(concat);
            if (!is_float(type.element)) return Verdict::no("{} joins integers", m.label(concat));
            if (!type.shape.same(m.graph().type(m.root_node().outputs[0]).shape))
              return Verdict::no("it changes the shape {}", to_string(type.shape));
            return Verdict::yes();
          })
          .make([=](Rewrite& r) {
            const Node root = r.match().root_node(), joined = r.match().node(concat);
            auto parts = joined.inputs;
            for (auto& part : parts) part = hoisted(r, root, 0, part);
            r.named_after(concat);
            r.replace(r.add(Op(joined.op), std::move(parts)));
          }));
}

}  // namespace

void add_hoist_activation(Rules& rules) {
  add_over_concat(rules);
  const auto movement =
      node("Reshape or Transpose", [](const Graph&, const Node& n) { return moves_elements(n); }, {any()})
          .that(comes_from_host)
          .used_once();
  const auto activation = node(
      "activation", [](const Graph& g, const Node& n) { return computes_elementwise(g, n, 0); }, {movement});
  const auto turned = node("arithmetic",
                           [](const Graph& g, const Node& n) {
                             return n.op.has(Trait::binary_elementwise) && computes_elementwise(g, n, 1);
                           },
                           {constant_only(), movement});
  rules.push_back(rule("hoist-activation",
                       "Hoists activations above Reshapes and Transposes, to a node with an epilogue",
                       RuleSet::runtime, either({activation, turned}))
                      .when([=](const Match& m) -> Verdict {
                        const auto& from = m.type(movement);
                        if (!is_float(from.element))
                          return Verdict::no("{} moves integers", m.label(movement));
                        if (!from.shape.same(m.graph().type(m.root_node().outputs[0]).shape))
                          return Verdict::no("it changes the shape {}", to_string(from.shape));
                        return read_once(m, m.node(movement).inputs[0]);
                      })
                      .make([=](Rewrite& r) {
                        const Match& m = r.match();
                        const Node root = m.root_node(), moved = m.node(movement);
                        const auto running = slot_of(root, m.value(movement));
                        auto movement_inputs = moved.inputs;
                        movement_inputs[0] = hoisted(r, root, running, moved.inputs[0]);
                        r.named_after(movement);
                        r.replace(r.add(Op(moved.op), std::move(movement_inputs)));
                      }));
}

}  // namespace lamina
