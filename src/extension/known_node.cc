#include "extension/known_node.h"

#include <algorithm>

#include "base/error.h"
#include "extension/custom_op.h"
#include "ops/eval.h"

namespace lamina {
namespace {

/// The value, where it is a constant or lamina's own operators make it of constants; not valid: neither. What
/// libraries compute is not known before they are tried.
Tensor constant_of(const Graph& g, ValueId v) {
  if (!v.valid()) return {};
  if (const auto* constant = g.constant(v)) return *constant;
  const auto id = g.producer(v);
  if (!id.valid()) return {};
  const auto& n = g.node(id);
  if (n.inputs.empty() || !n.bodies.empty() || n.op.has(Trait::impure | Trait::control_flow) ||
      custom_op(n.op))
    return {};
  std::vector<Tensor> in;
  for (const auto input : n.inputs) {
    in.push_back(constant_of(g, input));
    if (input.valid() && !in.back().valid()) return {};
  }
  try {
    const auto at = std::find(n.outputs.begin(), n.outputs.end(), v) - n.outputs.begin();
    return evaluate_node(n, in, {}).at(static_cast<std::size_t>(at));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<KernelNode> known_node(const Graph& g, const Node& n, std::string label) {
  const auto& op = custom_op(n.op)->declared();
  KernelNode node;
  node.op = n.op;
  for (std::size_t i = 0; i < base_inputs(n); ++i) {
    if (!n.inputs[i].valid()) {
      node.in.push_back({false, {}, {}});
      continue;
    }
    auto type = g.type(n.inputs[i]);
    if (type.element == ElementType::undefined || !type.shape.known()) return std::nullopt;
    if (const auto* port = op.port(op.in, i)) type.element = port->as_taken(type.element);
    const auto constant = constant_of(g, n.inputs[i]);
    node.in.push_back(
        {true, type, constant.valid() ? convert(constant.to_aligned(), type.element) : Tensor()});
  }
  for (const auto v : n.outputs) {
    node.out.push_back({true, g.type(v), {}});
    auto& element = node.out.back().type.element;
    if (const auto* port = op.port(op.out, node.out.size() - 1)) element = port->as_taken(element);
  }
  if (const Graph* body = epilogue(n)) node.out[0].type = body->type(body->inputs()[0]);
  node.label = std::move(label);
  return node;
}

}  // namespace lamina
