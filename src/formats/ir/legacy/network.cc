// What a file of the versions 2 to 7 says of its layers and ports, and what it leaves out.
#include <algorithm>
#include <set>
#include <string_view>

#include "formats/ir/legacy/legacy.h"
#include "formats/ir/text.h"
#include "graph/limits.h"

namespace lamina::ir::legacy {
namespace {

/// The precision; nothing where the file gives none; UNSPECIFIED and CUSTOM are `undefined`.
std::optional<ElementType> precision_of(const XmlFile& xml, pugi::xml_node node) {
  const auto attribute = node.attribute("precision");
  if (!attribute) return std::nullopt;
  const std::string_view text = trim(attribute.value());
  if (same_word(text, "CUSTOM")) return ElementType::undefined;
  const auto type = parse_element_type(text);
  if (!type)
    xml.fail(node, "precision \"{}\" is not supported, wanted FP32, FP16, I32, I64, U8, ...",
             text.substr(0, 80));
  return type;
}

/// <data>, or as the first versions have it <convolution_data> and the like.
pugi::xml_node data_of(pugi::xml_node layer) {
  if (const auto data = layer.child("data")) return data;
  for (const auto child : layer.children())
    if (std::string_view(child.name()).ends_with("_data")) return child;
  return {};
}

void check_sizes(const XmlFile& xml, const Layer& layer, const Port& port) {
  for (const Dim& dim : port.shape.dims())
    if (!dim.known() || dim.is(0))
      xml.fail(layer.xml, "port {} of layer '{}' has the shape {}, wanted sizes of at least 1", port.id,
               layer.name, to_string(port.shape));
  if (const auto wrong = beyond_limits(port.shape); !wrong.empty())
    xml.fail(layer.xml, "port {} of layer '{}' {}", port.id, layer.name, wrong);
}

/// Element types of outputs: those of the ports, else the layer's.
void read_precisions(const XmlFile& xml, Layer& layer, std::optional<ElementType> of_net) {
  auto of_layer = precision_of(xml, layer.xml);
  if (!of_layer) of_layer = of_net;
  std::size_t i = 0;
  for (const auto port : layer.xml.child("output").children("port")) {
    const auto own = precision_of(xml, port);
    layer.outputs[i++].element = own ? *own : of_layer.value_or(ElementType::undefined);
  }
}

void check_edges(const XmlFile& xml, const Network& net) {
  for (const Layer& layer : net.layers)
    for (std::size_t i = 0; i < layer.feeds.size(); ++i) {
      if (layer.feeds[i].none()) continue;
      const Layer& from = net.layers[layer.feeds[i].layer];
      const Port& given = from.outputs[layer.feeds[i].port];
      if (given.shape != layer.inputs[i].shape)
        xml.fail(layer.xml,
                 "input port {} of layer '{}' is {}, but output port {} of '{}' that feeds it is {}",
                 layer.inputs[i].id, layer.name, to_string(layer.inputs[i].shape), given.id, from.name,
                 to_string(given.shape));
    }
}

void check_names(const XmlFile& xml, const Network& net) {
  std::set<std::string_view> names;
  for (const Layer& layer : net.layers)
    if (!layer.outputs.empty() && !names.insert(layer.name).second)
      xml.fail(layer.xml, "two layers are called '{}'", layer.name);
}

bool is_source(const Layer& layer) { return layer.is("Parameter") || layer.is("Const"); }

/// Every output that nobody reads is one of the network, in the order of the file. Inputs are when there is
/// nothing else.
void add_results(const XmlFile& xml, Network& net) {
  std::vector<Feed> found;
  for (const bool sources : {false, true}) {
    for (std::uint32_t i = 0; i < net.layers.size(); ++i)
      if (is_source(net.layers[i]) == sources && !(sources && net.layers[i].is("Const")))
        for (std::uint32_t port = 0; port < net.layers[i].outputs.size(); ++port)
          if (!net.layers[i].used[port]) found.push_back({i, port});
    if (!found.empty()) break;
  }
  if (found.empty()) xml.fail(xml.root(), "the network has no outputs");
  for (const Feed feed : found) add_result(net, feed);
}

}  // namespace

Network read_part(const XmlFile& xml, pugi::xml_node node) {
  Network net = ir::read_layers(xml, node);
  auto of_net = precision_of(xml, xml.root());
  for (Layer& layer : net.layers) {
    if (layer.is("Parameter") || layer.is("Result"))
      xml.fail(layer.xml, "layer '{}' is a {}, which IR has from version 10 on", layer.name, layer.type);
    layer.data = data_of(layer.xml);
    layer.opset = 0;
    read_precisions(xml, layer, of_net);
    for (const auto* ports : {&layer.inputs, &layer.outputs})
      for (const Port& port : *ports) check_sizes(xml, layer, port);
    if (!layer.is("Input")) continue;
    layer.type = "Parameter";
    if (!layer.inputs.empty()) xml.fail(layer.xml, "input '{}' has inputs", layer.name);
    if (layer.outputs.size() == 1 && layer.outputs[0].shape.rank() == 0)
      xml.fail(layer.xml, "input '{}' has no dimensions", layer.name);
  }
  check_edges(xml, net);
  return net;
}

std::uint32_t add_parameter(Network& net, std::uint32_t to, std::uint32_t port) {
  const auto index = static_cast<std::uint32_t>(net.layers.size());
  Layer added;
  {
    const Layer& reader = net.layers[to];
    added.name = reader.inputs.size() == 1 ? reader.name : fmt::format("{}.{}", reader.name, port);
    added.type = "Parameter";
    added.xml = reader.xml;
    Port out;
    out.shape = reader.inputs[port].shape;
    if (!reader.outputs.empty()) out.element = reader.outputs[0].element;
    added.outputs.push_back(std::move(out));
    added.used.push_back(true);
  }
  net.layers.push_back(std::move(added));
  net.layers[to].feeds[port] = {index, 0};
  return index;
}

std::uint32_t add_result(Network& net, Feed feed) {
  const auto index = static_cast<std::uint32_t>(net.layers.size());
  Layer added;
  added.name = output_name(net.layers[feed.layer], feed.port);
  added.type = "Result";
  added.xml = net.layers[feed.layer].xml;
  added.inputs.push_back({0, ElementType::undefined, net.layers[feed.layer].outputs[feed.port].shape, {}});
  added.feeds.push_back(feed);
  net.layers[feed.layer].used[feed.port] = true;
  net.layers.push_back(std::move(added));
  return index;
}

Network read_network(const XmlFile& xml, int version) {
  Network net = read_part(xml, xml.root());
  if (net.layers.empty()) xml.fail(xml.root(), "IR version {}: the network has no layers", version);
  check_names(xml, net);
  const std::size_t count = net.layers.size();
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t port = 0; port < net.layers[i].feeds.size(); ++port)
      if (net.layers[i].feeds[port].none()) add_parameter(net, i, port);
  add_results(xml, net);
  sort_layers(xml, net);
  return net;
}

void note_calibration(Reading& reading, const Network& net) {
  const auto statistics = reading.xml.root().child("statistics");
  const auto wants_int8 = [](const Layer& layer) {
    return same_word(layer.data.attribute("quantization_level").value(), "I8");
  };
  if (statistics.first_child() || std::any_of(net.layers.begin(), net.layers.end(), wants_int8))
    reading.warn(statistics, "the network is calibrated for int8; it runs in f32");
}

TensorType parameter_type(const Reading& reading, const Layer& layer) {
  if (layer.outputs.size() != 1)
    reading.xml.fail(layer.xml, "input '{}' has {} outputs, wanted 1", layer.name, layer.outputs.size());
  const Port& port = layer.outputs[0];
  const ElementType type = port.element == ElementType::undefined ? ElementType::f32 : port.element;
  return {reading.widened(type), port.shape};
}

ElementType blob_type(const XmlFile& xml, const Layer& layer, pugi::xml_node blob) {
  auto type = precision_of(xml, blob);
  if (!type && !layer.outputs.empty()) type = layer.outputs[0].element;
  return !type || *type == ElementType::undefined ? ElementType::f32 : *type;
}

Tensor constant(Reading& reading, const Layer& layer) {
  const XmlFile& xml = reading.xml;
  const auto blobs = layer.xml.child("blobs");
  pugi::xml_node blob = blobs.child("custom");
  if (!blob) blob = blobs.child("weights");
  if (!blob) blob = blobs.first_child();
  if (!blob) xml.fail(layer.xml, "constant '{}' has no <blobs>", layer.name);
  const auto what = fmt::format("constant '{}'", layer.name);
  const TensorType type{blob_type(xml, layer, blob), layer.outputs[0].shape};
  Tensor tensor = reading.blobs.tensor(xml, blob, what, type, Blobs::BitOrder::high_first);
  if (const auto size = Blobs::declared_bytes(xml, blob, what); size > tensor.bytes())
    reading.warn(blob, fmt::format("{} has {} bytes and needs {}", what, size, tensor.bytes()));
  return tensor;
}

}  // namespace lamina::ir::legacy
