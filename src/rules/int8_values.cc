/// Integers between nodes: who makes them stores them, and who reads them makes numbers of them itself.
#include <algorithm>

#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "rewrite/driver.h"
#include "rules/int8.h"
#include "rules/rules.h"

namespace lamina {
namespace {

/// The last operator of its epilogue makes numbers of integers of 8 bits.
bool ends_in_numbers(const Graph&, const Node& n) {
  const Graph* body = epilogue(n);
  if (!body || n.outputs.size() != 1) return false;
  const auto last = body->producer(body->results()[0].value);
  if (!last.valid() || !body->node(last).op.is<Dequantize>()) return false;
  const Node& step = body->node(last);
  return body->producer(step.inputs[0]).valid() && int8::has_one_step(*body, step);
}

Verdict all_can_read(const Match& m) {
  const Graph& g = m.graph();
  const auto v = m.root_node().outputs[0];
  if (g.is_result(v)) return Verdict::no("its result is an output of the model");
  for (const auto& use : g.value(v).uses)
    if (!int8::can_read(g, use)) return Verdict::no("'{}' reads f32", g.label(use.node));
  return Verdict::yes();
}

/// The epilogue without its last operator.
void store_integers(Rewrite& r) {
  const Node n = r.match().root_node();
  auto bodies = n.bodies;
  Graph& body = bodies[0];
  const auto last = body.producer(body.results()[0].value);
  const Node step = body.node(last);
  std::vector<ValueId> inputs{{}};
  std::vector<Tensor> parameters;
  for (std::size_t i = 1; i < step.inputs.size(); ++i)
    parameters.push_back(step.inputs[i].valid() ? *body.constant(step.inputs[i]) : Tensor());
  body.set_result(0, step.inputs[0]);
  body.erase(last);
  body.erase_unused_constants();
  inputs[0] = r.add(n.op, n.inputs, std::move(bodies));
  for (const auto& t : parameters) inputs.push_back(t.valid() ? r.constant(t) : ValueId{});
  r.replace(r.add(Op(step.op), std::move(inputs)));
}

/// The first input that a Dequantize makes numbers of; none: SIZE_MAX.
std::size_t dequantized_input(const Graph& g, const Node& n) {
  const bool group = int8::is_group(n);
  if (!group && !(epilogue(n) && is_host(n))) return SIZE_MAX;
  for (std::size_t i = group ? 0 : base_inputs(n); i < n.inputs.size(); ++i) {
    const auto maker = n.inputs[i].valid() ? g.producer(n.inputs[i]) : NodeId{};
    if (!maker.valid()) continue;
    if (const Node& d = g.node(maker); d.op.is<Dequantize>() && int8::has_one_step(g, d)) return i;
  }
  return SIZE_MAX;
}

void read_integers(Rewrite& r) {
  const Graph& g = r.graph();
  const Node n = r.match().root_node();
  const auto input = dequantized_input(g, n);
  const Node d = g.node(g.producer(n.inputs[input]));
  auto inputs = n.inputs;
  inputs[input] = d.inputs[0];
  auto bodies = n.bodies;
  Graph& body = bodies[0];
  const auto p = body.inputs()[int8::is_group(n) ? input : input - base_inputs(n) + 1];
  const auto uses = body.value(p).uses;
  const auto shape = body.type(p).shape;
  body.set_type(p, {g.type(d.inputs[0]).element, shape});
  std::vector<ValueId> operands{p};
  for (std::size_t i = 1; i < d.inputs.size(); ++i)
    operands.push_back(d.inputs[i].valid() ? body.add_constant(*g.constant(d.inputs[i])) : ValueId{});
  const auto wide = body.add(Op(d.op), std::move(operands));
  for (const auto& use : uses) body.set_input(use.node, use.input, wide);
  for (std::size_t i = 0; i < body.results().size(); ++i)
    if (body.results()[i].value == p) body.set_result(i, wide);
  r.replace(r.add(n.op, std::move(inputs), std::move(bodies)));
}

}  // namespace

void add_int8_values(Rules& rules) {
  rules.push_back(rule("int8-store", "Nodes that round to 8-bit integers store them", RuleSet::precision,
                       node("node with an epilogue", ends_in_numbers, {}))
                      .when(all_can_read)
                      .make(store_integers)
                      .only_with(&RewriteOptions::integers));
  rules.push_back(
      rule("int8-read", "Epilogues and element-wise operators read integers and convert them themselves",
           RuleSet::precision,
           node("node with an epilogue",
                [](const Graph& g, const Node& n) { return dequantized_input(g, n) != SIZE_MAX; }, {}))
          .make(read_integers)
          .only_with(&RewriteOptions::integers));
}

}  // namespace lamina
