#pragma once
/// One operation of oneDNN Graph on its way into the graph: what a converter reads and builds with.
#include <string>
#include <string_view>
#include <vector>

#include "formats/building.h"
#include "formats/onednn_graph/graph_def.h"
#include "formats/type_table.h"
#include "ops/convolution.h"

namespace lamina::onednn_graph {

using Values = std::vector<ValueId>;

/// Weights of a grouped transposed convolution.
struct GroupedWeights {
  std::int64_t groups = 1;
  bool inputs_last = false;  ///< XOI; else IOX
};

/// Floating-point tensors are f32 here, whatever the file says; the importer rounds them.
class Call : public Building {
 public:
  Call(Graph& graph, int& folding_budget, const OpDef& op, Values inputs, GroupedWeights weights)
      : Building(graph, folding_budget), op_(op), inputs_(std::move(inputs)), weights_(weights) {}

  const OpDef& op() const { return op_; }
  /// What the result is, when a transposed convolution takes it as its weights; else one group.
  const GroupedWeights& weights() const { return weights_; }
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size(); }
  ValueId in(std::size_t i) const;  ///< throws when absent
  const Values& all() const { return inputs_; }
  /// What the file says of an output. Throws when it has none.
  const TensorDef& out(std::size_t i = 0) const;

  // Attributes; without a fallback they must be there. Another kind than wanted is an error, words are in
  // small letters.
  bool has(std::string_view name) const { return op_.attributes.find(name) != op_.attributes.end(); }
  std::int64_t i(std::string_view name) const;
  std::int64_t i(std::string_view name, std::int64_t fallback) const {
    return has(name) ? i(name) : fallback;
  }
  double f(std::string_view name) const;
  double f(std::string_view name, double fallback) const { return has(name) ? f(name) : fallback; }
  bool flag(std::string_view name, bool fallback) const;
  std::string s(std::string_view name, std::string_view fallback) const;
  Ints ints(std::string_view name) const;
  Floats floats(std::string_view name) const;
  /// The place of a word among those that are possible.
  std::size_t choice(std::string_view name, std::string_view fallback,
                     std::initializer_list<std::string_view> words) const;
  /// An axis that may be negative, of a value.
  std::int64_t axis(std::string_view name, std::int64_t fallback, ValueId v) const;

  // Pictures lie as data_format says: NXC (the default), or NCX as lamina's operators have them. Each
  // operation that cares stands between two Transposes, right by itself; rules bring them together.
  bool channels_last() const { return choice("data_format", "nxc", {"ncx", "nxc"}) == 1; }
  ValueId to_channels_first(ValueId v) const;
  ValueId to_framework(ValueId v) const;
  /// A vector with an element for each channel as what broadcasts to v, of which channels are at axis 1.
  ValueId along_channels(ValueId vector, ValueId v) const;

  /// Strides, pads, dilations of `spatial` axes.
  Window window(std::size_t spatial) const;
  /// The picture without what negative pads cut off; they are 0 then.
  ValueId without_negative_pads(ValueId v, Window& w) const;
  /// A list of the attribute, of so many numbers, none below `least`. oneDNN's own defaults have 12, of which
  /// the first are meant.
  Ints spatial_list(std::string_view name, std::size_t spatial, std::int64_t least) const;
  /// The spatial axes of a picture.
  std::size_t spatial_axes(ValueId v) const;

 private:
  template <class T>
  const T& attribute(std::string_view name, std::string_view wanted) const;

  const OpDef& op_;
  Values inputs_;
  GroupedWeights weights_;
};

/// Builds the operation's meaning and returns its outputs in order.
using Converter = Values (*)(const Call&);
using ConverterTable = TypeTable<Converter>;

/// The table of all converters; it is built on first use.
const ConverterTable& converters();

// One function per family, each in the file of its name.
void register_activation(ConverterTable& t);
void register_convolution(ConverterTable& t);
void register_elementwise(ConverterTable& t);
void register_matmul(ConverterTable& t);
void register_normalization(ConverterTable& t);
void register_pooling(ConverterTable& t);
void register_quantization(ConverterTable& t);
void register_reduction(ConverterTable& t);
void register_shape(ConverterTable& t);

}  // namespace lamina::onednn_graph
