#include "offline/places.h"

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "base/numbers.h"
#include "offline/faq.h"

namespace lamina {
namespace {

std::vector<ValueId> joined(const Graph& g, const std::vector<NodeId>& nodes) {
  std::vector<ValueId> out;
  for (const auto id : nodes) out.insert(out.end(), g.node(id).outputs.begin(), g.node(id).outputs.end());
  return out;
}

}  // namespace

Places::Places(const Graph& graph) : graph_(graph) {
  for (std::uint32_t i = 0; i < graph.node_slots(); ++i) {
    const Node& n = graph.node({i});
    if (n.erased()) continue;
    std::set<std::string_view> names;
    for (const auto s : n.sources) names.insert(graph.sources[s.index].name);
    if (names.empty() && !n.name.empty()) names.insert(n.name);
    for (const auto name : names) layers_[std::string(name)].push_back({i});
  }
}

const std::vector<NodeId>* Places::nodes_of(const std::string& name) const {
  const auto it = layers_.find(name);
  return it == layers_.end() ? nullptr : &it->second;
}

/// Outputs are those of its last nodes: of which other nodes of the layer read nothing.
Places::Layer Places::layer(const std::vector<NodeId>& nodes) const {
  Layer out;
  const auto own = joined(graph_, nodes);
  const std::set<ValueId> made(own.begin(), own.end());
  const std::set<NodeId> members(nodes.begin(), nodes.end());
  const auto stays_inside = [&](ValueId v) {
    const auto& uses = graph_.value(v).uses;
    return !graph_.is_result(v) && !uses.empty() &&
           std::all_of(uses.begin(), uses.end(), [&](const Use& u) { return members.contains(u.node); });
  };
  std::map<ValueId, std::size_t> seen;  // of a layer of several nodes, which may read a value in each
  for (const auto id : nodes) {
    const Node& n = graph_.node(id);
    for (std::uint32_t i = 0; i < n.inputs.size(); ++i) {
      const auto v = n.inputs[i];
      if (made.contains(v) || (nodes.size() > 1 && !v.valid())) continue;
      const auto [at, fresh] = seen.emplace(v, out.inputs.size());
      if (fresh || nodes.size() == 1)
        out.inputs.push_back({v, {{id, i}}});
      else
        out.inputs[at->second].readers.push_back({id, i});
    }
    if (nodes.size() == 1 || !std::all_of(n.outputs.begin(), n.outputs.end(), stays_inside))
      for (const auto v : n.outputs) out.outputs.push_back(v);
  }
  return out;
}

ValueId Places::value_named(const std::string& name) const {
  const auto v = graph_.find_value(name);
  if (v.valid()) return v;
  for (const auto& r : graph_.results())
    if (r.name == name) return r.value;
  return {};
}

bool Places::is_known(const std::string& name) const { return nodes_of(name) || value_named(name).valid(); }

Places::Name Places::parse(const std::string& text) const {
  Name whole{text};
  if (is_known(text)) return whole;
  const auto first = text.find(':'), last = text.rfind(':');
  if (first == std::string::npos) return whole;
  if (const auto port = parse_integer<int>(std::string_view(text).substr(0, first));
      port && *port >= 0 && is_known(text.substr(first + 1)))
    return {text.substr(first + 1), *port, -1};
  if (const auto port = parse_integer<int>(std::string_view(text).substr(last + 1)); port && *port >= 0)
    return {text.substr(0, last), -1, *port};
  return whole;
}

void Places::unknown(const std::string& name) const {
  const bool known = std::any_of(graph_.sources.begin(), graph_.sources.end(),
                                 [&](const Source& s) { return s.name == name; });
  if (known)
    fail_faq(ErrorCode::bad_input, 51,
             "No node with name {}: the reader left that layer out, since it only passes on its input", name);
  std::vector<std::string> names;
  for (const auto& [layer, nodes] : layers_) names.push_back(layer);
  for (const auto v : graph_.inputs()) names.push_back(graph_.value(v).name);
  fail_faq(ErrorCode::bad_input, 51, "No node with name {}{}{}", name, did_you_mean(name, names),
           name.ends_with(".xml") ? " (-o FILE.xml says where to write)" : "");
}

ValueId Places::layer_output(const Name& name, const Layer& layer) const {
  const auto port = static_cast<std::size_t>(std::max(name.out, 0));
  if (port >= layer.outputs.size())
    fail_faq(ErrorCode::bad_input, 34, "{}: output port {} of a node that has {}", name.name, port,
             layer.outputs.size());
  return layer.outputs[port];
}

ValueId Places::output(const std::string& text) const {
  const auto name = parse(text);
  if (const auto* nodes = nodes_of(name.name)) {
    const auto all = layer(*nodes);
    if (name.in < 0) return layer_output(name, all);
    const auto port = static_cast<std::size_t>(name.in);
    if (port >= all.inputs.size() || !all.inputs[port].value.valid())
      fail_faq(ErrorCode::bad_input, 29, "{}: input port {} of a node that has {}", name.name, port,
               all.inputs.size());
    return all.inputs[port].value;
  }
  const auto v = value_named(name.name);
  if (!v.valid()) unknown(name.name);
  if (name.in >= 0 || name.out > 0)
    fail_faq(ErrorCode::bad_input, 34, "{}: \"{}\" is a tensor, which has no ports", text, name.name);
  return v;
}

std::vector<CutPlace> Places::inputs(const std::string& text) const {
  const auto name = parse(text);
  const auto* nodes = nodes_of(name.name);
  if (!nodes) {
    const auto v = value_named(name.name);
    if (!v.valid()) unknown(name.name);
    if (name.in >= 0) fail_faq(ErrorCode::bad_input, 28, "{}: \"{}\" has no input port", text, name.name);
    if (name.out > 0)
      fail_faq(ErrorCode::bad_input, 34, "{}: output port {} of one that has 1", text, name.out);
    return {{{}, v, graph_.value(v).name}};
  }
  const auto all = layer(*nodes);
  if (name.out >= 0)
    return {{{}, layer_output(name, all), fmt::format("{}/placeholder_out_port_{}", name.name, name.out)}};
  if (name.in >= 0 && static_cast<std::size_t>(name.in) >= all.inputs.size())
    fail_faq(ErrorCode::bad_input, 29, "{}: input port {} of a node that has {}", name.name, name.in,
             all.inputs.size());
  std::vector<CutPlace> out;
  for (std::size_t i = 0; i < all.inputs.size(); ++i) {
    const auto& [v, readers] = all.inputs[i];
    if (name.in >= 0 ? i != static_cast<std::size_t>(name.in) : !v.valid() || graph_.constant(v)) continue;
    if (v.valid()) out.push_back({readers, v, fmt::format("{}/placeholder_port_{}", name.name, i)});
  }
  if (out.empty()) fail_faq(ErrorCode::bad_input, 33, "{}: it reads only constants", text);
  return out;
}

}  // namespace lamina
