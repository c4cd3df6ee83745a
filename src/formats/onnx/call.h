#pragma once
/// One ONNX node on its way into the graph: what a converter reads and builds with.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/building.h"
#include "formats/onnx/proto.h"

namespace lamina::onnx {

class Importer;
struct Scope;

using Values = std::vector<ValueId>;

class Call : public Building {
 public:
  Call(Importer& importer, Scope& scope, const NodeProto& node, std::int64_t version);

  const NodeProto& node() const { return node_; }
  std::int64_t version() const { return version_; }  ///< of the node's operator set
  std::string_view op() const { return node_.op_type; }
  void warn(const std::string& text);

  // Inputs.
  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return node_.outputs.size(); }
  bool wants(std::size_t output) const { return output < outputs() && !node_.outputs[output].empty(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i].valid(); }
  ValueId in(std::size_t i) const;  ///< throws when absent
  ValueId maybe(std::size_t i) const { return has(i) ? inputs_[i] : ValueId{}; }
  const Values& all() const { return inputs_; }
  /// All inputs, none of which may be absent.
  const Values& all_present() const;

  // Attributes. A function's references are resolved; another kind than wanted is an error.
  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t i(std::string_view name, std::int64_t fallback) const;
  double f(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback = false) const { return i(name, fallback) != 0; }
  std::string s(std::string_view name, std::string_view fallback) const;
  Ints ints(std::string_view name, Ints fallback = {}) const;
  std::optional<Ints> maybe_ints(std::string_view name) const;
  Floats floats(std::string_view name) const;
  Strings strings(std::string_view name) const;
  std::optional<Tensor> tensor(std::string_view name) const;
  const GraphProto* body(std::string_view name) const;
  /// An element type given by its number in TensorProto.DataType.
  ElementType element_attribute(std::string_view name, ElementType fallback) const;
  const AttributeProto* find(std::string_view name) const;

  Importer& importer() const { return importer_; }
  Scope& scope() const { return scope_; }

 private:
  Importer& importer_;
  Scope& scope_;
  const NodeProto& node_;
  std::int64_t version_;
  Values inputs_;
};

/// Builds the node's meaning and returns its outputs in order (absent trailing ones may be left out).
using Converter = Values (*)(Call&);

/// Converters by domain ("" is ai.onnx) and operator type.
class ConverterTable {
 public:
  void add(std::string_view domain, std::string_view type, Converter converter) {
    rows_[{std::string(domain), std::string(type)}] = converter;
  }
  void add(std::string_view type, Converter converter) { add("", type, converter); }
  Converter find(std::string_view domain, std::string_view type) const;
  std::vector<std::pair<std::string, std::string>> names() const;

 private:
  std::map<std::pair<std::string, std::string>, Converter> rows_;
};

/// The table of all converters; it is built on first use.
const ConverterTable& converters();

inline constexpr std::string_view kMicrosoft = "com.microsoft";

// One function per family, each in the file of its name.
void register_elementwise(ConverterTable& t);
void register_activation(ConverterTable& t);
void register_convolution(ConverterTable& t);
void register_pooling(ConverterTable& t);
void register_matmul(ConverterTable& t);
void register_normalization(ConverterTable& t);
void register_reduction(ConverterTable& t);
void register_shape(ConverterTable& t);
void register_slicing(ConverterTable& t);
void register_gathering(ConverterTable& t);
void register_generation(ConverterTable& t);
void register_sorting(ConverterTable& t);
void register_loss(ConverterTable& t);
void register_random(ConverterTable& t);
void register_resize(ConverterTable& t);
void register_detection(ConverterTable& t);
void register_quantization(ConverterTable& t);
void register_recurrent(ConverterTable& t);
void register_conditional(ConverterTable& t);
void register_loop(ConverterTable& t);
void register_scan(ConverterTable& t);
void register_attention(ConverterTable& t);
void register_signal(ConverterTable& t);
void register_sequence(ConverterTable& t);
void register_sequence_map(ConverterTable& t);
void register_microsoft(ConverterTable& t);
void register_ml(ConverterTable& t);

}  // namespace lamina::onnx
