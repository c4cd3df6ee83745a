/// The drawing of a model as its file has it: a box for each layer of the file.
#include <algorithm>
#include <functional>
#include <queue>
#include <set>

#include <fmt/format.h>

#include "draw/drawing.h"

namespace lamina {
namespace {

/// Nodes of a drawing that are drawn as one.
using Group = std::vector<std::size_t>;

/// Indices of groups so that each comes behind those that it reads, the first ones first; those on cycles are
/// left out.
std::vector<std::size_t> in_order(const std::vector<Group>& groups, const std::vector<DrawingEdge>& edges,
                                  const std::vector<std::size_t>& group_of) {
  std::vector<std::set<std::size_t>> readers(groups.size());
  std::vector<std::size_t> wanted(groups.size(), 0);
  for (const auto& e : edges) {
    const auto from = group_of[e.from], to = group_of[e.to];
    if (from != to && readers[from].insert(to).second) ++wanted[to];
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (wanted[i] == 0) ready.push(i);
  std::vector<std::size_t> out;
  while (!ready.empty()) {
    const auto i = ready.top();
    ready.pop();
    out.push_back(i);
    for (const auto to : readers[i])
      if (--wanted[to] == 0) ready.push(to);
  }
  return out;
}

/// Groups nodes by layer, in the order of their first nodes; a node without a layer is a group of its own.
class Layers {
 public:
  Layers(const Drawing& p, const Graph& g, const std::map<NodeId, std::size_t>& index,
         const std::vector<Source>& file)
      : p_(p), source_(p.nodes.size(), kNone) {
    for (const auto& [id, at] : index)
      if (const auto& sources = g.node(id).sources; !sources.empty() && sources[0].index < file.size())
        source_[at] = sources[0].index;
    group(std::set<std::size_t>());
    order_ = in_order(groups, p.edges, group_of);
    if (order_.size() == groups.size()) return;
    // Layers that are computed in turns, a part of one between parts of another, are drawn part by part.
    const std::set<std::size_t> good(order_.begin(), order_.end());
    std::set<std::size_t> apart;
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (!good.contains(i)) apart.insert(groups[i].begin(), groups[i].end());
    group(apart);
    order_ = in_order(groups, p.edges, group_of);
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;  ///< of each node
  const std::vector<std::size_t>& order() const { return order_; }
  std::size_t source(std::size_t node) const { return source_[node]; }

 private:
  void group(const std::set<std::size_t>& apart) {
    groups.clear();
    group_of.assign(p_.nodes.size(), 0);
    std::map<std::size_t, std::size_t> by_source;
    for (std::size_t n = 0; n < p_.nodes.size(); ++n) {
      auto at = groups.size();
      if (source_[n] != kNone && !apart.contains(n)) at = by_source.emplace(source_[n], at).first->second;
      if (at == groups.size()) groups.emplace_back();
      groups[at].push_back(n);
      group_of[n] = at;
    }
  }

  const Drawing& p_;
  std::vector<std::size_t> source_, order_;
};

/// One box for the nodes of a layer. It has the texts of the last node with the layer's own operator.
DrawingNode merged(const Drawing& p, const Group& group, const Source& layer) {
  std::size_t representative = group.back();
  for (const auto n : group)
    if (p.nodes[n].title == layer.type) representative = n;
  auto out = p.nodes[representative];
  out.title = layer.type;
  out.name = layer.name;
  if (group.size() == 1) return out;
  out.tooltip = fmt::format("{} \"{}\", read as {} operators", layer.type, layer.name, group.size());
  for (const auto n : group) {
    out.tooltip += "\n" + p.nodes[n].tooltip;
    if (n != representative)
      out.bodies.insert(out.bodies.end(), p.nodes[n].bodies.begin(), p.nodes[n].bodies.end());
  }
  return out;
}

}  // namespace

Drawing as_in_file(const Drawing& p, const Graph& graph, const std::vector<Source>& file,
                   std::map<NodeId, std::size_t>& nodes) {
  const Layers layers(p, graph, nodes, file);
  Drawing out = p;
  out.nodes.clear();
  out.edges.clear();
  std::vector<std::size_t> place(layers.groups.size());
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> ports;  // by node and port of it
  std::set<std::pair<std::size_t, std::size_t>> read;                // outputs that other layers read
  for (const auto& e : p.edges)
    if (layers.group_of[e.to] != layers.group_of[e.from]) read.emplace(e.from, e.port);
  for (const auto i : layers.order()) {
    const auto& group = layers.groups[i];
    place[i] = out.nodes.size();
    const auto source = layers.source(group[0]);
    if (source == Layers::kNone) {
      out.nodes.push_back(p.nodes[group[0]]);
    } else {
      out.nodes.push_back(merged(p, group, file[source]));
    }
    auto& node = out.nodes.back();
    node.ports.clear();
    for (const auto n : group)
      for (std::size_t port = 0; port < p.nodes[n].ports.size(); ++port) {
        if (group.size() > 1 && !read.contains({n, port})) continue;
        ports[{n, port}] = node.ports.size();
        node.ports.push_back(p.nodes[n].ports[port]);
      }
  }
  for (auto e : p.edges) {
    if (layers.group_of[e.from] == layers.group_of[e.to]) continue;
    const auto port = ports.find({e.from, e.port});
    e.port = port == ports.end() ? 0 : port->second;
    e.from = place[layers.group_of[e.from]];
    e.to = place[layers.group_of[e.to]];
    out.edges.push_back(std::move(e));
  }
  for (auto& [id, at] : nodes) at = place[layers.group_of[at]];
  return out;
}

}  // namespace lamina
