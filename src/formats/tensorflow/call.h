#pragma once
/// One TensorFlow node on its way into the graph: what a converter reads and builds with.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/building.h"
#include "formats/tensorflow/proto.h"
#include "formats/type_table.h"

namespace lamina::tensorflow {

class Importer;

using Values = std::vector<ValueId>;

class Call : public Building {
 public:
  Call(Importer& importer, const NodeDef& node, Values inputs);

  Importer& importer() const { return importer_; }
  const NodeDef& node() const { return node_; }
  std::string_view op() const { return node_.op; }

  // Inputs, without control edges.
  std::size_t inputs() const { return inputs_.size(); }
  ValueId in(std::size_t i) const;  ///< throws when absent
  const Values& all() const { return inputs_; }

  // Attributes. Another kind than wanted is an error.
  std::optional<AttrValue> find(std::string_view name) const;
  std::int64_t i(std::string_view name, std::int64_t fallback) const;
  double f(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback = false) const;
  std::string s(std::string_view name, std::string_view fallback) const;
  Ints ints(std::string_view name, Ints fallback = {}) const;
  std::vector<float> floats(std::string_view name) const;
  std::optional<TensorProto> tensor(std::string_view name) const;
  std::optional<Shape> shape_attribute(std::string_view name) const;
  /// NotSupported when it is none of ours.
  ElementType type_attribute(std::string_view name, ElementType fallback) const;

  /// Building's add_all(), for at most as many outputs as the whole model may have.
  Values add_all(Op op, Values inputs, int outputs, std::vector<Graph> bodies = {});
  /// v[start..stop) of a vector.
  ValueId part(ValueId v, std::int64_t start, std::int64_t stop) const { return slice(v, 0, start, stop); }
  ValueId all_axes(ValueId v) const { return axes_from(v, 0); }

 private:
  std::optional<AttrValue> find(std::string_view name, AttrValue::Kind kind, std::string_view wanted) const;

  Importer& importer_;
  const NodeDef& node_;
  Values inputs_;
};

/// Builds the node's meaning and returns its outputs in order (trailing ones that nothing reads may be left
/// out).
using Converter = Values (*)(Call&);
using ConverterTable = TypeTable<Converter>;

/// The table of all converters; it is built on first use.
const ConverterTable& converters();

// One function per family, each in the file of its name.
void register_arrays(ConverterTable& t);
void register_complex(ConverterTable& t);
void register_convolution(ConverterTable& t);
void register_detection(ConverterTable& t);
void register_elementwise(ConverterTable& t);
void register_generation(ConverterTable& t);
void register_lists(ConverterTable& t);
void register_matmul(ConverterTable& t);
void register_normalization(ConverterTable& t);
void register_pooling(ConverterTable& t);
void register_quantization(ConverterTable& t);
void register_recurrent(ConverterTable& t);
void register_reduction(ConverterTable& t);
void register_resampling(ConverterTable& t);
void register_resize(ConverterTable& t);
void register_segments(ConverterTable& t);
void register_shape(ConverterTable& t);
void register_slicing(ConverterTable& t);
void register_sorting(ConverterTable& t);
void register_space(ConverterTable& t);
void register_transposed(ConverterTable& t);

}  // namespace lamina::tensorflow
