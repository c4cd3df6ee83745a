/// Joining, cutting and padding.
#include <algorithm>
#include <limits>

#include "base/work_partition.h"
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/check_sizes.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/sorting.h"

namespace lamina::onnx {
namespace {

Values convert_concat(Call& c) {
  if (!c.has_attribute("axis")) c.fail("has no axis");
  return {c.add(Concat{c.i("axis", 0)}, c.all_present())};
}

/// Ones, as many as v has elements.
ValueId ones_for(Call& c, ValueId v) {
  const auto& shape = c.type(v).shape;
  if (shape.ranked() && shape.rank() == 1 && shape[0].known() && shape[0].size() < 1024)
    return c.ints_constant(Ints(static_cast<std::size_t>(shape[0].size()), 1));
  return c.filled(c.int_constant(1), c.shape_of(v));
}

Values convert_slice(Call& c) {
  if (c.version() < 10) {
    const auto starts = c.ints("starts"), ends = c.ints("ends");
    if (starts.size() != ends.size()) c.fail("has {} starts and {} ends", starts.size(), ends.size());
    Values inputs{c.in(0), c.ints_constant(starts), c.ints_constant(ends),
                  c.ints_constant(Ints(starts.size(), 1))};
    if (const auto axes = c.maybe_ints("axes")) inputs.push_back(c.ints_constant(*axes));
    return {c.add(Slice{}, std::move(inputs))};
  }
  Values inputs{c.in(0), c.in(1), c.in(2), c.has(4) ? c.in(4) : ones_for(c, c.in(1))};
  if (c.has(3)) inputs.push_back(c.in(3));
  return {c.add(Slice{}, std::move(inputs))};
}

/// Parts of equal size, the last one smaller where that does not come out even (opset 18).
Values split_evenly(Call& c, ValueId x, std::int64_t axis, std::int64_t parts) {
  const auto count = static_cast<int>(parts);
  const auto& shape = c.type(x).shape;
  std::optional<std::int64_t> size;
  if (shape.ranked() && shape.rank() != 0)
    if (const auto& d = shape[c.axis(axis, shape.rank())]; d.known()) size = d.size();
  const auto at = c.int_constant(axis);
  if (c.version() < 18 || (size && *size % parts == 0)) return c.add_all(Split{parts}, {x, at}, count);
  if (size) {
    const auto part = ceil_div(*size, parts);
    Ints lengths(static_cast<std::size_t>(parts), part);
    lengths.back() = *size - part * (parts - 1);
    if (lengths.back() < 0) c.fail("{} elements cannot be split into {} parts of {}", *size, parts, part);
    return c.add_all(VariadicSplit{}, {x, at, c.ints_constant(lengths)}, count);
  }
  const auto rounded = add(c, size_of(c, x, axis), c.int_constant(parts - 1));
  const auto part = c.to_vector(divide(c, rounded, c.int_constant(parts)));
  Values lengths(static_cast<std::size_t>(parts - 1), part);
  lengths.push_back(c.ints_constant({-1}));
  return c.add_all(VariadicSplit{}, {x, at, c.concat(std::move(lengths), 0)}, count);
}

Values convert_split(Call& c) {
  const auto x = c.in(0);
  const auto axis = c.i("axis", 0);
  const auto outputs = static_cast<std::int64_t>(c.outputs());
  if (outputs == 0) c.fail("has no outputs");
  ValueId lengths;
  if (c.version() >= 13) {
    lengths = c.maybe(1);
  } else if (const auto list = c.ints("split"); !list.empty()) {
    lengths = c.ints_constant(list);
  }
  if (!lengths.valid()) {
    const auto parts = c.version() >= 18 ? c.i("num_outputs", outputs) : outputs;
    if (parts != outputs) c.fail("num_outputs is {}, the node has {} outputs", parts, outputs);
    return split_evenly(c, x, axis, parts);
  }
  if (const auto& shape = c.type(lengths).shape;
      shape.ranked() && shape.rank() == 1 && !shape[0].fits(Dim(outputs)))
    c.fail("split has {} lengths, the node has {} outputs", to_string(shape[0]), outputs);
  return c.add_all(VariadicSplit{}, {x, c.int_constant(axis), checked_lengths(c, lengths)},
                   static_cast<int>(outputs));
}

PadMode pad_mode(const Call& c) {
  const auto mode = c.s("mode", "constant");
  if (mode == "constant") return PadMode::constant;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  if (mode == "wrap") return PadMode::wrap;
  c.fail("mode is \"{}\", wanted constant, reflect, edge or wrap", mode);
}

/// Begins and ends for all axes from those of some.
std::pair<ValueId, ValueId> known_pads(Call& c, const Ints& pads, std::optional<Ints> axes) {
  if (pads.size() % 2 != 0) c.fail("pads has {} values, wanted an even number", pads.size());
  const auto half = pads.size() / 2;
  if (!axes) {
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(half);
    return {c.ints_constant(Ints(pads.begin(), middle)), c.ints_constant(Ints(middle, pads.end()))};
  }
  const auto rank = c.known_rank(c.in(0));
  if (axes->size() != half)
    c.fail("pads has {} values, wanted 2 for each of {} axes", pads.size(), axes->size());
  Ints begins(rank, 0), ends(rank, 0);
  for (std::size_t i = 0; i < half; ++i) {
    const auto a = c.axis((*axes)[i], rank);
    begins[a] = pads[i];
    ends[a] = pads[half + i];
  }
  return {c.ints_constant(begins), c.ints_constant(ends)};
}

/// Numbers for some axes, known or computed, as numbers for all axes of x; 0 for the others.
ValueId for_all_axes(Call& c, ValueId x, ValueId axes, ValueId numbers) {
  const auto rank = c.to_vector(c.rank_of(x));
  const auto zero = c.int_constant(0);
  axes = c.convert(axes, ElementType::i64);
  axes = c.add(Select{}, {c.add(Less{}, {axes, zero}), add(c, axes, rank), axes});
  return c.add(ScatterElementsUpdate{}, {c.filled(zero, rank), axes, numbers, zero});
}

/// Begins and ends for all axes, where pads or axes show at run time. `axes` may be invalid.
std::pair<ValueId, ValueId> computed_pads(Call& c, ValueId x, ValueId pads, ValueId axes) {
  const auto one = c.ints_constant({1}), zero = c.ints_constant({0});
  pads = c.convert(pads, ElementType::i64);
  auto count = c.shape_of(pads);
  if (const auto rank = c.rank(x); rank && !axes.valid())
    count = c.ints_constant({2 * static_cast<std::int64_t>(*rank)});
  const auto half = divide(c, count, c.ints_constant({2}));
  const auto begins = c.add(Slice{}, {pads, zero, half, one, zero});
  const auto ends = c.add(Slice{}, {pads, half, count, one, zero});
  if (!axes.valid()) return {begins, ends};
  return {for_all_axes(c, x, axes, begins), for_all_axes(c, x, axes, ends)};
}

/// Pads that are negative cut first: what they leave is repeated, or is too little, which is an error. (The
/// operator itself, as OpenVINO's, reflects into what is cut.)
ValueId repeated(Call& c, PadMode mode, ValueId x, ValueId begins, ValueId ends) {
  const auto cuts = [&](ValueId pads) {
    const auto known = c.known_ints(pads);
    return !known || std::any_of(known->begin(), known->end(), [](auto pad) { return pad < 0; });
  };
  if (cuts(begins) || cuts(ends)) {
    const auto zero = c.int_constant(0);
    const auto part = [&](Op op, ValueId pads) { return folded(c, c.add(std::move(op), {pads, zero})); };
    x = c.add(Pad{}, {x, part(Minimum{}, begins), part(Minimum{}, ends)});
    begins = part(Maximum{}, begins);
    ends = part(Maximum{}, ends);
  }
  return c.add(Pad{mode}, {x, begins, ends});
}

Values convert_pad(Call& c) {
  const auto x = c.in(0);
  std::pair<ValueId, ValueId> pads;
  ValueId value;
  if (c.version() < 11) {
    pads = known_pads(c, c.ints("pads"), std::nullopt);
    value = c.number_like(c.f("value", 0), x);
  } else {
    const auto axes = c.has(3) ? c.known_ints(c.in(3)) : std::nullopt;
    const auto list = c.known_ints(c.in(1));
    const bool known = list && (axes ? c.rank(x).has_value() : !c.has(3));
    pads = known ? known_pads(c, *list, axes) : computed_pads(c, x, c.in(1), c.maybe(3));
    if (c.has(2)) value = c.to_scalar(c.in(2));
  }
  const auto mode = pad_mode(c);
  if (mode != PadMode::constant) return {repeated(c, mode, x, pads.first, pads.second)};
  Values inputs{x, pads.first, pads.second};
  if (value.valid()) inputs.push_back(value);
  return {c.add(Pad{mode}, std::move(inputs))};
}

/// Cuts or pads on both sides alike. What is odd is added, or cut, at the end.
Values convert_center_crop_pad(Call& c) {
  const auto x = c.in(0);
  auto axes = c.ints("axes");
  if (const auto rank = c.rank(x))
    for (auto& a : axes) a = static_cast<std::int64_t>(c.axis(a, *rank));
  if (const auto& shape = c.shape(c.in(1));
      !axes.empty() && shape.known() && !shape.count().is(std::ssize(axes)))
    c.fail("shape has {} values, wanted {}", to_string(shape.count()), axes.size());
  if (const auto wanted = c.known_ints(c.in(1)))
    for (auto size : *wanted)
      if (size < 0) c.fail("shape has {}, wanted 0 or more", size);
  auto sizes = c.shape_of(x);
  const auto zero = c.ints_constant({0}), two = c.ints_constant({2});
  const auto chosen = c.ints_constant(axes);
  if (!axes.empty()) sizes = c.add(Gather{}, {sizes, chosen, c.int_constant(0)});
  const auto wanted = c.known_ints(c.in(1)) ? c.convert(c.in(1), ElementType::i64)
                                            : c.add_all(CheckSizes{SizesRule::any, "shape"}, {c.in(1)}, 2)[0];
  const auto more = c.add(Maximum{}, {subtract(c, wanted, sizes), zero});
  const auto less = c.add(Maximum{}, {subtract(c, sizes, wanted), zero});
  const auto front_more = divide(c, more, two), front_less = divide(c, less, two);
  auto begins = subtract(c, front_more, front_less);
  auto ends = subtract(c, subtract(c, more, front_more), subtract(c, less, front_less));
  if (!axes.empty()) {
    begins = for_all_axes(c, x, chosen, begins);
    ends = for_all_axes(c, x, chosen, ends);
  }
  return {c.add(Pad{}, {x, folded(c, begins), folded(c, ends)})};
}

/// Slices where the condition holds.
Values convert_compress(Call& c) {
  const auto chosen = c.squeeze(c.add(NonZero{}, {c.in(1)}), {0});
  const bool flat = !c.has_attribute("axis");
  const auto x = flat ? c.reshape(c.in(0), Ints{-1}) : c.in(0);
  return {c.add(Gather{0, OutOfRange::error}, {x, chosen, c.int_constant(flat ? 0 : c.i("axis", 0))})};
}

Values convert_reverse_sequence(Call& c) {
  return {c.add(ReverseSequence{c.i("batch_axis", 1), c.i("time_axis", 0)}, {c.in(0), c.in(1)})};
}

}  // namespace

void register_slicing(ConverterTable& t) {
  t.add("CenterCropPad", convert_center_crop_pad);
  t.add("Compress", convert_compress);
  t.add("Concat", convert_concat);
  t.add("Pad", convert_pad);
  t.add("ReverseSequence", convert_reverse_sequence);
  t.add("Slice", convert_slice);
  t.add("Split", convert_split);
}

}  // namespace lamina::onnx
