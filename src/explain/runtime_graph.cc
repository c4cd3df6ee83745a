/// The executed graph as an IR of execution layers.
#include "explain/runtime_graph.h"

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "base/cpu.h"
#include "base/table_text.h"
#include "base/words.h"
#include "explain/plan_walk.h"
#include "ops/elementwise.h"

namespace lamina {
namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

struct PortOf {
  TensorType type;
  std::string name;  ///< of the value; outputs only
};

struct Layer {
  std::string name, type;
  Attributes data;
  std::vector<PortOf> in, out;
};

/// From output `from_port` of a layer to input `to_port` of another one.
struct Edge {
  std::size_t from = 0, from_port = 0, to = 0, to_port = 0;
};

/// "FP32", "I64", "BOOL".
std::string precision_name(ElementType type) {
  if (type == ElementType::f32) return "FP32";
  if (type == ElementType::f64) return "FP64";
  if (type == ElementType::f16) return "FP16";
  if (type == ElementType::boolean) return "BOOL";
  return upper_case(name_of(type));
}

/// oneDNN's tag for the order of the axes in memory: "abcd", "acdb".
std::string layout_tag(const TensorType& type, Layout layout) {
  if (!type.shape.ranked()) return "undef";
  std::string axes;
  for (const auto axis : info_of(layout).order(std::max<std::size_t>(1, type.shape.rank())))
    axes += static_cast<char>('a' + axis);
  return axes;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

/// As IRs write attributes: lists without brackets.
std::string attribute_text(const Attribute& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* ints = std::get_if<Ints>(&value)) return fmt::format("{}", fmt::join(*ints, ","));
  return shortened(to_string(value), 200);
}

std::string without_brackets(std::string text) {
  if (text.size() > 1 && text.front() == '[') text = text.substr(1, text.size() - 2);
  return text;
}

/// Finds, for each node of a plan, its layers of the file, the layer that names it, and the refusals of
/// fusing rules.
class Origins {
 public:
  Origins(const Compiled& compiled, const std::vector<std::shared_ptr<const Plan>>& plans) {
    for (const auto& outcome : layer_outcomes(compiled, plans))
      for (const auto& n : outcome.nodes) {
        auto& origin = of_[{n.plan, n.node}];
        origin.names.insert(n.representative ? origin.names.begin() : origin.names.end(), outcome.name);
        for (const auto& e : fusing_refusals(outcome))
          add(origin.refusals, fmt::format("{} at '{}': {}", e.rule, e.node, e.text));
      }
  }

  std::string names(const Plan& plan, NodeId node) const {
    const auto it = of_.find({&plan, node});
    return it == of_.end() ? "" : joined(it->second.names, ",");
  }
  std::string refusals(const Plan& plan, NodeId node) const {
    const auto it = of_.find({&plan, node});
    return it == of_.end() ? "" : joined(it->second.refusals, "; ");
  }

 private:
  struct Origin {
    std::vector<std::string> names, refusals;
  };
  static void add(std::vector<std::string>& to, std::string text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
  }
  std::map<std::pair<const Plan*, NodeId>, Origin> of_;
};

/// Layers and edges. Each run that the profile has seen, with its shapes of the inputs, has layers of its
/// own, so that all add up to the measured time.
class Collector : private PlanWalk {
 public:
  Collector(const Origins& origins, const Profile& profile) : origins_(origins), profile_(profile) {
    walk(profile.plans());
  }

  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  std::size_t add_input(const Graph& g, ValueId v) override {
    auto& layer = idle(g.value(v).name, "Input", {g.type(v)}, Layout::plain, g.value(v).name);
    layer.data.emplace_back("shape", without_brackets(to_string(g.type(v).shape)));
    layer.data.emplace_back("element_type", name_of(g.type(v).element));
    layer.out = {{g.type(v), g.value(v).name}};
    return layers_.size() - 1;
  }

  std::size_t add_constant(const Plan& plan, ValueId v) override {
    const auto& g = plan.graph;
    idle(g.value(v).name, "Const", {g.type(v)}, Layout::plain, "").out = {{g.type(v), g.value(v).name}};
    return layers_.size() - 1;
  }

  std::size_t add_step(const Plan& plan, const PlanStep& step, const Reads& reads) override {
    Layer layer{step.name, type_of(plan, step), {}, {}, {}};
    layer.data = attributes_of(plan, step, layer.type);
    for (const auto t : step.out)
      if (t != kNoTensor)
        layer.out.push_back({plan.tensors[t].type, plan.graph.value(plan.tensors[t].value).name});
    layers_.push_back(std::move(layer));
    return connect(reads);
  }

  std::size_t add_idle(const Plan& plan, NodeId id, const Reads& reads) override {
    const auto& g = plan.graph;
    const auto& node = g.node(id);
    std::vector<TensorType> types;
    for (const auto v : node.outputs) types.push_back(g.type(v));
    auto& layer = idle(g.label(id), node.op.name(), types, Layout::plain, origins_.names(plan, id));
    for (const auto v : node.outputs) layer.out.push_back({g.type(v), g.value(v).name});
    return connect(reads);
  }

  void add_result(const std::string& name, const PlanTensor& tensor, const Origin& from) override {
    idle(name, "Output", {tensor.type}, tensor.layout, name);
    connect({{from, tensor.type}});
  }

  /// Gives the last layer its inputs, and returns its number.
  std::size_t connect(const Reads& reads) {
    const auto at = layers_.size() - 1;
    for (const auto& [from, type] : reads) {
      edges_.push_back({from.part, from.port, at, layers_[at].in.size()});
      layers_[at].in.push_back({type, ""});
    }
    return at;
  }

  /// A layer for which no kernel runs.
  Layer& idle(const std::string& name, const std::string& type, const std::vector<TensorType>& of,
              Layout layout, const std::string& originals) {
    std::vector<std::string> precisions, layouts;
    for (const auto& t : of) {
      precisions.emplace_back(name_of(t.element));
      layouts.push_back(layout_tag(t, layout));
    }
    Layer layer{name, type, {}, {}, {}};
    layer.data = {{"originalLayersNames", originals},
                  {"layerType", type},
                  {"primitiveType", "none"},
                  {"execOrder", std::to_string(layers_.size())},
                  {"execTimeMcs", "not_executed"},
                  {"runtimePrecision", of.empty() ? "undefined" : std::string(name_of(of[0].element))},
                  {"outputPrecisions", joined(precisions, ",")},
                  {"outputLayouts", joined(layouts, ",")}};
    layers_.push_back(std::move(layer));
    return layers_.back();
  }

  static std::string type_of(const Plan& plan, const PlanStep& step) {
    if (step.kind == PlanStep::Kind::reorder) return "Reorder";
    if (step.kind == PlanStep::Kind::copy) return "Copy";
    const auto& op = plan.graph.node(step.node).op;
    return op.is<Elementwise>() ? "Eltwise" : op.name();
  }

  Attributes attributes_of(const Plan& plan, const PlanStep& step, const std::string& type) const {
    const auto row = row_of(plan, step);
    const double time = profile_.of(step), whole = profile_.whole();
    std::vector<std::string> precisions, layouts;
    for (const auto t : step.out) {
      if (t == kNoTensor) continue;
      const auto* packing = packing_of(plan.tensors[t].layout);
      const auto element = plan.tensors[t].type.element;
      precisions.emplace_back(name_of(packing ? packing->element.value_or(element) : element));
      layouts.push_back(layout_tag(plan.tensors[t].type, plan.tensors[t].layout));
    }
    const auto in = std::find_if(step.in.begin(), step.in.end(), [](auto t) { return t != kNoTensor; });
    Attributes out{
        {"originalLayersNames", step.runs_a_node() ? origins_.names(plan, step.node) : ""},
        {"layerType", type},
        {"primitiveType", step.label},
        {"execOrder", std::to_string(layers_.size())},
        {"execTimeMcs", fmt::format("{:.0f}", time)},
        {"runtimePrecision", in != step.in.end() ? std::string(name_of(plan.tensors[*in].type.element))
                                                 : joined(precisions, ",")},
        {"outputPrecisions", joined(precisions, ",")},
        {"outputLayouts", joined(layouts, ",")},
        {"execTimeNs", fmt::format("{:.0f}", 1000 * time)},
        {"timeShare", fmt::format("{:.4f}", whole > 0 ? time / whole : 0)}};
    if (!step.runs_a_node()) return out;
    out.emplace_back("operators", row.op);
    if (auto text = origins_.refusals(plan, step.node); !text.empty())
      out.emplace_back("notFusedBecause", std::move(text));
    for (const auto& a : plan.graph.node(step.node).op->changed_attributes())
      out.emplace_back(a.name, attribute_text(a.value));
    return out;
  }

  const Origins& origins_;
  const Profile& profile_;
  std::vector<Layer> layers_;
  std::vector<Edge> edges_;
};

class Writer {
 public:
  explicit Writer(const Collector& graph) : layers_(graph.layers()), edges_(graph.edges()) {}

  std::string document(const std::string& name, const Attributes& info) {
    pugi::xml_document xml;
    auto net = xml.append_child("net");
    set(net, "name", name);
    set(net, "version", "11");
    auto layers = net.append_child("layers");
    for (std::size_t i = 0; i < layers_.size(); ++i) add_layer(layers, i);
    auto edges = net.append_child("edges");
    for (const auto& e : edges_) add_edge(edges, e);
    auto notes = net.append_child("rt_info");
    for (const auto& [key, value] : info) set(notes.append_child(key.c_str()), "value", value);
    std::ostringstream out;
    xml.save(out, "\t", pugi::format_default, pugi::encoding_utf8);
    return out.str();
  }

 private:
  static void set(pugi::xml_node node, const char* key, const std::string& value) {
    node.append_attribute(key).set_value(printable(value).c_str());
  }
  static void set(pugi::xml_node node, const char* key, std::size_t value) {
    node.append_attribute(key).set_value(std::to_string(value).c_str());
  }

  void add_layer(pugi::xml_node layers, std::size_t i) const {
    const auto& layer = layers_[i];
    auto node = layers.append_child("layer");
    set(node, "id", i);
    set(node, "name", layer.name);
    set(node, "type", layer.type);
    auto data = node.append_child("data");
    for (const auto& [key, value] : layer.data) set(data, key.c_str(), value);
    add_ports(node, "input", layer.in, 0);
    add_ports(node, "output", layer.out, layer.in.size());
  }

  static void add_ports(pugi::xml_node layer, const char* what, const std::vector<PortOf>& ports,
                        std::size_t first) {
    if (ports.empty()) return;
    auto list = layer.append_child(what);
    for (std::size_t i = 0; i < ports.size(); ++i) {
      auto port = list.append_child("port");
      set(port, "id", first + i);
      set(port, "precision", precision_name(ports[i].type.element));
      if (!ports[i].name.empty()) set(port, "names", ports[i].name);
      if (!ports[i].type.shape.ranked()) continue;
      for (const auto& d : ports[i].type.shape.dims())
        port.append_child("dim").text().set(d.known() ? std::to_string(d.size()).c_str() : "-1");
    }
  }

  void add_edge(pugi::xml_node edges, const Edge& e) const {
    auto edge = edges.append_child("edge");
    set(edge, "from-layer", e.from);
    set(edge, "from-port", layers_[e.from].in.size() + e.from_port);
    set(edge, "to-layer", e.to);
    set(edge, "to-port", e.to_port);
  }

  const std::vector<Layer>& layers_;
  const std::vector<Edge>& edges_;
};

}  // namespace

std::string runtime_graph(const std::string& name, const Compiled& compiled, const Profile& profile) {
  const Origins origins(compiled, profile.plans());
  const Collector graph(origins, profile);
  return Writer(graph).document(name, {{"Runtime_version", version()},
                                       {"processor", processor_name()},
                                       {"instructions", std::string(name_of(effective_isa()))},
                                       {"threads", std::to_string(compiled.threads())},
                                       {"inferences", std::to_string(profile.runs())},
                                       {"execTimeMcs", fmt::format("{:.1f}", profile.whole())}});
}

}  // namespace lamina
