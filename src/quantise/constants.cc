#include "quantise/constants.h"

#include <algorithm>
#include <set>

#include "graph/subgraph.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"

namespace lamina {

std::optional<std::vector<NodeId>> constant_nodes(const Graph& g, ValueId v) {
  constexpr std::size_t kMost = 16;
  std::vector<NodeId> out, work;
  const auto read = [&](ValueId x) {
    if (!x.valid() || g.constant(x)) return true;
    const auto maker = g.producer(x);
    if (!maker.valid()) return false;
    if (std::find(out.begin(), out.end(), maker) == out.end()) out.push_back(maker), work.push_back(maker);
    return out.size() <= kMost;
  };
  if (!read(v)) return std::nullopt;
  while (!work.empty()) {
    const auto id = work.back();
    work.pop_back();
    for (const auto x : g.node(id).inputs)
      if (!read(x)) return std::nullopt;
  }
  std::vector<NodeId> sorted;
  std::set<NodeId> wanted(out.begin(), out.end());
  if (wanted.size() < 2) return out;
  for (const auto id : g.order())
    if (wanted.contains(id)) sorted.push_back(id);
  return sorted;
}

ValueId computed_input(const Graph& g, const Node& node) {
  for (const auto v : node.inputs)
    if (v.valid() && !constant_nodes(g, v)) return v;
  return {};
}

std::optional<std::vector<double>> constant_numbers(const Graph& g, ValueId v) {
  if (const auto* tensor = g.constant(v)) return to_doubles(tensor->to_aligned());
  const auto nodes = constant_nodes(g, v);
  if (!nodes) return std::nullopt;
  Subgraph part(g);
  for (const auto id : *nodes) part.add_node(id);
  part.add_result("numbers", v);
  if (!part.graph.inputs().empty()) return std::nullopt;
  return to_doubles(interpret(part.graph, {})[0].to_aligned());
}

}  // namespace lamina
