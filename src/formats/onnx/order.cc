#include "formats/onnx/order.h"

#include <queue>
#include <unordered_set>

#include "formats/read_error.h"
#include "formats/reading_points.h"

namespace lamina::onnx {
namespace {
constexpr std::size_t kReadOfName = 64;  // bytes whose reading takes as long as to look a name up
}

template <class F>
void Orders::for_each_read(const NodeProto& node, F f) {
  ++nodes_seen_;
  const auto read = [&](std::string_view name) {
    note_read(kReadOfName);
    f(name);
  };
  note_read(kReadOfName);
  for (auto name : node.inputs)
    if (!name.empty()) read(name);
  for (const auto& a : node.attributes)
    if (a.g)
      for (auto name : free_names(*a.g)) read(name);
}

const Names& Orders::free_names(const GraphProto& graph) {
  if (const auto it = free_names_.find(&graph); it != free_names_.end()) return it->second;
  std::unordered_set<std::string_view> own;
  for (const auto& v : graph.inputs) own.insert(v.name);
  for (const auto& t : graph.initializers) {
    note_read(kReadOfName);
    own.insert(t.name);
  }
  for (const auto& t : graph.sparse_initializers) own.insert(t.values.name);
  for (const auto& n : graph.nodes) {
    note_read(kReadOfName * (1 + n.outputs.size()));
    own.insert(n.outputs.begin(), n.outputs.end());
  }
  Names out;
  const auto note = [&](std::string_view name) {
    if (own.insert(name).second) out.push_back(name);
  };
  for (const auto& n : graph.nodes) for_each_read(n, note);
  for (const auto& v : graph.outputs) note(v.name);
  return free_names_.emplace(&graph, std::move(out)).first->second;
}

const std::vector<std::size_t>& Orders::sorted(const std::vector<NodeProto>& nodes) {
  if (const auto it = sorted_.find(&nodes); it != sorted_.end()) return it->second;
  std::unordered_map<std::string_view, std::size_t> maker;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for (auto name : nodes[n].outputs)
      if (note_read(kReadOfName); !name.empty() && !maker.emplace(name, n).second)
        fail(ErrorCode::bad_file, "the value \"{}\" is made by two nodes", name);

  std::vector<std::vector<std::size_t>> readers(nodes.size());
  std::vector<std::size_t> waiting(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for_each_read(nodes[n], [&](std::string_view name) {
      if (const auto it = maker.find(name); it != maker.end()) {
        readers[it->second].push_back(n);
        ++waiting[n];
      }
    });

  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (waiting[n] == 0) ready.push(n);
  std::vector<std::size_t> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const auto n = ready.top();
    ready.pop();
    order.push_back(n);
    note_read(kReadOfName * (1 + readers[n].size()));
    for (auto r : readers[n])
      if (--waiting[r] == 0) ready.push(r);
  }
  for (std::size_t n = 0; n < nodes.size() && order.size() != nodes.size(); ++n)
    if (waiting[n] != 0)
      fail_reading(FileProblem::cycle, "the nodes form a cycle with \"{}\" ({})",
                   nodes[n].name.empty() && !nodes[n].outputs.empty() ? nodes[n].outputs[0] : nodes[n].name,
                   nodes[n].op_type);
  return sorted_.emplace(&nodes, std::move(order)).first->second;
}

}  // namespace lamina::onnx
