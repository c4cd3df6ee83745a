#pragma once
/// Layers and edges of a network, or of a body, as XML.
#include <map>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <vector>

#include "formats/ir/write/constants.h"
#include "formats/ir/write/legalise.h"
#include "formats/ir/writer.h"
#include "ops/control.h"

namespace lamina::ir {

/// What the network and all bodies of one file share.
struct Writing {
  const Loaded& loaded;
  const WriteIrOptions& options;
  ConstantFile& bin;
  WrittenIr& report;

  bool from_ir() const { return loaded.format == ModelFormat::ir; }
  /// IR 10 in half precision says f16 everywhere.
  bool halves_all() const { return options.version == 10 && options.compress_to_fp16; }
  ElementType stored(ElementType type) const {
    return halves_all() && (type == ElementType::f32 || type == ElementType::f64) ? ElementType::f16 : type;
  }
  void warn(const std::string& text);
};

/// An output of a layer of this network.
struct Outlet {
  std::uint32_t layer = 0;
  std::uint32_t port = 0;
};

struct OutPort {
  TensorType type;
  Strings names;
  std::string rt_info = {};  ///< XML
};

/// A layer that is being written.
struct LayerText {
  std::string name, type;
  std::string version;  ///< "opset1"
  std::vector<std::pair<std::string, std::string>> data;
  std::vector<Outlet> inputs;
  std::vector<OutPort> more_outputs = {};  ///< ports of the layer that the node does not have
  void set(std::string attribute, std::string text) {
    data.emplace_back(std::move(attribute), std::move(text));
  }
};

class NetWriter {
 public:
  /// Writes below `net`, which is <net> or a body.
  NetWriter(Writing& writing, const LegalGraph& legal, pugi::xml_node net, bool is_body);
  void write();

  // For layers that are more than one.
  Writing& writing() { return writing_; }
  const Graph& graph() const { return graph_; }
  Outlet value(ValueId value);
  const TensorType& type(Outlet outlet) const { return ports_[outlet.layer][outlet.port]; }
  /// `as_it_is`: bits in the order of memory.
  Outlet constant(const Tensor& tensor, const std::string& name, bool as_it_is = false);
  /// The constant's numbers under another shape.
  Outlet reshaped(ValueId constant, const Tensor& tensor, const std::string& name);
  /// Adds the layer; its XML, for what else stands below it. `rt_info`: XML.
  pugi::xml_node add(LayerText text, const std::vector<OutPort>& outputs, const std::string& rt_info = {});
  Outlet last() const { return {static_cast<std::uint32_t>(ports_.size() - 1), 0}; }

  /// Variables whose type no layer says.
  const std::set<std::string>& untyped_variables() const { return untyped_variables_; }

  // Layer ids of a body's parameters.
  std::uint32_t parameter_id(std::size_t input) const { return parameters_[input]; }
  std::uint32_t result_id(std::size_t result) const { return results_[result]; }
  /// A parameter that is not written.
  void leave_out(std::size_t input) { left_out_.insert(input); }

 private:
  void write_parameters();
  void write_results();
  void plan_results();
  bool joins_result_before(const Result& result) const;
  Strings names_of(const Result& result) const;
  Outlet copied(const Result& result);
  std::string parameter_name(ValueId value) const;
  std::string inner_name(const std::string& name) const;
  std::string layer_name(const Node& node) const;
  void write_node(NodeId id);
  Outlet write_constant(ValueId value);
  Outlet write_tensor(const Tensor& tensor, const std::string& name, OutPort port, bool may_compress);
  Outlet write_halves(const Tensor& halves, const std::string& name, OutPort port);
  std::vector<OutPort> outputs_of(const Node& node) const;
  OutPort port_of(ValueId value) const;
  Strings names_of(ValueId value) const;
  std::string unique(const std::string& name);
  void write_ports(pugi::xml_node layer, const LayerText& text, const std::vector<OutPort>& outputs);
  std::string layer_notes(const Node& node) const;

  Writing& writing_;
  const LegalGraph& legal_;
  const Graph& graph_;
  const bool is_body_;
  pugi::xml_node layers_, edges_;
  std::vector<std::vector<TensorType>> ports_;  // types by layer and output
  std::vector<std::uint32_t> first_port_;       // id of each layer's first output
  std::vector<Outlet> outlets_;                 // by value
  std::vector<bool> written_, exact_;           // by value
  std::map<std::uint32_t, std::size_t> ends_;   // the result that the layer of a value itself leads to
  std::set<std::size_t> copies_;                // results with a layer of their own
  std::set<std::string> copied_names_;
  /// IR 10: names by which OpenVINO knows inputs and outputs; layers that lead to results are among them.
  std::set<std::string> border_names_;
  std::vector<std::uint32_t> parameters_, results_;
  std::set<std::size_t> left_out_;
  std::set<std::string> untyped_variables_;
  std::map<std::string, std::size_t> layer_names_;
};

/// The layer of a node that is neither a constant nor control flow: type, version, attributes and inputs.
LayerText layer_of(NetWriter& net, const Node& node);
/// If, Loop and TensorIterator with their bodies.
bool write_control(NetWriter& net, const Node& node, const std::vector<OutPort>& outputs,
                   const std::string& rt_info);
/// Whether slices alone decide how often the loop runs, so that it is a TensorIterator; else it is a Loop,
/// whose number of iterations and condition are inputs.
bool is_tensor_iterator(const Graph& graph, const Loop& op, const std::vector<ValueId>& inputs,
                        const Graph& body);
/// By value: numbers that become sizes, places, bounds or levels, which rounding would change.
std::vector<bool> exact_values(const Graph& graph);

/// Adds copies of the nodes in the text, which is XML, below `parent`.
void append_xml(pugi::xml_node parent, const std::string& text);

}  // namespace lamina::ir
