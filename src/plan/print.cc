/// Plans as text: a line per tensor and step.
#include "base/text.h"
#include "plan/plan.h"

namespace lamina {
namespace {

std::string quoted(std::string_view name) { return fmt::format("\"{}\"", clipped(printable(name), 100)); }

std::string tensor_name(std::uint32_t t) { return t == kNoTensor ? "_" : fmt::format("t{}", t); }

std::string tensor_names(const std::vector<std::uint32_t>& tensors) {
  std::string out;
  for (const auto t : tensors) out += (out.empty() ? "" : ", ") + tensor_name(t);
  return out;
}

std::string_view name_of(PlanStep::Kind kind) {
  switch (kind) {
    case PlanStep::Kind::kernel:
      return "kernel";
    case PlanStep::Kind::reorder:
      return "reorder";
    case PlanStep::Kind::copy:
      return "copy";
    case PlanStep::Kind::dynamic:
      break;
  }
  return "dynamic";
}

std::string place_of(const PlanTensor& t) {
  switch (t.place) {
    case Place::arena:
      return fmt::format("arena at {}", t.offset);
    case Place::constant:
      return "constant";
    case Place::input:
      return fmt::format("input {}", t.index);
    case Place::result:
      return fmt::format("result {}", t.index);
    case Place::dynamic:
      break;
  }
  return "made at run time";
}

std::string line_of(const Plan& plan, std::uint32_t index) {
  const auto& t = plan.tensors[index];
  auto out = fmt::format("t{} {} {} {}", index, to_string(t.type), name_of(t.layout),
                         quoted(plan.graph.value(t.value).name));
  if (t.place != Place::dynamic) out += fmt::format(": {} bytes", t.bytes);
  out += (t.place == Place::dynamic ? ": " : ", ") +
         (t.root == index ? place_of(t) : fmt::format("in t{} at {}", t.root, t.shift));
  if (t.row != 0) out += fmt::format(", rows of {}", t.row);
  return out + "\n";
}

std::string line_of(const PlanStep& step, std::size_t index) {
  auto out = fmt::format("s{} {} {}: {} ({}) -> ({}), {:.3g} us", index, name_of(step.kind),
                         quoted(step.name), step.recipe.kernel.empty() ? step.label : to_text(step.recipe),
                         tensor_names(step.in), tensor_names(step.out), step.cost);
  if (step.scratch != 0) out += fmt::format(", scratch {} bytes", step.scratch);
  return out + "\n";
}

/// The line of the deferred subgraph.
std::string rest_line(const Plan& plan) {
  std::string inputs;
  for (std::size_t i = 0; i < plan.rest_inputs.size(); ++i)
    inputs += fmt::format("{}{}{}", i ? ", " : "", tensor_name(plan.rest_inputs[i]),
                          plan.rest_values[i] ? " by value" : "");
  return fmt::format("rest: {} nodes ({}) -> (results {})\n", plan.rest->node_count(), inputs,
                     fmt::join(plan.rest_results, ", "));
}

}  // namespace

std::string to_string(const Choice::Lost& lost) {
  return fmt::format("{} ({})", lost.label, name_of(lost.layout));
}

std::string to_text(const Plan& plan) {
  auto out = fmt::format("plan: {} tensors, {} steps, {} thread{}\n", plan.tensors.size(), plan.steps.size(),
                         plan.threads, plan.threads == 1 ? "" : "s");
  out += fmt::format("memory: arena {} bytes, scratch at {}; {} if none shared, {} alive at once\n",
                     plan.memory.arena, plan.scratch_offset, plan.memory.sum, plan.memory.live);
  for (std::size_t i = 0; i < plan.inputs.size(); ++i)
    out += fmt::format("input {} {}: {}\n", i, quoted(plan.graph.value(plan.graph.inputs()[i]).name),
                       tensor_name(plan.inputs[i]));
  for (std::uint32_t t = 0; t < plan.tensors.size(); ++t) out += line_of(plan, t);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) out += line_of(plan.steps[s], s);
  for (std::size_t r = 0; r < plan.results.size(); ++r)
    out += fmt::format("result {} {}: {}\n", r, quoted(plan.graph.results()[r].name),
                       tensor_name(plan.results[r]));
  if (plan.rest) out += rest_line(plan);
  return out;
}

}  // namespace lamina
