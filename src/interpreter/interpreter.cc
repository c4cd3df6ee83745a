#include "interpreter/interpreter.h"

#include <optional>

#include "base/cancellation.h"
#include "interpreter/seen_layers.h"
#include "ops/control.h"
#include "ops/eval.h"

namespace lamina {
namespace {

/// What the run reads of the variables, and what it will leave in them.
class State {
 public:
  explicit State(VariableValues* variables) : variables_(variables) {}

  /// The value of a ReadValue that has one from earlier runs.
  std::optional<Tensor> read(const Graph& graph, const Node& node) const {
    const auto* op = node.op.as<ReadValue>();
    if (!op || !variables_) return std::nullopt;
    const auto it = variables_->find(op->variable_id);
    if (it == variables_->end()) return std::nullopt;
    require_fit("variable", op->variable_id, it->second, graph.type(node.outputs[0]));
    return it->second;
  }

  void note(const Node& node, const std::vector<Tensor>& out) {
    if (const auto* op = node.op.as<Assign>(); op && variables_) assigned_[op->variable_id] = out.at(0);
  }

  void keep() {
    if (!variables_) return;
    auto all = *variables_;
    for (const auto& [name, value] : assigned_) all[name] = value.clone();
    *variables_ = std::move(all);
  }

 private:
  VariableValues* variables_;
  VariableValues assigned_;
};

}  // namespace

Error in_node(const Error& e, std::string_view label, const Node& node) {
  return Error(e.code(), fmt::format("node \"{}\" ({}): {}", label, node.op.name(), e.what()));
}

void check_input(const Graph& graph, ValueId input, const Tensor& tensor) {
  require_fit("input", graph.value(input).name, tensor, graph.type(input));
}

std::vector<Tensor> interpret_node(const Node& node, const std::vector<Tensor>& inputs) {
  return evaluate_node(node, inputs,
                       [](const Graph& body, const std::vector<Tensor>& in) { return interpret(body, in); });
}

std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                              const InterpreterOptions& options) {
  if (inputs.size() != graph.inputs().size())
    fail(ErrorCode::bad_input, "{} inputs given, wanted {}", inputs.size(), graph.inputs().size());
  std::vector<Tensor> values(graph.value_slots());
  std::vector<std::size_t> readers(graph.value_slots(), 0);
  for (std::uint32_t v = 0; v < values.size(); ++v) {
    readers[v] = graph.value({v}).uses.size();
    if (const auto* constant = graph.constant({v})) values[v] = *constant;
  }
  for (const auto& r : graph.results()) ++readers[r.value.index];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(graph, graph.inputs()[i], inputs[i]);
    values[graph.inputs()[i].index] = inputs[i];
  }
  State state(options.variables);
  for (const auto id : graph.order()) {
    const auto& node = graph.node(id);
    stop_point();
    SeenLayers::note(node);
    std::vector<Tensor> in;
    for (auto v : node.inputs) in.push_back(v.valid() ? values[v.index] : Tensor());
    std::vector<Tensor> out;
    try {
      if (auto value = state.read(graph, node))
        out = {std::move(*value)};
      else
        out = interpret_node(node, in);
      state.note(node, out);
    } catch (const Error& e) {
      throw in_node(e, graph.label(id), node);
    }
    if (options.observe) options.observe(graph, id, in, out);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (readers[node.outputs[i].index] != 0) values[node.outputs[i].index] = std::move(out[i]);
    for (auto v : node.inputs)
      if (v.valid() && --readers[v.index] == 0) values[v.index] = Tensor();
  }
  std::vector<Tensor> results;
  for (const auto& r : graph.results()) results.push_back(values[r.value.index]);
  state.keep();
  return results;
}

}  // namespace lamina
