#include "exec/variables.h"

#include <algorithm>
#include <map>

#include "graph/subgraph.h"
#include "ops/control.h"

namespace lamina {
namespace {

/// The nodes of one variable.
struct Nodes {
  std::vector<NodeId> reads;
  std::vector<NodeId> assigns;
};

bool has_variables(const Graph& graph) {
  for (std::uint32_t n = 0; n < graph.node_slots(); ++n) {
    const auto& node = graph.node({n});
    if (node.erased()) continue;
    if (node.op.is<ReadValue>() || node.op.is<Assign>()) return true;
    if (std::any_of(node.bodies.begin(), node.bodies.end(), has_variables)) return true;
  }
  return false;
}

/// Variables by name, so that their order does not depend on that of the nodes.
std::map<std::string, Nodes> nodes_of(const Graph& graph) {
  std::map<std::string, Nodes> out;
  for (std::uint32_t n = 0; n < graph.node_slots(); ++n) {
    const auto& node = graph.node({n});
    if (node.erased()) continue;
    if (const auto* read = node.op.as<ReadValue>()) out[read->variable_id].reads.push_back({n});
    if (const auto* assign = node.op.as<Assign>()) out[assign->variable_id].assigns.push_back({n});
    if (std::any_of(node.bodies.begin(), node.bodies.end(), has_variables))
      fail(ErrorCode::unsupported, "node \"{}\" ({}): variables in a body cannot be kept", graph.label({n}),
           node.op.name());
  }
  for (const auto& [name, nodes] : out) {
    if (nodes.reads.empty())
      fail(ErrorCode::unsupported, "variable \"{}\" is assigned, but never read", name);
    if (nodes.assigns.size() > 1)
      fail(ErrorCode::unsupported, "variable \"{}\" is assigned {} times, wanted once", name,
           nodes.assigns.size());
  }
  return out;
}

ValueId initial_input(const Graph& graph, NodeId read) {
  const auto& inputs = graph.node(read).inputs;
  return inputs.empty() ? ValueId() : inputs[0];
}

bool same_value(const Graph& graph, ValueId a, ValueId b) {
  if (a == b) return true;
  const auto *first = graph.constant(a), *second = graph.constant(b);
  return first && second && first->same_as(*second);
}

TensorType type_of(const Graph& graph, const std::string& name, const Nodes& nodes) {
  auto type = graph.type(graph.node(nodes.reads[0]).outputs[0]);
  for (const auto read : nodes.reads) {
    const auto& other = graph.type(graph.node(read).outputs[0]);
    const auto shape = merge(type.shape, other.shape);
    if (other.element != type.element || !shape)
      fail(ErrorCode::unsupported, "variable \"{}\" is read as {} and as {}", name, to_string(type),
           to_string(other));
    type.shape = *shape;
    if (!same_value(graph, initial_input(graph, nodes.reads[0]), initial_input(graph, read)))
      fail(ErrorCode::unsupported, "variable \"{}\" has two initial values", name);
  }
  for (const auto assign : nodes.assigns) {
    const auto& assigned = graph.type(graph.node(assign).inputs[0]);
    const bool known = assigned.element != ElementType::undefined && type.element != ElementType::undefined;
    if ((known && assigned.element != type.element) || !type.shape.fits(assigned.shape))
      fail(ErrorCode::unsupported, "variable \"{}\" is {}, and {} is assigned to it", name, to_string(type),
           to_string(assigned));
  }
  return type;
}

Tensor zeros(const std::string& name, const TensorType& type) {
  if (type.element == ElementType::undefined || !type.shape.ranked())
    fail(ErrorCode::unsupported, "variable \"{}\" is {} and has no initial value", name, to_string(type));
  Dims dims;
  for (const auto& d : type.shape.dims()) dims.push_back(d.known() ? d.size() : 0);
  return Tensor(type.element, dims);
}

std::vector<Variable> variables_of(const Graph& graph, const std::map<std::string, Nodes>& nodes) {
  std::vector<Variable> out;
  std::size_t computed = 0;
  for (const auto& [name, of] : nodes) {
    Variable v;
    v.name = name;
    v.type = type_of(graph, name, of);
    const auto initial = initial_input(graph, of.reads[0]);
    if (!initial.valid())
      v.initial = zeros(name, v.type);
    else if (const auto* constant = graph.constant(initial))
      v.initial = constant->clone();  // the graph may forget its own
    else
      v.computed = computed++;
    out.push_back(std::move(v));
  }
  return out;
}

/// The nodes that lead to these values, with all inputs of the graph.
Graph part_before(const Graph& graph, const std::map<std::string, ValueId>& wanted) {
  std::vector<bool> needed(graph.node_slots(), false);
  for (const auto& [name, value] : wanted) {
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const auto node = graph.producer(open.back());
      open.pop_back();
      if (!node.valid() || needed[node.index]) continue;
      if (const auto* read = graph.node(node).op.as<ReadValue>())
        fail(ErrorCode::unsupported, "the initial value of variable \"{}\" depends on variable \"{}\"", name,
             read->variable_id);
      needed[node.index] = true;
      for (const auto v : graph.node(node).inputs)
        if (v.valid()) open.push_back(v);
    }
  }
  Subgraph part(graph);
  for (const auto v : graph.inputs()) part.add_input(v);
  for (const auto id : graph.order())
    if (needed[id.index]) part.add_node(id);
  for (const auto& [name, v] : wanted) part.add_result(name, v);
  return std::move(part.graph);
}

void replace_reads(Graph& graph, Variable& variable, const std::vector<NodeId>& reads) {
  const auto input = graph.add_input({}, variable.type);
  const auto name = graph.value(graph.node(reads[0]).outputs[0]).name;
  for (const auto read : reads) {
    graph.replace(graph.node(read).outputs[0], input);
    graph.erase(read);
  }
  graph.set_value_name(input, name);
}

void replace_assign(Graph& graph, Variable& variable, NodeId assign) {
  const auto value = graph.node(assign).inputs[0];
  graph.replace(graph.node(assign).outputs[0], value);
  graph.erase(assign);
  variable.result = graph.results().size();
  graph.add_result(variable.name, value);
}

}  // namespace

std::vector<Variable> variables_of(const Graph& graph) { return variables_of(graph, nodes_of(graph)); }

Stateless without_variables(Graph graph) {
  Stateless out;
  const auto nodes = nodes_of(graph);
  if (nodes.empty()) {
    out.graph = std::move(graph);
    return out;
  }
  out.variables = variables_of(graph, nodes);
  std::map<std::string, ValueId> initial;
  for (const auto& v : out.variables)
    if (!v.initial.valid()) initial[v.name] = initial_input(graph, nodes.at(v.name).reads[0]);
  if (!initial.empty()) out.initial = part_before(graph, initial);
  for (auto& v : out.variables) replace_reads(graph, v, nodes.at(v.name).reads);
  for (auto& v : out.variables)
    for (const auto assign : nodes.at(v.name).assigns) replace_assign(graph, v, assign);
  graph.erase_unused();
  out.graph = std::move(graph);
  return out;
}

}  // namespace lamina
