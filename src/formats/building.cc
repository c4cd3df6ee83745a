#include "formats/building.h"

#include <algorithm>

#include "formats/known.h"
#include "graph/infer.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina {

ValueId add_counters(Graph& body) {
  const auto iteration = body.add_input("iteration", {ElementType::i64, Shape::of({})});
  body.add_input("condition", {ElementType::boolean, Shape::of({})});
  return iteration;
}

ElementType Building::known_element(ValueId v) const {
  if (element(v) == ElementType::undefined)
    unsupported("the element type of \"{}\" is not known", graph_.value(v).name);
  return element(v);
}

std::optional<std::size_t> Building::rank(ValueId v) const {
  return shape(v).ranked() ? std::optional(shape(v).rank()) : std::nullopt;
}

std::size_t Building::known_rank(ValueId v) const {
  const auto r = rank(v);
  if (!r) unsupported("the rank of \"{}\" is not known", graph_.value(v).name);
  return *r;
}

std::optional<Tensor> Building::known(ValueId v) const { return known_value(graph_, v, folding_budget_); }

std::optional<Ints> Building::known_ints(ValueId v) const {
  const auto t = known(v);
  if (!t || is_float(t->element_type())) return std::nullopt;
  return to_ints(*t);
}

std::optional<double> Building::known_number(ValueId v) const {
  const auto t = known(v);
  if (!t || t->size() != 1) return std::nullopt;
  return to_doubles(*t)[0];
}

Ints Building::wanted_ints(ValueId v, std::string_view what) const {
  auto values = known_ints(v);
  if (!values) unsupported("{} that are computed from data", what);
  return std::move(*values);
}

std::int64_t Building::wanted_int(ValueId v, std::string_view what) const {
  const auto values = known_ints(v);
  if (!values) unsupported("{} that is computed from data", what);
  if (values->size() != 1) fail("{} has {} elements, wanted 1", what, values->size());
  return values->front();
}

std::vector<ValueId> Building::add_all(Op op, std::vector<ValueId> inputs, int outputs,
                                       std::vector<Graph> bodies) const {
  return graph_.node(graph_.add_node(std::move(op), std::move(inputs), {}, outputs, std::move(bodies)))
      .outputs;
}

ValueId Building::ints_constant(const Ints& values) const {
  return constant(Tensor::of<std::int64_t>({std::ssize(values)}, values));
}

ValueId Building::int_constant(std::int64_t value) const {
  return constant(Tensor::scalar<std::int64_t>(value));
}

ValueId Building::number(double value, ElementType type) const {
  return constant(from_doubles(type, {}, {value}));
}

ValueId Building::convert(ValueId v, ElementType type) const {
  constexpr std::size_t kMostElements = 4096;
  if (element(v) == type) return v;
  if (const auto* t = graph_.constant(v); t && t->size() <= kMostElements)
    return constant(lamina::convert(t->to_aligned(), type));
  return add(Convert{type}, {v});
}

ValueId Building::reshape(ValueId v, const Ints& pattern) const {
  if (shape(v).known() && shape(v).sizes() == pattern) return v;
  const bool all_known = std::all_of(pattern.begin(), pattern.end(), [](auto d) { return d > 0; });
  if (const auto* t = graph_.constant(v); t && all_known && element_count(pattern) == t->size())
    return constant(t->reshaped(pattern));
  return reshape(v, ints_constant(pattern));
}

ValueId Building::reshape(ValueId v, ValueId pattern) const { return add(Reshape{}, {v, pattern}); }

ValueId Building::unsqueeze(ValueId v, const Ints& axes) const {
  return axes.empty() ? v : add(Unsqueeze{}, {v, ints_constant(axes)});
}

ValueId Building::squeeze(ValueId v, const Ints& axes) const {
  return axes.empty() ? v : add(Squeeze{}, {v, ints_constant(axes)});
}

ValueId Building::transpose(ValueId v, const Ints& order) const {
  return add(Transpose{}, {v, ints_constant(order)});
}

ValueId Building::to_channels_first(ValueId v, std::size_t rank) const {
  Ints order{0, static_cast<std::int64_t>(rank) - 1};
  for (std::int64_t a = 1; a + 1 < static_cast<std::int64_t>(rank); ++a) order.push_back(a);
  return transpose(v, order);
}

ValueId Building::to_channels_last(ValueId v, std::size_t rank) const {
  Ints order{0};
  for (std::int64_t a = 2; a < static_cast<std::int64_t>(rank); ++a) order.push_back(a);
  order.push_back(1);
  return transpose(v, order);
}

ValueId Building::concat(std::vector<ValueId> parts, std::int64_t axis) const {
  return parts.size() == 1 ? parts[0] : add(Concat{axis}, std::move(parts));
}

ValueId Building::shape_of(ValueId v) const { return add(ShapeOf{}, {v}); }

ValueId Building::slice(ValueId v, std::int64_t axis, std::int64_t start, std::int64_t stop) const {
  return add(Slice{},
             {v, ints_constant({start}), ints_constant({stop}), ints_constant({1}), ints_constant({axis})});
}

ValueId Building::pick(ValueId v, std::int64_t axis, std::int64_t index) const {
  return add(Gather{}, {v, int_constant(index), int_constant(axis)});
}

ValueId Building::axes_from(ValueId v, std::int64_t first) const {
  if (const auto r = rank(v)) {
    Ints axes;
    for (auto a = first; a < static_cast<std::int64_t>(*r); ++a) axes.push_back(a);
    return ints_constant(axes);
  }
  return add(Range{ElementType::i64}, {int_constant(first), rank_of(v), int_constant(1)});
}

ValueId Building::rank_of(ValueId v) const {
  if (const auto r = rank(v)) return int_constant(static_cast<std::int64_t>(*r));
  return to_scalar(shape_of(shape_of(v)));
}

ValueId Building::to_scalar(ValueId v) const {
  if (rank(v) == std::size_t{0}) return v;
  if (const auto* t = graph_.constant(v); t && t->size() == 1) return constant(t->reshaped({}));
  return reshape(v, constant(Tensor(ElementType::i64, {0})));
}

ValueId Building::to_vector(ValueId v) const {
  if (rank(v) == std::size_t{1}) return v;
  return reshape(v, rank(v) == std::size_t{0} ? Ints{1} : Ints{-1});
}

ValueId Building::filled(ValueId value, ValueId shape) const { return add(Broadcast{}, {value, shape}); }

}  // namespace lamina
