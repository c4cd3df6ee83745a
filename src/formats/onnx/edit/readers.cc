/// Finds the readers of names in a graph that is changed, and names that are no longer read.
#include <algorithm>
#include <set>

#include "formats/onnx/edit/model.h"

namespace lamina::onnx {
namespace {

using Readers = std::map<std::string, std::size_t, std::less<>>;

void count_inputs(const EditGraph& graph, Readers& out) {
  for (const auto& node : graph.nodes)
    for (const auto& name : node.inputs)
      if (!name.empty()) ++out[name];
  for (const auto& name : graph.outputs) ++out[name];
}

/// Number of readers of each name: nodes of the graph and of bodies, and the graph's outputs.
Readers readers(const EditGraph& graph) {
  Readers out;
  count_inputs(graph, out);
  for (const auto& node : graph.nodes)
    each_body(node, [&](const EditGraph& body) { count_inputs(body, out); });
  return out;
}

}  // namespace

void remove_unread(EditGraph& graph, std::vector<std::string> was_read) {
  auto count = readers(graph);
  std::map<std::string, std::size_t, std::less<>> makers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const auto& name : graph.nodes[i].outputs) makers.emplace(name, i);
  std::vector<bool> gone(graph.nodes.size());
  std::set<std::string, std::less<>> names;
  while (!was_read.empty()) {
    const auto name = std::move(was_read.back());
    was_read.pop_back();
    if (const auto it = count.find(name); it != count.end() && it->second != 0) continue;
    names.insert(name);
    const auto maker = makers.find(name);
    if (maker == makers.end() || gone[maker->second]) continue;
    const auto& node = graph.nodes[maker->second];
    if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](const auto& output) {
          const auto it = count.find(output);
          return it != count.end() && it->second != 0;
        }))
      continue;
    gone[maker->second] = true;
    for (const auto& input : node.inputs)
      if (!input.empty() && count[input] != 0 && --count[input] == 0) was_read.push_back(input);
  }
  std::vector<EditNode> left;
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) left.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(left);
  const auto constants = [&] {
    std::set<std::string, std::less<>> all;
    for (const auto& t : graph.initializers) all.insert(t.name);
    return all;
  }();
  std::erase_if(graph.inputs,
                [&](const NamedPiece& v) { return names.contains(v.name) && constants.contains(v.name); });
  std::erase_if(graph.initializers, [&](const NamedPiece& t) { return names.contains(t.name); });
  std::erase_if(graph.values, [&](const NamedPiece& v) { return names.contains(v.name); });
}

}  // namespace lamina::onnx
