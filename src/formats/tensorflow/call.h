#pragma once
/// One TensorFlow node on its way into the graph: what a converter reads and builds with.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/tensorflow/proto.h"
#include "graph/graph.h"

namespace lamina::tensorflow {

class Importer;

using Values = std::vector<ValueId>;

/// A node that our operators cannot express: it becomes Opaque and is listed.
struct NotSupported {
  std::string reason;
};

class Call {
 public:
  Call(Importer& importer, const NodeDef& node, Values inputs)
      : importer_(importer), node_(node), inputs_(std::move(inputs)) {}

  Graph& graph() const;
  Importer& importer() const { return importer_; }
  const NodeDef& node() const { return node_; }
  std::string_view op() const { return node_.op; }
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) const {
    lamina::fail(ErrorCode::bad_file, text, std::forward<A>(args)...);
  }
  template <class... A>
  [[noreturn]] void unsupported(fmt::format_string<A...> text, A&&... args) const {
    throw NotSupported{fmt::format(text, std::forward<A>(args)...)};
  }

  // Inputs, without control edges.
  std::size_t inputs() const { return inputs_.size(); }
  ValueId in(std::size_t i) const;  ///< throws when absent
  const Values& all() const { return inputs_; }
  const TensorType& type(ValueId v) const { return graph().type(v); }
  const Shape& shape(ValueId v) const { return graph().type(v).shape; }
  ElementType element(ValueId v) const { return type(v).element; }
  /// The element type, the rank; NotSupported while it is not known.
  ElementType known_element(ValueId v) const;
  std::size_t known_rank(ValueId v) const;
  std::optional<std::size_t> rank(ValueId v) const;
  /// The value when it is constant or follows from constants and known shapes.
  std::optional<Tensor> known(ValueId v) const;
  std::optional<Ints> known_ints(ValueId v) const;
  std::optional<double> known_number(ValueId v) const;  ///< of one element
  /// The same; NotSupported, naming `what`, when it is computed from data.
  Ints wanted_ints(ValueId v, std::string_view what) const;
  std::int64_t wanted_int(ValueId v, std::string_view what) const;

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

  // Building. What is constant stays constant where that costs nothing.
  ValueId add(Op op, Values inputs) { return graph().add(std::move(op), std::move(inputs)); }
  Values add_all(Op op, Values inputs, int outputs, std::vector<Graph> bodies = {});
  ValueId constant(Tensor t) { return graph().add_constant(std::move(t)); }
  ValueId ints_constant(const Ints& values);       ///< i64 [n]
  ValueId int_constant(std::int64_t value);        ///< i64 scalar
  ValueId number(double value, ElementType type);  ///< a scalar
  ValueId number_like(double value, ValueId like) { return number(value, known_element(like)); }
  ValueId convert(ValueId v, ElementType type);
  ValueId reshape(ValueId v, const Ints& pattern);
  ValueId unsqueeze(ValueId v, const Ints& axes);
  ValueId squeeze(ValueId v, const Ints& axes);
  ValueId transpose(ValueId v, const Ints& order);
  ValueId concat(Values parts, std::int64_t axis);
  ValueId shape_of(ValueId v);  ///< i64 [rank]
  /// Element `index` along an axis, which goes.
  ValueId pick(ValueId v, std::int64_t axis, std::int64_t index);
  /// v[start..stop) of a vector.
  ValueId part(ValueId v, std::int64_t start, std::int64_t stop);
  /// 0 .. rank-1 as i64 [rank].
  ValueId all_axes(ValueId v);
  /// One element as a scalar, as [1].
  ValueId to_scalar(ValueId v);
  ValueId to_vector(ValueId v);
  /// A tensor of `shape` (integers) with one value everywhere.
  ValueId filled(ValueId value, ValueId shape);

 private:
  std::optional<AttrValue> find(std::string_view name, AttrValue::Kind kind, std::string_view wanted) const;

  Importer& importer_;
  const NodeDef& node_;
  Values inputs_;
};

/// Builds the node's meaning and returns its outputs in order (trailing ones that nothing reads may be left
/// out).
using Converter = Values (*)(Call&);

class ConverterTable {
 public:
  void add(std::string_view type, Converter converter) { rows_[std::string(type)] = converter; }
  Converter find(std::string_view type) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, Converter, std::less<>> rows_;
};

/// All of them; built on first use.
const ConverterTable& converters();

// One function per family, each in the file of its name.
void register_arrays(ConverterTable& t);
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
void register_resize(ConverterTable& t);
void register_shape(ConverterTable& t);
void register_slicing(ConverterTable& t);
void register_sorting(ConverterTable& t);
void register_space(ConverterTable& t);
void register_transposed(ConverterTable& t);

}  // namespace lamina::tensorflow
