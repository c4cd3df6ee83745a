#include "formats/ir/notes.h"

#include "formats/ir/text.h"

namespace lamina::ir {
namespace {

struct TextWriter final : pugi::xml_writer {
  std::string text;
  void write(const void* data, std::size_t size) override {
    text.append(static_cast<const char*>(data), size);
  }
};

}  // namespace

std::string inner_xml(pugi::xml_node node) {
  TextWriter out;
  for (const auto child : node.children())
    child.print(out, "", pugi::format_raw | pugi::format_no_declaration, pugi::encoding_utf8);
  return std::move(out.text);
}

IrNotes read_notes(const XmlFile& xml, const Network& net) {
  IrNotes notes;
  for (const auto* section : {"rt_info", "meta_data"}) notes.network += inner_xml(xml.root().child(section));
  for (const Layer& layer : net.layers) {
    const std::string own = inner_xml(layer.xml.child("rt_info"));
    const bool parameter = layer.is("Parameter");
    if (!own.empty() && !parameter) notes.layers.emplace(layer.name, own);
    std::size_t i = 0;
    for (const auto port : layer.xml.child("output").children("port")) {
      IrNotes::OfTensor tensor;
      tensor.names = split_names(port.attribute("names").value());
      tensor.rt_info = inner_xml(port.child("rt_info"));
      const std::string name = output_name(layer, i++);
      if (parameter && layer.name != name) tensor.layer = layer.name;
      if (parameter) tensor.layer_rt_info = own;
      if (tensor.names.size() > 1 || !tensor.rt_info.empty() || !tensor.layer.empty() ||
          !tensor.layer_rt_info.empty())
        notes.tensors.emplace(name, std::move(tensor));
    }
  }
  return notes;
}

}  // namespace lamina::ir
