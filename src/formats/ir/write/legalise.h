#pragma once
/// A graph in operators that OpenVINO has: lamina's own, and inputs and attributes that only lamina has, are
/// replaced by others. The result is a graph again: it can be interpreted, and each of its nodes is a
/// layer.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/ir/type_table.h"
#include "graph/graph.h"

namespace lamina::ir {

struct LegalGraph {
  Graph graph;
  /// Names of values that became the value of the same id here, besides its own.
  std::map<std::uint32_t, Strings> aliases;
};
/// `version` of IR: 10 has the operators up to opset8. Throws Error(unsupported) naming the node.
LegalGraph legalise(const Graph& graph, int version);

class Legaliser;

/// One node that is being legalised: what it was, and the new graph to which nodes are added.
class Legalisation {
 public:
  Legalisation(Legaliser& legaliser, const Op& op, const std::vector<ValueId>& inputs, int outputs,
               std::string label)
      : legaliser_(legaliser), op_(op), inputs_(inputs), outputs_(outputs), label_(std::move(label)) {}

  template <class T>
  const T& op() const {
    return *op_.as<T>();
  }
  int version() const;
  int outputs() const { return outputs_; }

  // Inputs, as values of the new graph.
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i].valid(); }
  ValueId in(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : ValueId(); }
  const TensorType& type(ValueId value) const;
  const Shape& shape(ValueId value) const { return type(value).shape; }
  ElementType element(ValueId value) const { return type(value).element; }
  std::size_t rank(ValueId value) const;  ///< refuses where it is not known
  /// The constant's tensor, or null; the pointer is valid until a value is added.
  const Tensor* constant(ValueId value) const;
  std::optional<Ints> known_ints(ValueId value) const;
  template <class T>
  bool is_made_by(ValueId value) const {
    const Node* maker = this->maker(value);
    return maker && maker->op.is<T>();
  }

  // New values. Operators that OpenVINO does not have are legalised, too.
  ValueId add(const Op& op, std::vector<ValueId> inputs, const std::string& suffix);
  std::vector<ValueId> add_many(const Op& op, std::vector<ValueId> inputs, int outputs,
                                const std::string& suffix, std::vector<Graph> bodies = {});
  ValueId add_constant(Tensor tensor, const std::string& suffix);
  ValueId ints(const Ints& list, const std::string& suffix);
  ValueId integer(std::int64_t value, const std::string& suffix);
  /// One number of that type, a scalar.
  ValueId number(double value, ElementType type, const std::string& suffix);

  // What many need.
  ValueId converted(ValueId value, ElementType type, const std::string& suffix);
  /// Under another shape; constants are reshaped here and now.
  ValueId reshaped(ValueId value, const Ints& pattern, const std::string& suffix, bool special_zero = false);
  /// A list along one axis of `rank`: [1, n, 1, 1]. Scalars stay.
  ValueId along(ValueId value, std::size_t axis, std::size_t rank, const std::string& suffix);
  ValueId scalar(ValueId value, const std::string& suffix);  ///< of one element, without axes
  ValueId sizes_of(ValueId value, const std::string& suffix);
  /// One size, a scalar of i64.
  ValueId size_of(ValueId value, std::int64_t axis, const std::string& suffix);

  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<A...> text, A&&... args) const {
    refuse_text(fmt::format(text, std::forward<A>(args)...));
  }

 private:
  [[noreturn]] void refuse_text(const std::string& text) const;
  const Node* maker(ValueId value) const;  ///< null for inputs and constants
  Legaliser& legaliser_;
  const Op& op_;
  const std::vector<ValueId>& inputs_;
  const int outputs_;
  const std::string label_;
};

/// What stands for the node's outputs; an empty list: the node may stay as it is.
using Legalise = std::vector<ValueId> (*)(Legalisation&);

using LegalisationTable = TypeTable<Legalise>;

/// Legalisations by the operator's name; an operator that is not in the table is always a layer.
const LegalisationTable& legalisations();

// One function per file.
void register_products(LegalisationTable& t);          ///< convolutions, matrix products, attention
void register_norms(LegalisationTable& t);             ///< normalisations, and functions of elements
void register_quantisers(LegalisationTable& t);        ///< to integers and back
void register_movement(LegalisationTable& t);          ///< pads, triangles, one-hot and the like
void register_recurrent(LegalisationTable& t);         ///< cells and sequences
void register_linear_attention(LegalisationTable& t);  ///< LinearAttention
void register_pooling(LegalisationTable& t);
void register_resizing(LegalisationTable& t);
void register_regions(LegalisationTable& t);
void register_detection(LegalisationTable& t);  ///< boxes, order, random numbers

}  // namespace lamina::ir
