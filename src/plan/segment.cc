#include "plan/segment.h"

#include <algorithm>

namespace lamina {
namespace {

constexpr std::int64_t kMostShapeElements = 64;

bool is_known(const Graph& graph, ValueId v) {
  const auto& type = graph.type(v);
  return type.element != ElementType::undefined && type.shape.known();
}

/// A small integer tensor that is computed at run time: the kind of value that shapes come from.
bool may_shape(const Graph& graph, ValueId v) {
  if (!v.valid() || graph.constant(v)) return false;
  const auto& type = graph.type(v);
  return (is_integer(type.element) || type.element == ElementType::boolean) && type.shape.known() &&
         type.shape.count().size() <= kMostShapeElements;
}

}  // namespace

Segment segment(const Graph& graph) {
  Segment s;
  std::vector<bool> unknown(graph.value_slots(), false);
  for (const auto id : graph.order()) {
    const auto& n = graph.node(id);
    const bool blocked = std::any_of(n.inputs.begin(), n.inputs.end(),
                                     [&](ValueId v) { return v.valid() && unknown[v.index]; });
    const bool known =
        std::all_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return is_known(graph, v); });
    std::vector<ValueId> wanted;
    if (!blocked && !known && !n.op.has(Trait::data_dependent))
      std::copy_if(n.inputs.begin(), n.inputs.end(), std::back_inserter(wanted),
                   [&](ValueId v) { return may_shape(graph, v); });
    if (blocked || !wanted.empty()) {
      s.waiting.push_back(id);
      s.wanted.insert(s.wanted.end(), wanted.begin(), wanted.end());
    } else {
      s.planned.push_back(id);
      if (!known) s.dynamic.push_back(id);
    }
    if (blocked || !known)
      for (auto v : n.outputs) unknown[v.index] = true;
  }
  return s;
}

RestGraph rest_of(const Graph& graph, const Segment& segment) {
  RestGraph rest;
  rest.graph.name = graph.name;
  rest.graph.sources = graph.sources;
  std::vector<ValueId> map(graph.value_slots());
  const auto import = [&](ValueId v) {
    if (!v.valid()) return ValueId{};
    auto& to = map[v.index];
    if (to.valid()) return to;
    if (const auto* constant = graph.constant(v))
      return to = rest.graph.add_constant(*constant, graph.value(v).name);
    auto type = graph.type(v);
    to = rest.graph.add_input(graph.value(v).name, type);
    rest.cut.push_back(v);
    rest.values.push_back(std::find(segment.wanted.begin(), segment.wanted.end(), v) != segment.wanted.end());
    return to;
  };
  for (const auto id : segment.waiting) {
    const auto& n = graph.node(id);
    std::vector<ValueId> in;
    std::vector<std::string> names;
    for (auto v : n.inputs) in.push_back(import(v));
    for (auto v : n.outputs) names.push_back(graph.value(v).name);
    const auto copy =
        rest.graph.add_node(n.op, in, n.name, static_cast<int>(n.outputs.size()), n.bodies, names);
    rest.graph.set_sources(copy, n.sources);
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
      map[n.outputs[i].index] = rest.graph.node(copy).outputs[i];
  }
  for (std::size_t r = 0; r < graph.results().size(); ++r) {
    const auto v = graph.results()[r].value;
    const auto p = graph.producer(v);
    if (!p.valid()) continue;
    const auto waits = std::find(segment.waiting.begin(), segment.waiting.end(), p) != segment.waiting.end();
    const auto dynamic =
        std::find(segment.dynamic.begin(), segment.dynamic.end(), p) != segment.dynamic.end();
    if (!waits && !dynamic) continue;
    rest.graph.add_result(graph.results()[r].name, import(v));
    rest.results.push_back(r);
  }
  return rest;
}

}  // namespace lamina
