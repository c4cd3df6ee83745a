/// Epilogues in two: the stages that stay in the node, and the later ones.
#include <algorithm>

#include "base/element_types.h"
#include "graph/subgraph.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"

namespace lamina {
namespace {

/// The value of which alone something is read behind the first `kept` nodes of `order`, made by them or the
/// base result; invalid where there are several.
ValueId single_crossing(const Graph& body, const std::vector<NodeId>& order, std::size_t kept) {
  std::vector<bool> made(body.value_slots(), false);
  made[body.inputs()[0].index] = true;
  for (std::size_t i = 0; i < kept; ++i) made[body.node(order[i]).outputs[0].index] = true;
  ValueId crossing;
  std::size_t count = 0;
  const auto cross = [&](ValueId v) {
    if (v.valid() && made[v.index] && v != crossing) crossing = v, ++count;
  };
  for (std::size_t i = kept; i < order.size(); ++i)
    for (auto v : body.node(order[i]).inputs) cross(v);
  for (const auto& r : body.results()) cross(r.value);
  return count == 1 ? crossing : ValueId{};
}

/// Whole bytes everywhere: what the kernel of element-wise groups takes.
bool holds_bytes(const Graph& body) {
  for (std::uint32_t v = 0; v < body.value_slots(); ++v)
    if (body.value({v}).kind != ValueKind::none && is_storage_type(body.type({v}).element)) return false;
  return true;
}

/// The node with the first stages, which make `crossing`.
NodeId add_first(Graph& graph, const Node& old, const std::vector<NodeId>& stages, ValueId crossing) {
  const Graph& body = *epilogue(old);
  const auto base = base_inputs(old);
  std::vector<ValueId> inputs(old.inputs.begin(), old.inputs.begin() + static_cast<std::ptrdiff_t>(base));
  Subgraph first(body);
  first.add_input(body.inputs()[0]);
  for (const auto i : inputs_of_stages(old, stages.size())) {
    first.add_input(body.inputs()[i - base + 1]);
    inputs.push_back(old.inputs[i]);
  }
  for (const auto id : stages) first.add_node(id);
  first.add_result(body.results()[0].name, crossing);
  while (stages.empty() && !inputs.empty() && !inputs.back().valid()) inputs.pop_back();
  std::vector<Graph> bodies;
  if (!stages.empty() || old.bodies.size() > 1) bodies.push_back(std::move(first.graph));
  bodies.insert(bodies.end(), old.bodies.begin() + 1, old.bodies.end());  // others behind the epilogue stay
  const auto id = graph.add_node(old.op, std::move(inputs), old.name, -1, std::move(bodies));
  graph.set_sources(id, old.sources);
  return id;
}

/// Stages as one node, one pass over memory. `map`: what the values of the body are in the graph.
NodeId add_together(Graph& graph, const Graph& body, const std::vector<NodeId>& stages, ValueId crossing,
                    std::vector<ValueId>& map) {
  Subgraph rest(body);
  rest.add_input(crossing);
  std::vector<SourceId> sources;
  for (const auto id : stages) {
    rest.add_node(id);
    const auto& of = body.node(id).sources;
    sources.insert(sources.end(), of.begin(), of.end());
  }
  rest.add_result("y", body.results()[0].value);
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  std::vector<ValueId> inputs;
  for (const auto v : rest.cut) inputs.push_back(map[v.index]);
  const auto name = name_of_group(rest.graph);
  std::vector<Graph> bodies;
  bodies.push_back(std::move(rest.graph));
  const auto id = graph.add_node(Elementwise{}, inputs, name, -1, std::move(bodies));
  graph.set_sources(id, sources);
  map[body.results()[0].value.index] = graph.node(id).outputs[0];
  return id;
}

}  // namespace

std::vector<std::size_t> inputs_of_stages(const Node& node, std::size_t stages) {
  std::vector<std::size_t> out;
  const Graph& body = *epilogue(node);
  const auto order = body.order();
  for (std::size_t p = 1; p < body.inputs().size(); ++p) {
    const auto& uses = body.value(body.inputs()[p]).uses;
    if (std::any_of(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(stages), [&](NodeId id) {
          return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.node == id; });
        }))
      out.push_back(base_inputs(node) + p - 1);
  }
  return out;
}

std::optional<Graph> remaining_stages(const Node& node, std::size_t stages) {
  const Graph& body = *epilogue(node);
  const auto order = body.order();
  const auto crossing = single_crossing(body, order, stages);
  if (!crossing.valid()) return std::nullopt;
  Subgraph rest(body);
  rest.add_input(crossing);
  for (std::size_t p = 1; p < body.inputs().size(); ++p) rest.add_input(body.inputs()[p]);
  for (std::size_t i = stages; i < order.size(); ++i) rest.add_node(order[i]);
  rest.add_result("y", body.results()[0].value);
  return std::move(rest.graph);
}

std::vector<NodeId> decompose_epilogue(Graph& graph, NodeId id, std::size_t stages) {
  const Node old = graph.node(id);
  const Graph& body = *epilogue(old);
  const auto order = body.order();
  auto kept = std::min(stages, order.size());
  auto crossing = single_crossing(body, order, kept);
  while (!crossing.valid()) crossing = single_crossing(body, order, --kept);  // 0 always works
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(kept);
  const std::vector<NodeId> first(order.begin(), middle), later(middle, order.end());

  std::vector<NodeId> parts{add_first(graph, old, first, crossing)};
  std::vector<ValueId> map(body.value_slots());  // what the body's values are in the graph
  for (std::size_t p = 1; p < body.inputs().size(); ++p)
    map[body.inputs()[p].index] = old.inputs[base_inputs(old) + p - 1];
  map[crossing.index] = graph.node(parts[0]).outputs[0];
  const auto added = later.size() > 1 && holds_bytes(body)
                         ? std::vector<NodeId>{add_together(graph, body, later, crossing, map)}
                         : add_copies(graph, body, later, map);
  for (const auto part : added) {
    if (graph.node(part).sources.empty()) graph.set_sources(part, old.sources);
    parts.push_back(part);
  }
  const auto from = old.outputs[0], to = map[body.results()[0].value.index];
  const auto name = graph.value(from).name;
  graph.replace(from, to);
  graph.erase(id);
  graph.set_value_name(to, name);
  return parts;
}

}  // namespace lamina
