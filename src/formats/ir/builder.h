#pragma once
/// Builds a Graph from checked layers.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/ir/blobs.h"
#include "formats/ir/network.h"
#include "formats/loaded.h"

namespace lamina::ir {

/// What the network and all bodies of one file share.
struct Reading {
  Reading(const XmlFile& xml, Blobs& blobs, int version, Loaded& loaded, const OperatorGate& gate)
      : xml(xml), blobs(blobs), version(version), loaded(loaded), notes(loaded.operators, gate, true) {}

  const XmlFile& xml;
  Blobs& blobs;
  int version;
  Loaded& loaded;
  OperatorNotes notes;
  std::map<std::string, pugi::xml_node> reads, assigns;  ///< layers by variable
  std::int64_t constants_budget = 1 << 27;  ///< elements of constants that are made of a few numbers

  /// Notes a layer that becomes Opaque.
  void add_unsupported(const Layer& layer, const std::string& reason);
  void warn(pugi::xml_node node, const std::string& text);
  /// Up to IR 10, f16 is only a type of storage; the network computes in f32.
  ElementType widened(ElementType type) const {
    return version <= 10 && type == ElementType::f16 ? ElementType::f32 : type;
  }
  /// Versions 2 to 7: layers of another vocabulary (legacy/).
  bool legacy() const { return version < 10; }
  bool reshaped = false;  ///< inputs have other shapes than the file's: its other shapes say nothing
  void check_variables() const;

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> unsupported_;
  std::size_t warnings_ = 0;
};

/// A converter throws this for what lamina has no operator for; the layer becomes Opaque.
struct NotSupported {
  std::string reason;
};

class GraphBuilder {
 public:
  GraphBuilder(Reading& reading, Graph& graph, const Network& net);

  /// Adds the Parameter layer's input to the graph. What is known of `entering`, the type of what enters a
  /// body there, comes before what the file declares.
  ValueId add_parameter(std::uint32_t layer, const TensorType& entering = {});
  /// Converts all layers that `results` (Result layers) need, and those of variables.
  void build(const std::vector<std::uint32_t>& results);
  /// What leads to the Result layer.
  ValueId result(std::uint32_t layer);
  /// Something else takes the place of a layer's output.
  void replace_output(std::uint32_t layer, std::size_t port, ValueId value);

  // For converters.
  ValueId value(Feed feed);
  /// A tensor of the file as the network computes with it: f16 is widened.
  ValueId add_stored(Tensor tensor, const std::string& name);
  /// The Const layer's tensor, without adding it to the graph; nothing when the feed is no u1 constant.
  Tensor low_first_bits(Feed feed);
  Reading& reading() { return reading_; }
  Graph& graph() { return graph_; }
  const Network& network() const { return net_; }

 private:
  void convert_layer(std::uint32_t index);
  void make_opaque(std::uint32_t index, const std::string& reason);
  void compare_types(std::uint32_t index);
  ValueId add_constant(std::uint32_t index);

  Reading& reading_;
  Graph& graph_;
  const Network& net_;
  std::vector<std::vector<ValueId>> values_;  // per layer and output
};

/// The type that a Parameter layer declares.
TensorType parameter_type(const Reading& reading, const Layer& layer);

}  // namespace lamina::ir
