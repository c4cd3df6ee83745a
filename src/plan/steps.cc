#include "plan/steps.h"

#include <algorithm>

namespace lamina {
namespace {

bool has(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<std::int64_t> rows_of(const Plan& plan, const std::vector<std::uint32_t>& tensors) {
  std::vector<std::int64_t> out;
  for (const auto t : tensors) out.push_back(t == kNoTensor ? 0 : plan.tensors[t].row);
  return out;
}

/// Everything that the node would write lies where it belongs already.
bool all_in_place(const Subviews& subviews, NodeId node) {
  const auto it = subviews.in_place.find(node);
  return subviews.free.contains(node) || (it != subviews.in_place.end() && !has(it->second, false));
}

PlanStep step_of(const Plan& plan, Tensors& tensors, NodeId id, const Offer& offer) {
  const Node& node = plan.graph.node(id);
  PlanStep step;
  step.node = id;
  step.name = plan.graph.label(id);
  step.label = offer.label;
  step.recipe = offer;
  step.packed = offer.packed;
  step.scratch = offer.scratch;
  step.cost = offer.cost.us();
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool read = node.inputs[i].valid() && !has(offer.consumed, i);
    step.in.push_back(read ? tensors.of(node.inputs[i], offer.inputs[i]) : kNoTensor);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    step.out.push_back(tensors.of(node.outputs[i], offer.outputs[i]));
  return step;
}

}  // namespace

std::vector<KernelStep> add_kernel_steps(Plan& plan, Tensors& tensors, std::vector<Picked> picked,
                                         const Subviews& subviews, WeightStore& weights) {
  std::vector<KernelStep> out;
  std::map<NodeId, Choice*> choices;
  for (auto& choice : plan.choices) choices[choice.node] = &choice;
  const auto say_in_place = [&](NodeId node) {
    if (const auto it = choices.find(node); it != choices.end()) it->second->label = "in_place";
  };
  for (auto& p : picked) {
    if (subviews.free.contains(p.node)) {  // not even a reorder of its input
      say_in_place(p.node);
      continue;
    }
    auto step = step_of(plan, tensors, p.node, p.offer);
    if (all_in_place(subviews, p.node)) {
      say_in_place(p.node);
    } else if (p.offer.is_view) {
      tensors.alias(step.out[0], step.in[0]);
    } else {
      MakeContext context{weights, rows_of(plan, step.in), rows_of(plan, step.out)};
      if (const auto it = subviews.in_place.find(p.node); it != subviews.in_place.end())
        context.in_place = it->second;
      out.push_back({plan.steps.size(), std::move(context), std::move(p.offer)});
      plan.steps.push_back(std::move(step));
    }
  }
  return out;
}

void add_dynamic_step(Plan& plan, Tensors& tensors, NodeId id, WeightStore& weights, const Machine& machine) {
  const Node& node = plan.graph.node(id);
  PlanStep step;
  step.kind = PlanStep::Kind::dynamic;
  step.node = id;
  step.name = plan.graph.label(id);
  if (machine.here) step.dynamic = dynamic_kernel(NodeView(plan.graph, id, machine), weights);
  step.label = step.dynamic ? step.dynamic->label() : "reference";
  for (const auto v : node.inputs) step.in.push_back(v.valid() ? tensors.of(v, Layout::plain) : kNoTensor);
  for (const auto v : node.outputs) step.out.push_back(tensors.add_dynamic(v));
  Choice choice;
  choice.node = id;
  choice.label = step.label + " (its output shape depends on data)";
  plan.steps.push_back(std::move(step));
  plan.choices.push_back(std::move(choice));
}

}  // namespace lamina
