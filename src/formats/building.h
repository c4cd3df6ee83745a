#pragma once
/// What the converters of every reader ask of values and build with. A reader's Call adds what its file says
/// of a node.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"

namespace lamina {

/// A node that our operators cannot express: it becomes Opaque and is listed.
struct NotSupported {
  std::string reason;
};

/// Adds the first two parameters of a Loop's body. Returns the number of the iteration, an i64 scalar; the
/// other one is the condition.
ValueId add_counters(Graph& body);

class Building {
 public:
  /// `folding_budget`: nodes that may still be evaluated while the model is read.
  Building(Graph& graph, int& folding_budget) : graph_(graph), folding_budget_(folding_budget) {}

  Graph& graph() const { return graph_; }
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) const {
    lamina::fail(ErrorCode::bad_file, text, std::forward<A>(args)...);
  }
  template <class... A>
  [[noreturn]] void unsupported(fmt::format_string<A...> text, A&&... args) const {
    throw NotSupported{fmt::format(text, std::forward<A>(args)...)};
  }

  // Values. What is wanted or known throws NotSupported while it is not.
  const TensorType& type(ValueId v) const { return graph_.type(v); }
  const Shape& shape(ValueId v) const { return graph_.type(v).shape; }
  ElementType element(ValueId v) const { return graph_.type(v).element; }
  ElementType known_element(ValueId v) const;
  std::optional<std::size_t> rank(ValueId v) const;
  std::size_t known_rank(ValueId v) const;
  std::size_t axis(std::int64_t axis, std::size_t rank) const { return normalize_axis(axis, rank, "axis"); }
  /// The value when it is constant or follows from constants and known shapes.
  std::optional<Tensor> known(ValueId v) const;
  std::optional<Ints> known_ints(ValueId v) const;
  std::optional<double> known_number(ValueId v) const;  ///< of one element
  Ints wanted_ints(ValueId v, std::string_view what) const;
  std::int64_t wanted_int(ValueId v, std::string_view what) const;

  // Building. What is constant stays constant where that costs nothing.
  ValueId add(Op op, std::vector<ValueId> inputs) const {
    return graph_.add(std::move(op), std::move(inputs));
  }
  std::vector<ValueId> add_all(Op op, std::vector<ValueId> inputs, int outputs = -1,
                               std::vector<Graph> bodies = {}) const;
  ValueId constant(Tensor t) const { return graph_.add_constant(std::move(t)); }
  ValueId ints_constant(const Ints& values) const;       ///< i64 [n]
  ValueId int_constant(std::int64_t value) const;        ///< i64 scalar
  ValueId number(double value, ElementType type) const;  ///< a scalar
  ValueId number_like(double value, ValueId like) const { return number(value, known_element(like)); }
  ValueId convert(ValueId v, ElementType type) const;
  ValueId reshape(ValueId v, const Ints& pattern) const;
  ValueId reshape(ValueId v, ValueId pattern) const;
  ValueId unsqueeze(ValueId v, const Ints& axes) const;
  ValueId squeeze(ValueId v, const Ints& axes) const;
  ValueId transpose(ValueId v, const Ints& order) const;
  /// [N, spatial..., C] as [N, C, spatial...], of `rank` axes, and back.
  ValueId to_channels_first(ValueId v, std::size_t rank) const;
  ValueId to_channels_last(ValueId v, std::size_t rank) const;
  ValueId concat(std::vector<ValueId> parts, std::int64_t axis) const;
  ValueId shape_of(ValueId v) const;  ///< i64 [rank]
  /// v[axis, start..stop) along one axis, step 1.
  ValueId slice(ValueId v, std::int64_t axis, std::int64_t start, std::int64_t stop) const;
  /// Element `index` along an axis, which goes.
  ValueId pick(ValueId v, std::int64_t axis, std::int64_t index) const;
  /// The numbers of the axes from one on, i64 [n].
  ValueId axes_from(ValueId v, std::int64_t first) const;
  /// Rank as i64 scalar: a constant when it is known.
  ValueId rank_of(ValueId v) const;
  ValueId to_scalar(ValueId v) const;  ///< one element
  ValueId to_vector(ValueId v) const;  ///< one element or a vector
  /// A tensor of `shape` (integers) with one value everywhere.
  ValueId filled(ValueId value, ValueId shape) const;

 private:
  Graph& graph_;
  int& folding_budget_;
};

}  // namespace lamina
