#include "formats/ir/write/net_writer.h"

#include <algorithm>

#include "base/element_types.h"
#include "formats/ir/write/text_out.h"
#include "ops/control.h"
#include "ops/elementwise.h"

namespace lamina::ir {
namespace {

constexpr std::size_t kMaxWarnings = 20;
/// A constant of which more than this part would become 0 keeps its precision.
constexpr double kMostVanished = 0.75;

void add_dims(pugi::xml_node port, const Shape& shape) {
  if (!shape.ranked()) return;
  for (const Dim& dim : shape.dims())
    port.append_child("dim").text().set(dim.known() ? static_cast<long long>(dim.size()) : -1LL);
}

/// Whether the layer converts halves back that a file stores instead of f32.
bool is_decompression(const Graph& graph, const Node& node) {
  const auto* convert = node.op.as<Convert>();
  if (!convert || convert->destination_type != ElementType::f32) return false;
  const Tensor* stored = graph.constant(node.inputs[0]);
  return stored && is_half(stored->element_type());
}

constexpr std::string_view kDecompression = R"(<attribute name="decompression" version="0"/>)";

}  // namespace

void Writing::warn(const std::string& text) {
  if (report.warnings.size() < kMaxWarnings)
    report.warnings.push_back(text);
  else if (report.warnings.size() == kMaxWarnings)
    report.warnings.push_back("more warnings of this kind");
}

void append_xml(pugi::xml_node parent, const std::string& text) {
  if (text.empty()) return;
  pugi::xml_document document;
  if (!document.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_fragment)) return;
  for (const auto node : document.children()) parent.append_copy(node);
}

NetWriter::NetWriter(Writing& writing, const LegalGraph& legal, pugi::xml_node net, bool is_body)
    : writing_(writing),
      legal_(legal),
      graph_(legal.graph),
      is_body_(is_body),
      layers_(net.append_child("layers")),
      edges_(net.append_child("edges")),
      outlets_(graph_.value_slots()),
      written_(graph_.value_slots()) {
  if (writing.options.compress_to_fp16 || writing.options.keep_halves) exact_ = exact_values(graph_);
  if (!is_body_) plan_results();
}

void NetWriter::write() {
  write_parameters();
  const auto order = graph_.order();
  for (const auto id : order)
    if (const auto* read = graph_.node(id).op.as<ReadValue>();
        read && read->variable_type == ElementType::undefined)
      untyped_variables_.insert(read->variable_id);
  for (const auto id : order) write_node(id);
  write_results();
}

void NetWriter::write_parameters() {
  parameters_.assign(graph_.inputs().size(), UINT32_MAX);
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    if (left_out_.contains(i)) continue;
    const ValueId v = graph_.inputs()[i];
    const auto& notes = writing_.loaded.ir_notes.tensors;
    const auto note = is_body_ ? notes.end() : notes.find(graph_.value(v).name);
    LayerText text;
    text.name = parameter_name(v);
    text.type = "Parameter";
    text.version = "opset1";
    text.set("shape", shape_text(graph_.type(v).shape));
    text.set("element_type", element_type_text(writing_.stored(graph_.type(v).element)));
    OutPort port = port_of(v);
    if (writing_.options.version == 10 && ends_.contains(v.index)) port.names.clear();
    add(std::move(text), {std::move(port)}, note != notes.end() ? note->second.layer_rt_info : "");
    outlets_[v.index] = last();
    written_[v.index] = true;
    parameters_[i] = last().layer;
  }
}

void NetWriter::write_results() {
  for (std::size_t i = 0; i < graph_.results().size(); ++i) {
    const Result& result = graph_.results()[i];
    LayerText text;
    text.name = is_body_ ? result.name : result.name + "/sink_port_0";
    text.type = "Result";
    text.version = "opset1";
    text.inputs = {copies_.contains(i) ? copied(result) : value(result.value)};
    auto layer = add(std::move(text), {});
    if (!is_body_) layer.append_attribute("output_names").set_value(names_text(names_of(result)).c_str());
    results_.push_back(last().layer);
  }
}

Outlet NetWriter::copied(const Result& result) {
  const TensorType& type = graph_.type(result.value);
  LayerText text{result.name, "Convert", "opset1", {}, {value(result.value)}};
  text.set("destination_type", element_type_text(writing_.stored(type.element)));
  const ValueId other = graph_.find_value(result.name);
  add(std::move(text), {{type, other.valid() ? Strings() : names_of(result)}});
  return last();
}

Outlet NetWriter::value(ValueId v) {
  LAMINA_CHECK(v.valid(), "a layer lacks an input");
  if (!written_[v.index]) {
    LAMINA_CHECK(graph_.constant(v), "value '{}' has no layer", graph_.value(v).name);
    outlets_[v.index] = write_constant(v);
    written_[v.index] = true;
  }
  return outlets_[v.index];
}

Outlet NetWriter::write_constant(ValueId v) {
  const bool exact = v.index < exact_.size() && exact_[v.index];
  const auto& name = graph_.value(v).name;
  return write_tensor(graph_.value(v).constant, ends_.contains(v.index) ? name : inner_name(name), port_of(v),
                      !exact);
}

Outlet NetWriter::constant(const Tensor& tensor, const std::string& name, bool as_it_is) {
  OutPort port{{tensor.element_type(), Shape::of(tensor.shape())}, {}};
  if (!as_it_is) return write_tensor(tensor, name, std::move(port), false);
  LayerText text{name, "Const", "opset1", {}, {}};
  text.set("element_type", element_type_text(tensor.element_type()));
  text.set("shape", dims_text(tensor.shape()));
  text.set("offset", std::to_string(writing_.bin.add(tensor)));
  text.set("size", std::to_string(tensor.bytes()));
  ++writing_.report.constants;
  add(std::move(text), {std::move(port)});
  return last();
}

Outlet NetWriter::reshaped(ValueId v, const Tensor& tensor, const std::string& name) {
  const bool exact = v.index < exact_.size() && exact_[v.index];
  return write_tensor(tensor, name, {{tensor.element_type(), Shape::of(tensor.shape())}, {}}, !exact);
}

Outlet NetWriter::write_tensor(const Tensor& tensor, const std::string& name, OutPort port,
                               bool may_compress) {
  const ElementType type = tensor.element_type();
  const bool wide = type == ElementType::f32 || type == ElementType::f64;
  Tensor stored = type == ElementType::u1 ? high_bits_first(tensor) : tensor;
  const auto& options = writing_.options;
  if (wide && options.keep_halves && options.version > 10 && may_compress)
    if (Halves halves = halves_of(tensor); halves.inexact == 0)
      return write_halves(halves.tensor, name, std::move(port));
  if (wide && options.compress_to_fp16 && (may_compress || writing_.halves_all())) {
    Halves halves = halves_of(tensor);
    const bool fits = halves.overflown == 0 && static_cast<double>(halves.vanished) <=
                                                   kMostVanished * static_cast<double>(halves.others);
    if (!writing_.halves_all()) {
      if (fits) return write_halves(halves.tensor, name, std::move(port));
      if (halves.overflown != 0)
        writing_.warn(fmt::format("constant \"{}\" stays {}: {} of its {} numbers are beyond f16", name,
                                  name_of(type), halves.overflown, tensor.size()));
    } else {
      if (!fits)
        writing_.warn(fmt::format("constant \"{}\": {} of its {} numbers became infinite as f16, {} became 0",
                                  name, halves.overflown, tensor.size(), halves.vanished));
      stored = std::move(halves.tensor);
    }
  }
  LayerText text{name, "Const", "opset1", {}, {}};
  text.set("element_type", element_type_text(stored.element_type()));
  text.set("shape", dims_text(stored.shape()));
  text.set("offset", std::to_string(writing_.bin.add(stored)));
  text.set("size", std::to_string(stored.bytes()));
  ++writing_.report.constants;
  add(std::move(text), {std::move(port)});
  return last();
}

Outlet NetWriter::write_halves(const Tensor& halves, const std::string& name, OutPort port) {
  LayerText text{name, "Convert", "opset1", {}, {}};
  text.inputs = {constant(halves, name + "_compressed")};
  text.set("destination_type", element_type_text(port.type.element));
  add(std::move(text), {std::move(port)}, std::string(kDecompression));
  return last();
}

void NetWriter::write_node(NodeId id) {
  const Node& node = graph_.node(id);
  auto outputs = outputs_of(node);
  std::string rt_info = layer_notes(node);
  if (writing_.options.version > 10 && is_decompression(graph_, node) &&
      rt_info.find("decompression") == std::string::npos)
    rt_info += kDecompression;
  if (const auto* convert = node.op.as<Convert>();
      convert && writing_.halves_all() && writing_.stored(convert->destination_type) == ElementType::f16 &&
      writing_.stored(graph_.type(node.inputs[0]).element) == ElementType::f16) {
    outlets_[node.outputs[0].index] = value(node.inputs[0]);  // both are f16 there
    written_[node.outputs[0].index] = true;
    return;
  }
  if (!write_control(*this, node, outputs, rt_info)) {
    LayerText text = layer_of(*this, node);
    text.name = layer_name(node);
    outputs.insert(outputs.end(), text.more_outputs.begin(), text.more_outputs.end());
    add(std::move(text), outputs, rt_info);
  }
  const Outlet made = last();
  for (std::uint32_t i = 0; i < node.outputs.size(); ++i) {
    outlets_[node.outputs[i].index] = {made.layer, i};
    written_[node.outputs[i].index] = true;
  }
  // who reads what is assigned reads the value itself: the layer is an end
  if (node.op.is<Assign>()) outlets_[node.outputs[0].index] = value(node.inputs[0]);
}

/// The layer's own <rt_info>, where the node still is that layer.
std::string NetWriter::layer_notes(const Node& node) const {
  const auto& notes = writing_.loaded.ir_notes.layers;
  if (writing_.options.version < 11 || node.sources.size() != 1) return {};
  const auto& sources = writing_.loaded.graph.sources;
  const auto source = node.sources[0].index;
  if (source >= sources.size() || sources[source].name != node.name) return {};
  const auto it = notes.find(node.name);
  return it == notes.end() ? std::string() : it->second;
}

std::vector<OutPort> NetWriter::outputs_of(const Node& node) const {
  std::vector<OutPort> out;
  for (const auto v : node.outputs) out.push_back(port_of(v));
  return out;
}

OutPort NetWriter::port_of(ValueId v) const {
  OutPort port{graph_.type(v), names_of(v)};
  if (is_body_ || writing_.options.version < 11) return port;
  const auto& notes = writing_.loaded.ir_notes.tensors;
  if (const auto it = notes.find(graph_.value(v).name); it != notes.end()) port.rt_info = it->second.rt_info;
  return port;
}

std::string NetWriter::unique(const std::string& name) {
  std::string out = name.empty() ? "layer" : name;
  while (!layer_names_.emplace(out, 0).second) out = fmt::format("{}_{}", name, ++layer_names_[name]);
  return out;
}

pugi::xml_node NetWriter::add(LayerText text, const std::vector<OutPort>& outputs,
                              const std::string& rt_info) {
  const auto id = static_cast<std::uint32_t>(ports_.size());
  auto layer = layers_.append_child("layer");
  layer.append_attribute("id").set_value(id);
  layer.append_attribute("name").set_value(unique(text.name).c_str());
  layer.append_attribute("type").set_value(text.type.c_str());
  layer.append_attribute("version").set_value(text.version.c_str());
  if (!text.data.empty()) {
    auto data = layer.append_child("data");
    for (const auto& [name, value] : text.data) data.append_attribute(name.c_str()).set_value(value.c_str());
  }
  if (!rt_info.empty() && writing_.options.version > 10) append_xml(layer.append_child("rt_info"), rt_info);
  write_ports(layer, text, outputs);
  for (std::uint32_t i = 0; i < text.inputs.size(); ++i) {
    const Outlet from = text.inputs[i];
    auto edge = edges_.append_child("edge");
    edge.append_attribute("from-layer").set_value(from.layer);
    edge.append_attribute("from-port").set_value(first_port_[from.layer] + from.port);
    edge.append_attribute("to-layer").set_value(id);
    edge.append_attribute("to-port").set_value(i);
  }
  ++writing_.report.layers;
  first_port_.push_back(static_cast<std::uint32_t>(text.inputs.size()));
  auto& types = ports_.emplace_back();
  for (const auto& output : outputs) types.push_back(output.type);
  return layer;
}

void NetWriter::write_ports(pugi::xml_node layer, const LayerText& text,
                            const std::vector<OutPort>& outputs) {
  std::uint32_t port_id = 0;
  const auto port_of_type = [&](pugi::xml_node side, const TensorType& type) {
    auto port = side.append_child("port");
    port.append_attribute("id").set_value(port_id++);
    port.append_attribute("precision")
        .set_value(std::string(precision_text(writing_.stored(type.element))).c_str());
    return port;
  };
  if (!text.inputs.empty()) {
    auto side = layer.append_child("input");
    for (const Outlet from : text.inputs) add_dims(port_of_type(side, type(from)), type(from).shape);
  }
  if (outputs.empty()) return;
  auto side = layer.append_child("output");
  for (const OutPort& output : outputs) {
    auto port = port_of_type(side, output.type);
    if (!output.names.empty()) port.append_attribute("names").set_value(names_text(output.names).c_str());
    add_dims(port, output.type.shape);
    if (!output.rt_info.empty()) append_xml(port.append_child("rt_info"), output.rt_info);
  }
}

}  // namespace lamina::ir
