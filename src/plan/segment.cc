#include "plan/segment.h"

#include <algorithm>
#include <set>

#include "graph/subgraph.h"

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
  Subgraph part(graph);
  for (const auto id : segment.waiting) part.add_node(id);
  std::set<NodeId> later(segment.waiting.begin(), segment.waiting.end());
  later.insert(segment.dynamic.begin(), segment.dynamic.end());
  const std::set<ValueId> wanted(segment.wanted.begin(), segment.wanted.end());
  for (std::size_t r = 0; r < graph.results().size(); ++r) {
    const auto v = graph.results()[r].value;
    const auto p = graph.producer(v);
    if (!p.valid() || !later.contains(p)) continue;
    part.add_result(graph.results()[r].name, v);
    rest.results.push_back(r);
  }
  for (const auto v : part.cut) rest.values.push_back(wanted.contains(v));
  rest.graph = std::move(part.graph);
  rest.cut = std::move(part.cut);
  return rest;
}

}  // namespace lamina
