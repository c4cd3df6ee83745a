#include "formats/ir/network.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>

#include "base/limits.h"
#include "formats/ir/text.h"
#include "formats/reading_points.h"

namespace lamina::ir {
namespace {

constexpr std::size_t kMaxLayers = 1000000, kMaxDims = Limits::kRank, kMaxName = 65536;

/// (layer, port id) -> index of the port.
struct PortKey {
  std::uint32_t layer;
  std::int64_t id;
  bool operator==(const PortKey&) const = default;
};
struct PortKeyHash {
  std::size_t operator()(const PortKey& key) const {
    return std::hash<std::int64_t>()(key.id) * 1000003U + key.layer * 2654435761U;
  }
};
using PortIndex = std::unordered_map<PortKey, std::uint32_t, PortKeyHash>;

class NetworkReader {
 public:
  explicit NetworkReader(const XmlFile& xml) : xml_(xml) {}

  Network read(pugi::xml_node node) {
    const auto layers = node.child("layers");
    if (!layers) xml_.fail(node, "<{}> has no <layers>", node.name());
    for (const auto layer : layers.children("layer")) read_layer(layer);
    for (const auto edge : node.child("edges").children("edge")) read_edge(edge);
    return std::move(net_);
  }

 private:
  void read_layer(pugi::xml_node node) {
    if (net_.layers.size() >= kMaxLayers) xml_.fail(node, "more than {} layers", kMaxLayers);
    note_read(4 * kReadOfNode);
    const auto index = static_cast<std::uint32_t>(net_.layers.size());
    Layer layer;
    layer.xml = node;
    layer.data = node.child("data");
    layer.id = xml_.integer(node, "id");
    layer.name = node.attribute("name").value();
    if (layer.name.size() > kMaxName) xml_.fail(node, "a layer's name has {} bytes", layer.name.size());
    if (layer.name.empty()) layer.name = fmt::format("layer_{}", layer.id);
    layer.type = xml_.attribute(node, "type");
    if (layer.type.empty() || layer.type.size() > kMaxName)
      xml_.fail(node, "layer '{}' has no proper type", layer.name);
    layer.version = node.attribute("version").value();
    if (layer.version.starts_with("opset"))
      layer.opset = static_cast<int>(std::clamp<std::int64_t>(
          parse_integer(std::string_view(layer.version).substr(5)).value_or(0), 0, 1000000));
    if (!net_.by_id.emplace(layer.id, index).second)
      xml_.fail(node, "layer '{}': another layer has the id {} too", layer.name, layer.id);
    read_ports(index, node.child("input"), layer.inputs, inputs_);
    read_ports(index, node.child("output"), layer.outputs, outputs_);
    if (layer.name.size() > 256 && std::max(layer.inputs.size(), layer.outputs.size()) > 256)
      xml_.fail(node, "a layer has {} outputs and a name of {} bytes", layer.outputs.size(),
                layer.name.size());
    layer.feeds.resize(layer.inputs.size());
    layer.used.resize(layer.outputs.size());
    net_.layers.push_back(std::move(layer));
  }

  void read_ports(std::uint32_t layer, pugi::xml_node side, std::vector<Port>& ports, PortIndex& index) {
    for (const auto node : side.children("port")) {
      note_read(kReadOfNode);
      Port port;
      port.id = xml_.integer(node, "id");
      if (!index.emplace(PortKey{layer, port.id}, static_cast<std::uint32_t>(ports.size())).second)
        xml_.fail(node, "two ports have the id {}", port.id);
      if (const auto precision = node.attribute("precision"))
        port.element = parse_element_type(precision.value()).value_or(ElementType::undefined);
      auto names = split_names(node.attribute("names").value());
      if (!names.empty()) port.name = std::move(names.front());
      if (port.name.size() > kMaxName) xml_.fail(node, "a tensor's name has {} bytes", port.name.size());
      port.shape = read_dims(node);
      ports.push_back(std::move(port));
    }
  }

  Shape read_dims(pugi::xml_node port) {
    std::vector<Dim> dims;
    for (const auto node : port.children("dim")) {
      const std::string_view text = node.child_value();
      const auto size = parse_integer(text);
      if (!size || *size < -1) xml_.fail(node, "dimension \"{}\", wanted a size or -1", text.substr(0, 80));
      if (dims.size() >= kMaxDims) xml_.fail(port, "a port has more than {} dimensions", kMaxDims);
      dims.push_back(*size < 0 ? Dim() : Dim(*size));
    }
    return Shape(std::move(dims));
  }

  void read_edge(pugi::xml_node edge) {
    note_read(kReadOfNode);
    const auto from = find_layer(edge, "from-layer"), to = find_layer(edge, "to-layer");
    const auto from_port = find_port(edge, "from-port", from, outputs_, "output");
    const auto to_port = find_port(edge, "to-port", to, inputs_, "input");
    Feed& feed = net_.layers[to].feeds[to_port];
    if (!feed.none())
      xml_.fail(edge, "port {} of layer '{}' has two edges", net_.layers[to].inputs[to_port].id,
                net_.layers[to].name);
    feed = {from, from_port};
    net_.layers[from].used[from_port] = true;
  }

  std::uint32_t find_layer(pugi::xml_node edge, const char* name) {
    const auto id = xml_.integer(edge, name);
    const auto it = net_.by_id.find(id);
    if (it == net_.by_id.end()) xml_.fail(edge, "edge with {}=\"{}\", but there is no such layer", name, id);
    return it->second;
  }

  std::uint32_t find_port(pugi::xml_node edge, const char* name, std::uint32_t layer, const PortIndex& index,
                          std::string_view side) {
    const auto id = xml_.integer(edge, name);
    const auto it = index.find(PortKey{layer, id});
    if (it == index.end())
      xml_.fail(edge, "edge with {}=\"{}\", but layer '{}' has no such {} port", name, id,
                net_.layers[layer].name, side);
    return it->second;
  }

  const XmlFile& xml_;
  Network net_;
  PortIndex inputs_, outputs_;
};

void check_fed(const XmlFile& xml, const Network& net) {
  for (const Layer& layer : net.layers)
    for (std::size_t i = 0; i < layer.feeds.size(); ++i)
      if (layer.feeds[i].none())
        xml.fail(layer.xml, "no edge leads to input port {} of layer '{}'", layer.inputs[i].id, layer.name);
}

}  // namespace

bool Layer::is(std::string_view wanted) const { return same_word(type, wanted); }

std::vector<std::uint32_t> Network::all(std::string_view type) const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < layers.size(); ++i)
    if (layers[i].is(type)) out.push_back(i);
  return out;
}

Network read_layers(const XmlFile& xml, pugi::xml_node node) { return NetworkReader(xml).read(node); }

// The ready layer that comes first in the file is next: deep graphs cost no stack, and the order is stable.
void sort_layers(const XmlFile& xml, Network& net) {
  check_fed(xml, net);
  const auto count = net.layers.size();
  std::vector<std::vector<std::uint32_t>> readers(count);
  std::vector<std::size_t> waiting(count);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    waiting[i] = net.layers[i].feeds.size();
    if (waiting[i] == 0) ready.push(i);
    for (const Feed& feed : net.layers[i].feeds) readers[feed.layer].push_back(i);
    note_read(kReadOfNode + 16 * waiting[i]);
  }
  while (!ready.empty()) {
    const auto next = ready.top();
    ready.pop();
    net.order.push_back(next);
    note_read(kReadOfNode + 16 * readers[next].size());
    for (const auto reader : readers[next])
      if (--waiting[reader] == 0) ready.push(reader);
  }
  if (net.order.size() == count) return;
  const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](std::size_t n) { return n != 0; });
  const Layer& layer = net.layers[static_cast<std::size_t>(stuck - waiting.begin())];
  throw LocatedError(
      ErrorCode::bad_file,
      xml.at(layer.xml, fmt::format("the edges form a cycle through or before layer '{}'", layer.name)),
      FileProblem::cycle);
}

Network read_network(const XmlFile& xml, pugi::xml_node node) {
  Network net = read_layers(xml, node);
  sort_layers(xml, net);
  return net;
}

std::string output_name(const Layer& layer, std::size_t port) {
  if (port < layer.outputs.size() && !layer.outputs[port].name.empty()) return layer.outputs[port].name;
  return layer.outputs.size() > 1 ? fmt::format("{}.{}", layer.name, port) : layer.name;
}

}  // namespace lamina::ir
