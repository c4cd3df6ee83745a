/// Operators on sequences and optionals.
#include <algorithm>

#include "formats/onnx/build.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/packed_sequence.h"
#include "formats/onnx/sequence_operators.h"
#include "ops/check_sizes.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/reduction.h"

namespace lamina::onnx {

Values sequence_values(Call& c, const Sequence& s, ValueId length) {
  if (s.form == SequenceForm::listed && s.values.size() > kLongestList)
    c.unsupported("a sequence of {} elements, more than {}", s.values.size(), kLongestList);
  auto& budget = c.importer().sequence_budget;
  if ((budget -= static_cast<int>(s.values.size())) < 0) c.unsupported("too many sequences");
  return {add_sequence(c.graph(), s, length)};
}

Values list_values(Call& c, Values elements, ValueId length) {
  for (auto v : elements)
    if (is_sequence(c.graph(), v)) c.fail("a sequence as an element of a sequence");
  return sequence_values(c, {SequenceForm::listed, std::move(elements), {}}, length);
}

Sequence sequence_in(const Call& c, std::size_t input) {
  const auto v = c.in(input);
  if (is_sequence(c.graph(), v)) return sequence_of(c.graph(), v);
  if (c.element(v) == ElementType::undefined) c.unsupported("a sequence that is not known");
  c.fail("input {} is a tensor, wanted a sequence", input);
}

namespace {

/// The checked length of a list that has as many elements more; invalid where nothing is checked.
ValueId checked_length(Call& c, std::size_t input, std::int64_t more) {
  const auto length = checked_length_of(c.graph(), c.in(input));
  return length.valid() ? add(c, length, c.int_constant(more)) : length;
}

ValueId element_in(const Call& c, std::size_t input) {
  const auto v = c.in(input);
  if (is_sequence(c.graph(), v)) c.fail("a sequence as an element of a sequence");
  return v;
}

/// The input as an index into `size` elements, at most `most`, which may be `size` for an insertion; nothing
/// if it is computed.
std::optional<std::size_t> position(const Call& c, std::size_t input, std::size_t size, std::size_t most) {
  const auto given = c.known_ints(c.in(input));
  if (!given) return std::nullopt;
  if (given->size() != 1) c.fail("the position has {} elements, wanted 1", given->size());
  const auto count = static_cast<std::int64_t>(size);
  const auto at = (*given)[0];
  if (at < -count || at > static_cast<std::int64_t>(most))
    c.fail("position {} is outside of a sequence of {} elements", at, size);
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

/// The position of an element of a list, the last one by default.
std::optional<std::size_t> place_of(const Call& c, const Values& elements) {
  if (elements.empty()) c.fail("the sequence is empty");
  if (!c.has(1)) return elements.size() - 1;
  return position(c, 1, elements.size(), elements.size() - 1);
}

Values convert_construct(Call& c) {
  if (c.inputs() == 0) c.fail("has no inputs");
  return list_values(c, c.all_present());
}

Values convert_empty(Call& c) {
  return sequence_values(c, {SequenceForm::listed, {}, {c.element_attribute("dtype", ElementType::f32), {}}});
}

Values convert_insert(Call& c) {
  auto s = sequence_in(c, 0);
  const auto element = element_in(c, 1);
  if (s.form == SequenceForm::listed && s.values.size() < kLongestList) {
    auto& all = s.values;
    const auto place = c.has(2) ? position(c, 2, all.size(), all.size()) : all.size();
    if (place) {
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(*place), element);
      return sequence_values(c, s, checked_length(c, 0, 1));
    }
  }
  return sequence_values(c, with_inserted(c, s, element, c.maybe(2)));
}

Values convert_erase(Call& c) {
  auto s = sequence_in(c, 0);
  if (s.form == SequenceForm::listed)
    if (const auto place = place_of(c, s.values)) {
      s.values.erase(s.values.begin() + static_cast<std::ptrdiff_t>(*place));
      return sequence_values(c, s, checked_length(c, 0, -1));
    }
  return sequence_values(c, without(c, s, c.has(1) ? c.in(1) : c.int_constant(-1)));
}

Values convert_at(Call& c) {
  c.in(1);
  const auto s = sequence_in(c, 0);
  if (s.form == SequenceForm::listed)
    if (const auto place = place_of(c, s.values)) return {s.values[*place]};
  return {element_at(c, s, c.in(1))};
}

/// Where lengths of parts show at run time they are checked though nobody reads the parts.
Values convert_length(Call& c) {
  const auto s = sequence_in(c, 0);
  const auto checked = checked_length_of(c.graph(), c.in(0));
  return {checked.valid() ? checked : length_of(c, s)};
}

Values join_list(Call& c, Values parts, std::int64_t axis, bool new_axis) {
  if (parts.empty()) c.fail("the sequence is empty");
  if (new_axis)
    for (auto& v : parts) v = c.unsqueeze(v, {axis});
  if (parts.size() == 1) {
    c.axis(axis, c.known_rank(parts[0]));
    return parts;
  }
  return {c.concat(std::move(parts), axis)};
}

Values convert_join(Call& c) {
  if (!c.has_attribute("axis")) c.fail("has no axis");
  const auto s = sequence_in(c, 0);
  const auto axis = c.i("axis", 0);
  if (s.form == SequenceForm::listed) return join_list(c, s.values, axis, c.flag("new_axis"));
  return {joined(c, s, axis, c.flag("new_axis"))};
}

/// Splits into parts of one length, which is computed, or which makes too many parts for a list. The last
/// part is smaller if the size is no multiple of the length.
Values even_parts(Call& c, std::int64_t axis, ValueId part) {
  const auto x = c.in(0);
  const auto zero = c.int_constant(0);
  if (!c.known_ints(part)) part = c.add_all(CheckSizes{SizesRule::positive, "split"}, {part}, 2)[0];
  part = c.to_scalar(c.convert(part, ElementType::i64));
  const auto size = c.pick(c.shape_of(x), 0, axis);
  const auto starts = c.add(Range{ElementType::i64}, {zero, size, part});
  const auto lengths = c.add(Minimum{}, {part, subtract(c, size, starts)});
  return sequence_values(c, {SequenceForm::parts, {x, starts, lengths}, {}, axis});
}

/// Lengths that are not below 0 and add up to the size of the axis, and their number: a CheckSizes.
Values checked_sum(Call& c, std::int64_t axis, ValueId lengths) {
  const auto size = c.pick(c.shape_of(c.in(0)), 0, axis);
  return c.add_all(CheckSizes{SizesRule::sum, "split"}, {lengths, size}, 2);
}

/// Splits into parts of given lengths, whose number is known at run time only, or too large for a list.
Values uneven_parts(Call& c, std::int64_t axis, ValueId lengths) {
  const auto checked = checked_sum(c, axis, lengths);
  lengths = checked[0];
  ReduceSum sum;
  sum.keep_dims = true;
  const auto sizes = c.shape_of(c.in(0));
  const auto rank = static_cast<std::int64_t>(c.known_rank(c.in(0)));
  Values pattern{c.add(sum, {lengths, c.ints_constant({0})})};
  if (axis > 0) pattern.insert(pattern.begin(), c.slice(sizes, 0, 0, axis));
  if (axis + 1 < rank) pattern.push_back(c.slice(sizes, 0, axis + 1, rank));
  // Parts that are joined again are x itself: it depends on the check, too.
  const auto x = c.reshape(c.in(0), c.concat(std::move(pattern), 0));
  const auto starts = c.add(CumSum{true}, {lengths, c.int_constant(0)});
  return sequence_values(c, {SequenceForm::parts, {x, starts, lengths}, {}, axis}, checked[1]);
}

Values listed_parts(Call& c, std::int64_t axis, ValueId lengths, std::int64_t count, ValueId length = {}) {
  if (count == 0) return sequence_values(c, {SequenceForm::listed, {}, {c.element(c.in(0)), {}}}, length);
  auto parts = c.add_all(VariadicSplit{}, {c.in(0), c.int_constant(axis), lengths}, static_cast<int>(count));
  if (!c.has(1) && !c.flag("keepdims", true))
    for (auto& v : parts) v = c.squeeze(v, {axis});
  return list_values(c, std::move(parts), length);
}

Values convert_split_by_lengths(Call& c, std::int64_t axis) {
  const auto count = c.shape(c.in(1))[0];
  if (!count.known() || count.size() > static_cast<std::int64_t>(kLongestList))
    return uneven_parts(c, axis, c.in(1));
  const auto known = c.known_ints(c.in(1));
  const auto given = known ? c.ints_constant(*known) : c.in(1);
  const auto lengths = checked_lengths(c, given);
  if (known && c.shape(c.in(0))[static_cast<std::size_t>(axis)].known())
    return listed_parts(c, axis, lengths, count.size());
  const auto checked = checked_sum(c, axis, given);
  return listed_parts(c, axis, lengths == given ? given : checked[0], count.size(), checked[1]);
}

Values convert_split_to_sequence(Call& c) {
  const auto x = c.in(0);
  const auto axis = static_cast<std::int64_t>(c.axis(c.i("axis", 0), c.known_rank(x)));
  const auto rank = c.has(1) ? c.known_rank(c.in(1)) : 0;
  if (rank > 1) c.fail("split has rank {}, wanted 0 or 1", rank);
  if (rank == 1) return convert_split_by_lengths(c, axis);
  const auto known = c.has(1) ? c.known_ints(c.in(1)) : Ints{1};
  if (known && known->at(0) < 1) c.fail("split is {}, wanted 1 or more", known->at(0));
  const auto size = c.shape(x)[static_cast<std::size_t>(axis)];
  if (!known || !size.known() || size.size() / known->at(0) >= static_cast<std::int64_t>(kLongestList)) {
    if (c.has(1)) return even_parts(c, axis, c.in(1));
    return sequence_values(c, {SequenceForm::rows, {x}, {}, axis, c.flag("keepdims", true)});
  }
  const auto part = known->at(0);
  Ints lengths(static_cast<std::size_t>(size.size() / part), part);
  if (size.size() % part != 0) lengths.push_back(size.size() % part);
  return listed_parts(c, axis, c.ints_constant(lengths), std::ssize(lengths));
}

// Optionals: whether one has a value is known while the model is read.

bool is_absent(const Call& c, ValueId v) {
  return is_sequence(c.graph(), v) && sequence_of(c.graph(), v).form == SequenceForm::absent;
}

Values convert_optional(Call& c) {
  if (c.has(0)) return {c.in(0)};
  return sequence_values(c, {SequenceForm::absent, {}, {}});
}

Values convert_has_element(Call& c) {
  if (c.has(0) && !is_sequence(c.graph(), c.in(0)) && c.element(c.in(0)) == ElementType::undefined)
    c.unsupported("an optional that is not known");
  const bool has = c.has(0) && !is_absent(c, c.in(0));
  return {c.constant(Tensor::scalar<bool>(has))};
}

Values convert_get_element(Call& c) {
  if (is_absent(c, c.in(0))) c.fail("the optional has no value");
  return {c.in(0)};
}

}  // namespace

void register_sequence(ConverterTable& t) {
  t.add("ConcatFromSequence", convert_join);
  t.add("Optional", convert_optional);
  t.add("OptionalGetElement", convert_get_element);
  t.add("OptionalHasElement", convert_has_element);
  t.add("SequenceAt", convert_at);
  t.add("SequenceConstruct", convert_construct);
  t.add("SequenceEmpty", convert_empty);
  t.add("SequenceErase", convert_erase);
  t.add("SequenceInsert", convert_insert);
  t.add("SequenceLength", convert_length);
  t.add("SplitToSequence", convert_split_to_sequence);
}

}  // namespace lamina::onnx
