#include "kernels/epilogue.h"

#include <algorithm>

#include "base/element_types.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/quantization.h"

namespace lamina {

std::optional<float> single_number(const Tensor* t) {
  return t && t->size() == 1 ? std::optional(to_floats(*t)[0]) : std::nullopt;
}

std::size_t epilogue_size(const Node& node) {
  const Graph* body = epilogue(node);
  return body ? body->node_count() : 0;
}

namespace {

/// The extra input of the compute node that is this parameter of the body.
std::optional<std::size_t> extra_of(const Node& node, const Graph& body, ValueId v) {
  for (std::size_t p = 1; p < body.inputs().size(); ++p)
    if (body.inputs()[p] == v) return base_inputs(node) + p - 1;
  return std::nullopt;
}

/// The number of a constant input; 0 where there is no such input.
std::optional<float> number_of(const Graph& body, const Node& n, std::size_t input) {
  if (input >= n.inputs.size() || !n.inputs[input].valid()) return 0.0f;
  return single_number(body.constant(n.inputs[input]));
}

}  // namespace

std::optional<Dequantized> steps_of(const Graph& body, const Node& n) {
  const auto* q = n.op.as<Quantize>();
  const auto* d = n.op.as<Dequantize>();
  if ((!q && !d) || (q ? q->block_size : d->block_size) != 0) return std::nullopt;
  if (!is_byte(body.type(q ? n.outputs[0] : n.inputs[0]).element)) return std::nullopt;
  const auto scale = number_of(body, n, 1), zero_point = number_of(body, n, 2);
  if (!scale || !zero_point) return std::nullopt;
  return Dequantized{*scale, *zero_point};
}

namespace {

/// What a conversion in the body reads, when that is a parameter and is converted for one reader only.
ValueId converted_parameter(const Graph& body, ValueId v) {
  const auto p = body.producer(v);
  if (!p.valid() || body.readers(v) != 1) return {};
  const auto& n = body.node(p);
  if (!n.op.is<Convert>() && !(n.op.is<Dequantize>() && steps_of(body, n))) return {};
  const auto from = n.inputs[0];
  return body.value(from).kind == ValueKind::input && body.readers(from) == 1 ? from : ValueId{};
}

/// The stage that continues from `running`, or nothing when the body is no chain there.
std::optional<Stage> stage_after(const Node& node, const Graph& body, ValueId running) {
  if (body.readers(running) != 1 || body.is_result(running)) return std::nullopt;
  const auto use = body.value(running).uses[0];
  Stage stage;
  stage.node = &body.node(use.node);
  stage.running = use.input;
  if (stage.node->outputs.size() != 1) return std::nullopt;
  std::size_t others = 0;
  for (std::size_t i = 0; i < stage.node->inputs.size(); ++i) {
    const auto v = stage.node->inputs[i];
    if (i == stage.running || !v.valid()) continue;
    if (const auto* constant = body.constant(v)) {
      if (others == 0) stage.constant = constant;  // further constants are read from the node itself
    } else if (const auto extra = extra_of(node, body, v); extra && others == 0) {
      stage.extra = extra;
    } else if (const auto from = converted_parameter(body, v); from.valid() && others == 0) {
      stage.extra = extra_of(node, body, from);
      stage.operand_element = body.type(from).element;
      stage.dequantized = steps_of(body, body.node(body.producer(v)));
      if (!stage.extra) return std::nullopt;
    } else {
      return std::nullopt;
    }
    if (others++ == 0) stage.operand_dims = body.type(v).shape.known() ? body.type(v).shape.sizes() : Dims{};
  }
  return stage;
}

}  // namespace

std::optional<std::vector<Stage>> chain_of(const Node& node) {
  std::vector<Stage> stages;
  const Graph* body = epilogue(node);
  if (!body) return stages;
  ValueId running = body->inputs()[0];
  const auto order = body->order();
  auto at = order.begin();
  while (!(body->is_result(running) && body->value(running).uses.empty())) {
    auto stage = stage_after(node, *body, running);
    if (!stage) return std::nullopt;
    running = stage->node->outputs[0];
    at = std::find(at, order.end(), body->producer(running));
    stage->end = static_cast<std::size_t>(at - order.begin()) + 1;
    stages.push_back(*stage);
  }
  return stages;
}

Cost stage_cost(const Machine& machine, const Op& op, std::size_t elements) {
  const auto count = static_cast<double>(elements);
  if (op.has(Trait::curve)) return cost_of(machine, Family::vector_math, 1.2 * count, 0, 0);
  return cost_of(machine, Family::vector_light, (op.has(Trait::divides) ? 1.5 : 0.3) * count, 0, 0);
}

Cost later_stage_cost(const Machine& machine, const Op& op, std::size_t elements) {
  const auto count = static_cast<double>(elements);
  if (op.has(Trait::curve)) return cost_of(machine, Family::stage_math, 0.5 * count, 0, 0);
  return cost_of(machine, Family::vector_light, (op.has(Trait::divides) ? 0.5 : 0.15) * count, 0, 0);
}

}  // namespace lamina
