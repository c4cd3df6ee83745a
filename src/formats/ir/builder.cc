#include "formats/ir/builder.h"

#include <algorithm>

#include "formats/ir/converters.h"
#include "formats/ir/legacy/legacy.h"
#include "formats/ir/text.h"
#include "formats/reading_points.h"
#include "graph/limits.h"
#include "ops/control.h"
#include "ops/elementwise.h"

namespace lamina::ir {
namespace {

constexpr std::size_t kMaxWarnings = 20;

bool is_foreign_constant(const Layer& layer) {
  return layer.is("Const") && is_foreign_element_type(layer.data.attribute("element_type").value());
}

/// "name=value" of every attribute.
Strings attribute_texts(const Layer& layer) {
  Strings out;
  for (const auto attribute : layer.data.attributes())
    out.push_back(fmt::format("{}={}", attribute.name(), attribute.value()));
  return out;
}

}  // namespace

void Reading::add_unsupported(const Layer& layer, const std::string& reason) {
  const auto [it, added] =
      unsupported_.emplace(std::pair(layer.type + " " + reason, layer.version), loaded.unsupported.size());
  if (added) {
    Unsupported entry;
    entry.type = layer.type;
    if (layer.opset == 0) entry.domain = layer.version;
    entry.version = layer.opset;
    entry.reason = reason;
    loaded.unsupported.push_back(std::move(entry));
  }
  loaded.unsupported[it->second].nodes.push_back(layer.name);
}

void Reading::warn(pugi::xml_node node, const std::string& text) {
  ++warnings_;
  if (warnings_ <= kMaxWarnings)
    loaded.warnings.push_back(xml.at(node, text));
  else if (warnings_ == kMaxWarnings + 1)
    loaded.warnings.push_back(fmt::format("{}: more warnings of this kind", xml.path()));
}

void Reading::check_variables() const {
  for (const auto& [variable, node] : assigns)
    if (!reads.contains(variable)) xml.fail(node, "variable '{}' is assigned but never read", variable);
}

TensorType parameter_type(const Reading& reading, const Layer& layer) {
  const XmlFile& xml = reading.xml;
  if (reading.legacy()) return legacy::parameter_type(reading, layer);
  if (!layer.data) xml.fail(layer.xml, "parameter '{}' has no <data>", layer.name);
  const auto type = xml.attribute(layer.data, "element_type"), dims = xml.attribute(layer.data, "shape");
  const auto element = parse_element_type(type);
  if (!element)
    xml.fail(layer.data, "parameter '{}' has the element type '{}', which lamina does not have", layer.name,
             type.substr(0, 80));
  const auto shape = parse_shape(dims);
  if (!shape) xml.fail(layer.data, "parameter '{}' has the shape \"{}\"", layer.name, dims.substr(0, 80));
  if (const auto wrong = beyond_limits(*shape); !wrong.empty())
    xml.fail(layer.data, "parameter '{}' {}", layer.name, wrong);
  return {reading.widened(*element), *shape};
}

GraphBuilder::GraphBuilder(Reading& reading, Graph& graph, const Network& net)
    : reading_(reading), graph_(graph), net_(net), values_(net.layers.size()) {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i].resize(net.layers[i].outputs.size());
}

ValueId GraphBuilder::add_parameter(std::uint32_t index, const TensorType& entering) {
  const Layer& layer = net_.layers[index];
  auto type = parameter_type(reading_, layer);
  if (entering.element != ElementType::undefined) type.element = entering.element;
  if (entering.shape.ranked()) type.shape = entering.shape;
  const ValueId value = graph_.add_input(output_name(layer, 0), std::move(type));
  if (layer.outputs.size() > 1)
    reading_.xml.fail(layer.xml, "parameter '{}' has {} outputs", layer.name, layer.outputs.size());
  if (!layer.outputs.empty()) values_[index][0] = value;
  return value;
}

void GraphBuilder::build(const std::vector<std::uint32_t>& results) {
  std::vector<bool> needed(net_.layers.size());
  std::vector<std::uint32_t> pending = results;
  // A variable that is assigned and not read by anything else may still be asked for.
  for (const auto* kind : {"Assign", "ReadValue", "Memory"})
    for (const auto layer : net_.all(kind)) pending.push_back(layer);
  while (!pending.empty()) {
    const auto index = pending.back();
    pending.pop_back();
    if (needed[index]) continue;
    needed[index] = true;
    for (const Feed& feed : net_.layers[index].feeds) pending.push_back(feed.layer);
  }
  for (const auto index : net_.order)
    if (needed[index]) convert_layer(index);
}

void GraphBuilder::convert_layer(std::uint32_t index) {
  const Layer& layer = net_.layers[index];
  note_read(4 * kReadOfNode);
  if (layer.is("Parameter")) {
    // a body's parameter that no port map names has no value
    if (values_[index].empty() || !values_[index][0].valid())
      reading_.xml.fail(layer.xml, "parameter '{}' of the body gets no value", layer.name);
    return;
  }
  if (layer.is("Const") && !is_foreign_constant(layer)) {
    if (layer.outputs.size() != 1)
      reading_.xml.fail(layer.xml, "constant '{}' has {} outputs", layer.name, layer.outputs.size());
    return;  // made when somebody reads it
  }
  if (layer.is("Result")) {
    if (layer.feeds.size() != 1)
      reading_.xml.fail(layer.xml, "result '{}' has {} inputs, wanted 1", layer.name, layer.feeds.size());
    return;
  }
  const std::size_t first = graph_.node_slots();
  const SourceId source = reading_.loaded.graph.add_source(layer.name, layer.type);
  try {
    reading_.notes.before("", layer.type, layer.name);
    if (is_foreign_constant(layer))
      throw NotSupported{fmt::format("element type {}", layer.data.attribute("element_type").value())};
    if (reading_.legacy()) {
      legacy::lower_layer(*this, index, values_[index]);
    } else {
      LayerContext context(*this, index, values_[index]);
      convert(context);
    }
    reading_.notes.after("", layer.type, layer.name, graph_, first);
  } catch (const NotSupported& missing) {
    make_opaque(index, missing.reason);
  } catch (const LocatedError&) {
    throw;
  } catch (const Error& error) {
    throw LocatedError(error, reading_.xml.at(layer.xml, error.what()));
  }
  for (std::size_t i = first; i < graph_.node_slots(); ++i)
    graph_.set_sources(NodeId{static_cast<std::uint32_t>(i)}, {source});
  compare_types(index);
}

void GraphBuilder::make_opaque(std::uint32_t index, const std::string& reason) {
  const Layer& layer = net_.layers[index];
  reading_.add_unsupported(layer, reason);
  if (is_foreign_constant(layer) && layer.data.attribute("offset"))
    reading_.loaded.ir_notes.foreign.emplace(layer.name, reading_.blobs.bytes(reading_.xml, layer));
  Opaque opaque;
  opaque.domain = layer.opset == 0 ? layer.version : "";
  opaque.type = layer.type;
  opaque.version = layer.version;
  opaque.attributes = attribute_texts(layer);
  std::vector<ValueId> inputs;
  for (const Feed& feed : layer.feeds) inputs.push_back(value(feed));
  Strings names;
  for (std::size_t i = 0; i < layer.outputs.size(); ++i) names.push_back(output_name(layer, i));
  if (names.empty()) names.push_back(layer.name);
  const NodeId node = graph_.add_node(opaque, inputs, layer.name, static_cast<int>(names.size()), {}, names);
  const std::vector<ValueId> outputs = graph_.node(node).outputs;
  for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
    values_[index][i] = outputs[i];
    const Port& port = layer.outputs[i];
    auto shape = port.shape;
    if (is_foreign_constant(layer))
      shape = parse_shape(layer.data.attribute("shape").value()).value_or(port.shape);
    if (beyond_limits(shape).empty())
      graph_.set_type(outputs[i], {reading_.widened(port.element), std::move(shape)});
  }
}

// The file's shapes are informative: inference is right, but the reader should hear of it. Until IR 7 they
// are part of the network.
void GraphBuilder::compare_types(std::uint32_t index) {
  const Layer& layer = net_.layers[index];
  for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
    const ValueId made = values_[index][i];
    if (!made.valid()) {
      if (layer.used[i]) reading_.xml.fail(layer.xml, "{} '{}' has no output {}", layer.type, layer.name, i);
      continue;
    }
    const Shape& shape = graph_.type(made).shape;
    if (layer.outputs[i].shape.fits(shape) || layer.outputs[i].shape.rank() == 0) continue;
    if (reading_.legacy() && reading_.reshaped) continue;
    if (reading_.legacy())
      reading_.xml.fail(layer.xml, "output {} of {} '{}' is {} by the file, but {} by its inputs", i,
                        layer.type, layer.name, to_string(layer.outputs[i].shape), to_string(shape));
    reading_.warn(
        layer.xml,
        fmt::format("output {} of {} '{}' is {} in the file, but {} by its inputs, which is used", i,
                    layer.type, layer.name, to_string(layer.outputs[i].shape), to_string(shape)));
  }
}

ValueId GraphBuilder::result(std::uint32_t layer) { return value(net_.layers[layer].feeds[0]); }

void GraphBuilder::replace_output(std::uint32_t layer, std::size_t port, ValueId value) {
  values_[layer][port] = value;
}

ValueId GraphBuilder::value(Feed feed) {
  ValueId& known = values_[feed.layer][feed.port];
  if (!known.valid() && net_.layers[feed.layer].is("Const")) known = add_constant(feed.layer);
  if (!known.valid())
    reading_.xml.fail(net_.layers[feed.layer].xml, "layer '{}' gives no output {}",
                      net_.layers[feed.layer].name, feed.port);
  return known;
}

ValueId GraphBuilder::add_constant(std::uint32_t index) {
  const Layer& layer = net_.layers[index];
  if (reading_.legacy()) return add_stored(legacy::constant(reading_, layer), output_name(layer, 0));
  Tensor tensor = reading_.blobs.constant(reading_.xml, layer, Blobs::BitOrder::high_first);
  if (const auto size = reading_.xml.integer(layer.data, "size");
      size > static_cast<std::int64_t>(tensor.bytes()))
    reading_.warn(layer.data,
                  fmt::format("constant '{}' has {} bytes and needs {}", layer.name, size, tensor.bytes()));
  return add_stored(std::move(tensor), output_name(layer, 0));
}

ValueId GraphBuilder::add_stored(Tensor tensor, const std::string& name) {
  const ElementType type = tensor.element_type(), wanted = reading_.widened(type);
  if (wanted == type) return graph_.add_constant(std::move(tensor), name);
  const ValueId stored = graph_.add_constant(std::move(tensor), name + "/stored");
  Convert convert;
  convert.destination_type = wanted;
  const NodeId node = graph_.add_node(convert, {stored}, name, 1, {}, {name});
  return graph_.node(node).outputs[0];
}

Tensor GraphBuilder::low_first_bits(Feed feed) {
  const Layer& layer = net_.layers[feed.layer];
  if (!layer.is("Const") ||
      parse_element_type(layer.data.attribute("element_type").value()) != ElementType::u1)
    return {};
  return reading_.blobs.constant(reading_.xml, layer, Blobs::BitOrder::low_first);
}

}  // namespace lamina::ir
