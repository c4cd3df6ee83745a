/// OpenVINO IR, versions 2 to 7, 10 and 11: the .xml with the network and the .bin with its constants, which
/// is asked for only when a constant needs it.
#include "formats/loaded.h"

#include <set>

#include "formats/ir/builder.h"
#include "formats/ir/legacy/legacy.h"
#include "formats/ir/notes.h"
#include "formats/ir/pre_process.h"
#include "formats/ir/text.h"

namespace lamina {
namespace {

using namespace ir;

/// The <net> version.
int checked_version(const XmlFile& xml) {
  const auto root = xml.root();
  if (!root || !same_word(root.name(), "net"))
    xml.fail(root, "the root element is <{}>, wanted OpenVINO's <net>", root.name());
  const auto text = trim(root.attribute("version").value());
  if (text.empty()) xml.fail(root, "<net> has no version, wanted IR version 2 to 7, 10 or 11");
  const auto version = parse_integer(text);
  if (!version || *version < 2 || *version > 11 || *version == 8 || *version == 9)
    xml.fail(root, "IR version {} is not supported, wanted 2 to 7, 10 or 11", text.substr(0, 80));
  return static_cast<int>(*version);
}

std::string producer(pugi::xml_node root) {
  for (const auto* section : {"rt_info", "meta_data"})
    for (const auto& [tag, name] :
         {std::pair("MO_version", "Model Optimizer"), std::pair("Runtime_version", "OpenVINO")})
      if (const std::string_view value = root.child(section).child(tag).attribute("value").value();
          !value.empty())
        return fmt::format("{} {}", name, value);
  return {};
}

/// What the file says of itself: <rt_info> as "group.key" -> value.
void add_metadata(Loaded& loaded, pugi::xml_node node, const std::string& prefix) {
  if (prefix.size() > 200) return;            // or short texts below long names would add up
  for (const auto child : node.children()) {  // nested no deeper than XmlFile allows
    if (const auto value = child.attribute("value"))
      loaded.metadata.emplace(prefix + child.name(), value.value());
    add_metadata(loaded, child, prefix + child.name() + ".");
  }
}

Strings tensor_names(const IrNotes& notes, const Layer& layer, std::size_t port) {
  const auto it = notes.tensors.find(output_name(layer, port));
  if (it != notes.tensors.end() && !it->second.names.empty()) return it->second.names;
  const bool named = port < layer.outputs.size() && !layer.outputs[port].name.empty();
  return named ? Strings{layer.outputs[port].name} : Strings();
}

/// Results have the name that their layer gives, else that of what feeds them; a second one of the same value
/// that of its layer.
void add_results(Loaded& loaded, GraphBuilder& builder, const Network& net,
                 const std::vector<std::uint32_t>& results) {
  std::set<std::string> taken;
  for (const auto index : results) {
    const Layer& layer = net.layers[index];
    const Feed feed = layer.feeds[0];
    auto given = split_names(layer.xml.attribute("output_names").value());
    std::string name = given.empty() ? output_name(net.layers[feed.layer], feed.port) : given.front();
    if (taken.contains(name)) name = layer.name;
    for (std::size_t k = taken.size(); !taken.insert(name).second; ++k)
      name = fmt::format("{}_{}", layer.name, k);
    loaded.graph.add_result(name, builder.result(index));
    if (given.empty()) given = tensor_names(loaded.ir_notes, net.layers[feed.layer], feed.port);
    std::erase(given, name);
    if (!given.empty()) loaded.ir_notes.results.emplace(name, std::move(given));
  }
}

}  // namespace

Loaded read_ir(const ModelSource& source, const ReadSettings& settings) {
  const XmlFile xml(source.model());
  Loaded loaded;
  loaded.extensions = settings.extensions;
  const int version = checked_version(xml);
  const Network net = version < 10 ? legacy::read_network(xml, version) : read_network(xml, xml.root());
  loaded.format = ModelFormat::ir;
  loaded.version = std::to_string(version);
  loaded.producer = producer(xml.root());
  for (const auto* section : {"rt_info", "meta_data"}) add_metadata(loaded, xml.root().child(section), "");
  loaded.graph.name = xml.root().attribute("name").value();
  loaded.ir_notes = read_notes(xml, net);

  Blobs blobs(source);
  Reading reading(xml, blobs, version, loaded, settings.gate);
  const auto parameters = net.all("Parameter"), results = net.all("Result");
  if (results.empty()) xml.fail(xml.root(), "the network has no Result layer");
  if (reading.legacy()) legacy::note_calibration(reading, net);
  GraphBuilder builder(reading, loaded.graph, net);
  for (const auto index : parameters) builder.add_parameter(index);
  for (const auto v : loaded.graph.inputs())
    if (const auto it = settings.shapes.find(loaded.graph.value(v).name); it != settings.shapes.end()) {
      reading.reshaped = reading.reshaped || loaded.graph.type(v).shape != it->second;
      loaded.graph.set_type(v, {loaded.graph.type(v).element, it->second});
    }
  add_pre_process(reading, builder, parameters);
  builder.build(results);
  reading.check_variables();
  add_results(loaded, builder, net, results);
  return loaded;
}

}  // namespace lamina
