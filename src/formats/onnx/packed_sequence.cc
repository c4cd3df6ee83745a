#include "formats/onnx/packed_sequence.h"

#include <functional>
#include <limits>
#include <numeric>

#include "ops/check_sizes.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// A row of the list, or a single number, at a position. A position outside is an error at run time.
ValueId at(const Building& b, ValueId list, ValueId position, std::int64_t axis = 0) {
  return b.add(Gather{0, OutOfRange::error}, {list, position, b.int_constant(axis)});
}

ValueId vector_of(const Building& b, ValueId scalar) { return b.reshape(scalar, Ints{1}); }

/// x from start to stop along an axis; start and stop are scalars.
ValueId range_of(const Building& b, ValueId x, std::int64_t axis, ValueId start, ValueId stop) {
  return b.add(Slice{},
               {x, vector_of(b, start), vector_of(b, stop), b.ints_constant({1}), b.ints_constant({axis})});
}

ValueId size_along(const Building& b, ValueId x, std::int64_t axis) { return b.pick(b.shape_of(x), 0, axis); }

/// For each element of a packed sequence: how many numbers it has, and where they end.
struct Places {
  ValueId counts, ends;
};

Places places_of(const Building& b, const Sequence& s) {
  ReduceProd product;
  product.keep_dims = false;
  const auto counts = b.add(product, {s.values[1], b.ints_constant({1})});
  return {counts, b.add(CumSum{}, {counts, b.int_constant(0)})};
}

/// Where the numbers of one element begin and end: scalars.
struct Span {
  ValueId start, stop;
};

Span span_of(const Building& b, const Sequence& s, ValueId position) {
  const auto places = places_of(b, s);
  const auto stop = at(b, places.ends, position);
  return {b.add(Subtract{}, {stop, at(b, places.counts, position)}), stop};
}

ValueId position_scalar(const Building& b, ValueId position) {
  return b.to_scalar(b.convert(position, ElementType::i64));
}

/// Sizes of a shape for Reshape, i64 [rank]: constants where they are known, else those of `sizes`.
ValueId pattern_of(const Building& b, const Shape& known, ValueId sizes) {
  Values parts;
  for (std::size_t i = 0; i < known.rank(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    parts.push_back(known[i].known() ? b.ints_constant({known[i].size()})
                                     : b.slice(sizes, 0, axis, axis + 1));
  }
  if (known.known()) return b.ints_constant(known.sizes());
  return b.concat(std::move(parts), 0);
}

/// A Loop that runs a body `count` times and joins each of its results along its axis.
Values for_each(const Building& b, ValueId count, const Sequence& s, const Ints& axes,
                const std::function<Values(const Building&, const Sequence&, ValueId)>& make) {
  Graph body;
  int folding = 100;
  const Building inside(body, folding);
  const auto iteration = add_counters(body);
  Values inputs{count, {}};
  auto within = s;
  for (auto& v : within.values) {
    const auto* data = b.graph().constant(v);
    if (!data) inputs.push_back(v);
    v = data ? body.add_constant(*data) : body.add_input("", b.type(v));
  }
  const auto results = make(inside, within, iteration);
  body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
  for (auto v : results) body.add_result(body.value(v).name, v);
  Loop op;
  op.concat_axes = axes;
  std::vector<Graph> bodies;
  bodies.push_back(std::move(body));
  return b.add_all(op, std::move(inputs), static_cast<int>(results.size()), std::move(bodies));
}

void require_known_item(const TensorType& item) {
  if (item.element == ElementType::undefined)
    throw NotSupported{"a sequence whose elements' type is not known"};
  if (!item.shape.ranked())
    throw NotSupported{
        "a sequence of a length known at run time, with elements of different or unknown ranks"};
}

void require_values(const Sequence& s) {
  if (s.form == SequenceForm::absent) throw NotSupported{"an optional that has no value"};
  if (s.form == SequenceForm::open) throw NotSupported{"a sequence that is not known"};
}

/// Sizes that all elements have along the axes from `axis` on; an error at run time where one differs between
/// elements.
ValueId common_sizes(const Building& b, const Sequence& s, std::int64_t axis = 0) {
  ReduceMax largest;
  ReduceMin smallest;
  largest.keep_dims = smallest.keep_dims = false;
  const auto first = b.ints_constant({0});
  const auto rank = static_cast<std::int64_t>(s.item.shape.rank());
  const auto sizes = axis == 0 ? s.values[1] : b.slice(s.values[1], 1, axis, rank);
  const auto most = b.add(largest, {sizes, first}), least = b.add(smallest, {sizes, first});
  const CheckSizes same{SizesRule::same, "the shape of an element of a sequence"};
  return b.add_all(same, {most, least}, 2)[0];
}

/// Elements of one shape, one behind the other along a new first axis.
ValueId stacked(const Building& b, const Sequence& s) {
  const auto count = vector_of(b, length_of(b, s));
  return b.reshape(s.values[0], b.concat({count, pattern_of(b, s.item.shape, common_sizes(b, s))}, 0));
}

ValueId moved_axis(const Building& b, ValueId x, std::size_t rank, std::int64_t to) {
  if (to == 0) return x;
  Ints order(rank - 1);
  std::iota(order.begin(), order.end(), 1);
  order.insert(order.begin() + to, 0);
  return b.transpose(x, order);
}

/// Elements of one size along the axis, which need not be the first.
ValueId joined_equal(const Building& b, const Sequence& s, std::int64_t axis) {
  const auto rank = s.item.shape.rank();
  const auto size = s.item.shape[static_cast<std::size_t>(axis)].size();
  const auto y = moved_axis(b, stacked(b, s), rank + 1, axis);
  Values pattern;
  const auto sizes = b.shape_of(y);
  if (axis > 0) pattern.push_back(b.slice(sizes, 0, 0, axis));
  pattern.push_back(b.add(Multiply{}, {b.slice(sizes, 0, axis, axis + 1), b.ints_constant({size})}));
  if (axis + 1 < static_cast<std::int64_t>(rank))
    pattern.push_back(b.slice(sizes, 0, axis + 2, static_cast<std::int64_t>(rank) + 1));
  return b.reshape(y, b.concat(std::move(pattern), 0));
}

/// Elements joined along the first axis: their numbers are in order already.
ValueId joined_first(const Building& b, const Sequence& s) {
  ReduceSum sum;
  sum.keep_dims = false;
  auto pattern = vector_of(b, b.add(sum, {b.pick(s.values[1], 1, 0), b.ints_constant({0})}));
  const auto rank = static_cast<std::int64_t>(s.item.shape.rank());
  if (rank > 1) {
    const auto& dims = s.item.shape.dims();
    const auto rest =
        pattern_of(b, Shape(std::vector<Dim>(dims.begin() + 1, dims.end())), common_sizes(b, s, 1));
    pattern = b.concat({pattern, rest}, 0);
  }
  return b.reshape(s.values[0], pattern);
}

/// The packed sequence, whose sizes are an error at run time where it has no elements: nothing says then what
/// joining them gives.
Sequence not_empty(const Building& b, const Sequence& s) {
  if (const auto& rows = b.type(s.values[1]).shape; rows.ranked() && rows[0].low() > 0) return s;
  const CheckSizes positive{SizesRule::positive, "the number of elements of a sequence to join"};
  const auto count = b.add_all(positive, {length_of(b, s)}, 2)[0];
  auto out = s;
  out.values[1] = range_of(b, s.values[1], 0, b.int_constant(0), count);
  return out;
}

ValueId joined_packed(const Building& b, const Sequence& given, std::int64_t given_axis, bool new_axis) {
  const auto s = not_empty(b, given);
  const auto rank = s.item.shape.rank() + (new_axis ? 1 : 0);
  const auto axis = static_cast<std::int64_t>(b.axis(given_axis, rank));
  if (new_axis) return moved_axis(b, stacked(b, s), rank, axis);
  if (axis == 0) return joined_first(b, s);
  if (s.item.shape[static_cast<std::size_t>(axis)].known()) return joined_equal(b, s, axis);
  return for_each(b, length_of(b, s), s, {axis},
                  [](const Building& inside, const Sequence& within, ValueId i) -> Values {
                    return {element_at(inside, within, i)};
                  })[0];
}

Sequence packed_list(const Building& b, const Sequence& s, const TensorType& item) {
  Values numbers, sizes;
  for (auto v : s.values) {
    numbers.push_back(numbers_of(b, v));
    sizes.push_back(shape_row(b, v));
  }
  if (s.values.empty()) {
    numbers.push_back(b.constant(Tensor(item.element, {0})));
    sizes.push_back(b.constant(Tensor(ElementType::i64, {0, static_cast<std::int64_t>(item.shape.rank())})));
  }
  return {SequenceForm::packed, {b.concat(std::move(numbers), 0), b.concat(std::move(sizes), 0)}, item};
}

}  // namespace

ValueId numbers_of(const Building& b, ValueId element) { return b.reshape(element, Ints{-1}); }

ValueId shape_row(const Building& b, ValueId element) {
  return b.reshape(b.shape_of(element), {1, static_cast<std::int64_t>(b.known_rank(element))});
}

ValueId length_of(const Building& b, const Sequence& s) {
  require_values(s);
  switch (s.form) {
    case SequenceForm::listed:
      return b.int_constant(std::ssize(s.values));
    case SequenceForm::rows:
      return size_along(b, s.values[0], s.axis);
    default:
      return size_along(b, s.values[1], 0);
  }
}

ValueId element_at(const Building& b, const Sequence& s, ValueId position) {
  require_values(s);
  position = position_scalar(b, position);
  if (s.form == SequenceForm::rows) {
    const auto row = at(b, s.values[0], position, s.axis);
    return s.keeps_axis ? b.unsqueeze(row, {s.axis}) : row;
  }
  if (s.form == SequenceForm::parts) {
    const auto start = at(b, s.values[1], position);
    const auto stop = b.add(Add{}, {start, at(b, s.values[2], position)});
    const auto part = range_of(b, s.values[0], s.axis, start, stop);
    return s.keeps_axis ? part : b.squeeze(part, {s.axis});
  }
  const auto p = packed(b, s);
  const auto [start, stop] = span_of(b, p, position);
  return b.reshape(range_of(b, p.values[0], 0, start, stop),
                   pattern_of(b, p.item.shape, at(b, p.values[1], position)));
}

Sequence packed(const Building& b, const Sequence& s, const TensorType& like) {
  require_values(s);
  if (s.form == SequenceForm::packed) return s;
  auto item = item_type(b.graph(), s);
  if (s.form == SequenceForm::listed && s.values.empty()) {
    if (item.element == ElementType::undefined) item.element = like.element;
    if (like.element == item.element && !item.shape.ranked()) item.shape = like.shape;
  }
  require_known_item(item);
  if (s.form == SequenceForm::listed) return packed_list(b, s, item);
  const auto values = for_each(b, length_of(b, s), s, {0, 0},
                               [](const Building& inside, const Sequence& within, ValueId i) -> Values {
                                 const auto element = element_at(inside, within, i);
                                 return {numbers_of(inside, element), shape_row(inside, element)};
                               });
  return {SequenceForm::packed, values, item};
}

Sequence chained(const Building& b, const Sequence& first, const Sequence& second) {
  auto item = common_item(first.item, second.item);
  require_known_item(item);
  return {
      SequenceForm::packed,
      {b.concat({first.values[0], second.values[0]}, 0), b.concat({first.values[1], second.values[1]}, 0)},
      std::move(item)};
}

Sequence with_inserted(const Building& b, const Sequence& s, ValueId element, ValueId position) {
  const auto type = b.type(element);
  if (s.form == SequenceForm::open) {
    if (type.element == ElementType::undefined || !type.shape.ranked())
      throw NotSupported{"an element of unknown type or rank"};
    auto grown = s;
    grown.item =
        s.item.element == ElementType::undefined || !s.item.shape.ranked() ? type : common_item(s.item, type);
    return grown;
  }
  const auto before = packed(b, s, type);
  const auto one = packed_list(b, {SequenceForm::listed, {element}, type}, type);
  if (!position.valid()) return chained(b, before, one);
  // An insertion has n + 1 places; a position of -1 is the place before the last element.
  const auto zero = b.int_constant(0), last = b.int_constant(std::numeric_limits<std::int64_t>::max());
  position = position_scalar(b, position);
  position = b.add(Select{}, {b.add(Less{}, {position, zero}),
                              b.add(Subtract{}, {position, b.int_constant(1)}), position});
  const auto count = b.add(Add{}, {length_of(b, before), b.int_constant(1)});
  const auto place = at(b, b.add(Range{ElementType::i64}, {zero, count, b.int_constant(1)}), position);
  const auto start = at(b, b.concat({b.ints_constant({0}), places_of(b, before).ends}, 0), position);
  const auto between = [&](ValueId list, ValueId from, ValueId inserted) {
    return b.concat({range_of(b, list, 0, zero, from), inserted, range_of(b, list, 0, from, last)}, 0);
  };
  auto item = common_item(before.item, type);
  require_known_item(item);
  return {SequenceForm::packed,
          {between(before.values[0], start, one.values[0]), between(before.values[1], place, one.values[1])},
          std::move(item)};
}

Sequence without(const Building& b, const Sequence& s, ValueId position) {
  if (s.form == SequenceForm::open) return s;
  auto p = packed(b, s);
  position = position_scalar(b, position);
  const auto zero = b.int_constant(0), one = b.int_constant(1),
             last = b.int_constant(std::numeric_limits<std::int64_t>::max());
  const auto [start, stop] = span_of(b, p, position);
  const auto place = at(b, b.add(Range{ElementType::i64}, {zero, length_of(b, p), one}), position);
  const auto left = [&](ValueId list, ValueId from, ValueId to) {
    return b.concat({range_of(b, list, 0, zero, from), range_of(b, list, 0, to, last)}, 0);
  };
  p.values = {left(p.values[0], start, stop), left(p.values[1], place, b.add(Add{}, {place, one}))};
  return p;
}

ValueId joined(const Building& b, const Sequence& s, std::int64_t axis, bool new_axis) {
  require_values(s);
  if (s.form == SequenceForm::rows || s.form == SequenceForm::parts) {
    const auto rank = static_cast<std::int64_t>(b.known_rank(s.values[0]));
    const bool same = (axis < 0 ? axis + rank : axis) == s.axis;
    if (same && s.keeps_axis != new_axis) return s.values[0];
  }
  return joined_packed(b, packed(b, s), axis, new_axis);
}

}  // namespace lamina::onnx
