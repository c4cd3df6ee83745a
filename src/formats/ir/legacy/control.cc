// TensorIterators, whose port maps name ports of the body's layers, and state.
#include <algorithm>
#include <set>

#include "formats/ir/legacy/legacy.h"
#include "formats/ir/legacy/lowering.h"
#include "formats/ir/loop_body.h"
#include "ops/control.h"

namespace lamina::ir::legacy {
namespace {

class BodyReader {
 public:
  explicit BodyReader(Lowering& c) : c_(c), xml_(c.reading().xml) {}

  Body read() {
    const auto node = c_.layer().xml.child("body");
    c_.require(!node.empty(), "has no <body>");
    body_.net = read_part(xml_, node);
    const auto map = c_.layer().xml.child("port_map");
    for (const auto line : map.children("input")) read_input(line);
    for (const auto line : map.children("output"))
      body_.outputs.push_back(mapping(line, result(line, "internal_layer_id", "internal_port_id")));
    c_.require(!body_.outputs.empty(), "the port map has no outputs");
    for (const auto edge : c_.layer().xml.child("back_edges").children("edge")) {
      const auto from = result(edge, "from-layer", "from-port"), to = parameter(edge, "to-layer", "to-port");
      if (!body_.back.emplace(to, from).second) xml_.fail(edge, "two back edges lead to one port");
    }
    sort_layers(xml_, body_.net);
    return std::move(body_);
  }

 private:
  void read_input(pugi::xml_node line) {
    const auto to = parameter(line, "internal_layer_id", "internal_port_id");
    if (!mapped_.insert(to).second)
      xml_.fail(line, "port {} of layer {} of the body is mapped twice",
                xml_.integer(line, "internal_port_id", 0), xml_.integer(line, "internal_layer_id"));
    body_.inputs.push_back(mapping(line, to));
  }

  Mapping mapping(pugi::xml_node line, std::uint32_t internal) {
    Mapping out;
    out.external = xml_.integer(line, "external_port_id");
    out.internal = internal;
    out.axis = xml_.integer(line, "axis", -1);
    out.sliced = out.axis != -1;
    if (out.sliced) read_slicing(xml_, line, out);
    return out;
  }

  std::uint32_t layer(pugi::xml_node node, const char* attribute) {
    const auto id = xml_.integer(node, attribute);
    const auto it = body_.net.by_id.find(id);
    if (it == body_.net.by_id.end())
      xml_.fail(node, "{}=\"{}\", but the body has no such layer", attribute, id);
    return it->second;
  }

  std::uint32_t port(pugi::xml_node node, const char* attribute, const std::vector<Port>& ports) {
    const auto id = xml_.integer(node, attribute);
    const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.id == id; });
    if (it == ports.end()) xml_.fail(node, "{}=\"{}\", but the layer has no such port", attribute, id);
    return static_cast<std::uint32_t>(it - ports.begin());
  }

  /// What feeds the port that the line names: an Input layer of the body, or a port that no edge leads to.
  std::uint32_t parameter(pugi::xml_node node, const char* layer_name, const char* port_name) {
    const auto to = layer(node, layer_name);
    if (body_.net.layers[to].is("Parameter")) return to;
    const auto at = port(node, port_name, body_.net.layers[to].inputs);
    const Feed feed = body_.net.layers[to].feeds[at];
    if (feed.none()) return add_parameter(body_.net, to, at);
    if (!body_.net.layers[feed.layer].is("Parameter"))
      xml_.fail(node, "port {} of layer '{}' has an edge in the body, too",
                body_.net.layers[to].inputs[at].id, body_.net.layers[to].name);
    return feed.layer;
  }

  std::uint32_t result(pugi::xml_node node, const char* layer_name, const char* port_name) {
    const auto from = layer(node, layer_name);
    const auto at = port(node, port_name, body_.net.layers[from].outputs);
    const auto [it, added] = results_.emplace(std::pair(from, at), 0);
    if (added) it->second = add_result(body_.net, {from, at});
    return it->second;
  }

  Lowering& c_;
  const XmlFile& xml_;
  Body body_;
  std::set<std::uint32_t> mapped_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> results_;
};

void tensor_iterator(Lowering& c) { convert_tensor_iterator(c, BodyReader(c).read()); }

/// A pair of layers of one id: the one with an input ends a run and the one with an output begins the next.
void memory(Lowering& c) {
  if (&c.graph() != &c.reading().loaded.graph) throw NotSupported{"state in a body"};
  c.want("id");
  const std::string variable = c.text("id");
  c.require(!variable.empty(), "id is empty");
  c.require(c.integer("size", 2) == 2, "size is {}, wanted 2", c.integer("size", 2));
  const bool writes = c.inputs() > 0;
  c.require(writes != !c.layer().outputs.empty(), "has {} inputs and {} outputs, wanted one or the other",
            c.inputs(), c.layer().outputs.size());
  const auto index = c.integer("index", writes ? 0 : 1);
  c.require(index == (writes ? 0 : 1),
            "index is {}, wanted 0 for the layer that takes a value, 1 for the other", index);
  if (!writes) {
    c.require(c.reading().reads.emplace(variable, c.layer().xml).second, "two layers read the state '{}'",
              variable);
    ReadValue op;
    op.variable_id = variable;
    op.variable_shape = c.declared();
    op.variable_type =
        c.declared_element() == ElementType::undefined ? ElementType::f32 : c.declared_element();
    return c.finish(op, {});
  }
  c.want_inputs(1, 1);
  c.require(c.reading().assigns.emplace(variable, c.layer().xml).second, "two layers write the state '{}'",
            variable);
  Assign op;
  op.variable_id = variable;
  c.add(op, c.all_inputs(), "assigned");
}

}  // namespace

void register_control(LoweringTable& t) {
  t.add("TensorIterator", tensor_iterator);
  t.add("Memory", memory);
}

}  // namespace lamina::ir::legacy
