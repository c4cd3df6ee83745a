// Layers that give the same elements another shape or other places.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "formats/ir/legacy/lowering.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::ir::legacy {
namespace {

/// What Reshape makes of the pattern; nothing where it does not fit.
std::optional<Dims> reshaped_sizes(const Dims& in, const Ints& pattern) {
  Dims out = pattern;
  std::int64_t rest = std::accumulate(in.begin(), in.end(), std::int64_t{1}, std::multiplies<>());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0 && i < in.size()) out[i] = in[i];
    if (out[i] == -1) continue;
    if (out[i] <= 0 || rest % out[i] != 0) return std::nullopt;
    rest /= out[i];
  }
  std::replace(out.begin(), out.end(), std::int64_t{-1}, rest);
  return out;
}

/// The sizes that the file gives the output, as a pattern. When the model is read with other shapes, leading
/// sizes that the output has from the input follow the input, and so does what is left if that is one size.
Ints declared_pattern(Lowering& c) {
  c.require(c.declared().known(), "the output has no sizes");
  const Dims sizes = c.declared().sizes();
  Ints pattern(sizes.begin(), sizes.end());
  const Shape in = c.declared_input();
  if (c.sizes_hold() || !in.known()) return pattern;
  std::size_t same = 0;
  while (same < pattern.size() && same < in.rank() && in[same].is(pattern[same])) pattern[same++] = 0;
  if (same + 1 == pattern.size()) pattern[same] = -1;
  return pattern;
}

/// The pattern for an input of that shape.
using PatternOf = std::function<Ints(const Shape& in)>;

/// The sizes `now` with the ones of the file's sizes, where a pattern makes `made` of the file's input;
/// nothing where the two differ in more than ones.
std::optional<Ints> with_declared_ones(const Dims& declared, const Dims& made, const Dims& now) {
  Ints out;
  std::size_t i = 0;
  const auto skip = [&] { return made[i] == 1 && now[i] == 1; };
  for (const auto size : declared) {
    while (i < made.size() && made[i] != size && skip()) ++i;
    if (i < made.size() && made[i] == size)
      out.push_back(now[i++]);
    else if (size == 1)
      out.push_back(1);
    else
      return {};
  }
  while (i < made.size() && skip()) ++i;
  return i == made.size() ? std::optional(out) : std::nullopt;
}

/// The file's sizes go before its attributes: readers of that time looked at nothing else, and there are
/// files whose attributes are of an earlier stage of the network. A pattern that agrees with them is kept,
/// and so is one when the model is read with another rank, about which the file's sizes say nothing.
Ints agreeing_pattern(Lowering& c, const PatternOf& pattern_of) {
  Ints pattern = pattern_of(c.shape(0));
  const Shape in = c.declared_input();
  if (!in.known() || in.rank() != c.rank(0) || !c.declared().known()) return pattern;
  const Dims declared = c.declared().sizes();
  const auto made = reshaped_sizes(in.sizes(), pattern_of(in));
  const std::size_t count = element_count(in.sizes());
  const bool both_fit = made && element_count(*made) == count && element_count(declared) == count;
  if (!both_fit || *made == declared) return pattern;
  if (!c.sizes_hold() && c.shape(0).known())
    if (const auto now = reshaped_sizes(c.shape(0).sizes(), pattern))
      if (auto sizes = with_declared_ones(declared, *made, *now)) return *sizes;
  return declared_pattern(c);
}

void finish_reshape(Lowering& c, const PatternOf& pattern_of) {
  Reshape op;
  op.special_zero = true;
  c.finish(op, {c.in(0), c.constant(agreeing_pattern(c, pattern_of), "shape")});
}

void finish_reshape(Lowering& c, const Ints& pattern) {
  finish_reshape(c, [&](const Shape&) { return pattern; });
}

/// `middle` in the place of the axes [from, to) of an input; the others stay.
Ints with_middle(Lowering& c, const Shape& in, std::size_t from, std::size_t to, const Ints& middle) {
  Ints out(from, 0);
  for (std::size_t i = 0; i < middle.size(); ++i) {
    if (middle[i] == 0) {
      c.require(from + i < in.rank(), "dim has a 0 where the input, {}, has no axis", to_string(in));
      const Dim kept = in[from + i];
      out.push_back(kept.known() ? kept.size() : 0);
    } else {
      c.require(middle[i] >= -1, "dim contains {}, wanted -1 or more", middle[i]);
      out.push_back(middle[i]);
    }
  }
  const bool moved = from + middle.size() != to;
  for (std::size_t i = to; i < in.rank(); ++i) {
    c.require(!moved || in[i].known(), "input 0 has the shape {}, wanted known sizes", to_string(in));
    out.push_back(moved ? in[i].size() : 0);
  }
  return out;
}

/// Until version 4 the sizes are an attribute, for some of the axes; later they are an input.
void reshape(Lowering& c) {
  c.want_inputs(1, 2);
  if (c.inputs() == 2) {
    const bool special_zero = c.boolean("special_zero", true);
    const auto pattern = c.known_ints(1);
    if (pattern && special_zero && c.shape(1).rank() == 1) return finish_reshape(c, *pattern);
    Reshape op;
    op.special_zero = special_zero;
    return c.finish(op, {c.in(0), c.integral(1)});
  }
  const Ints dims = c.integers("dim");
  if (dims.empty()) return finish_reshape(c, declared_pattern(c));
  const auto rank = static_cast<std::int64_t>(c.rank(0));
  std::int64_t axis = c.integer("axis", 0);
  const std::int64_t count = c.integer("num_axes", -1);
  if (axis < 0) axis += rank + 1;
  c.require(axis >= 0 && axis <= rank, "axis is {}, but the input is {}", c.integer("axis", 0),
            to_string(c.shape(0)));
  c.require(count >= -1 && count <= rank - axis, "num_axes is {} from axis {} on, but the input is {}", count,
            axis, to_string(c.shape(0)));
  c.require(std::count(dims.begin(), dims.end(), -1) <= 1, "dim has more than one -1");
  const auto begin = static_cast<std::size_t>(axis);
  const auto end = static_cast<std::size_t>(count == -1 ? rank : axis + count);
  finish_reshape(c, [&](const Shape& in) { return with_middle(c, in, begin, end, dims); });
}

void flatten(Lowering& c) {
  c.want_inputs(1, 1);
  const std::size_t rank = c.rank(0);
  if (rank == 0) return finish_reshape(c, Ints{1});
  std::int64_t from = c.integer("axis", 0);
  // writers that leave the axis out mean the second one, which the output's rank shows
  if (!c.has("axis") && c.declared().rank() == 2 && rank > 2) from = 1;
  const std::size_t first = normalize_axis(from, rank, "axis");
  const std::size_t last = normalize_axis(c.integer("end_axis", -1), rank, "end_axis");
  c.require(first <= last, "axis {} is behind end_axis {}", first, last);
  finish_reshape(c, [&](const Shape& in) { return with_middle(c, in, first, last + 1, {-1}); });
}

void squeeze(Lowering& c) {
  c.want_inputs(1, 2);
  if (c.inputs() == 1) return c.finish(Squeeze{}, {c.in(0)});
  c.finish(Squeeze{}, {c.in(0), c.integral(1)});
}

void unsqueeze(Lowering& c) {
  c.want_inputs(2, 2);
  c.finish(Unsqueeze{}, {c.in(0), c.integral(1)});
}

void permute(Lowering& c) {
  c.want_inputs(1, 1);
  const Ints order = c.list("order");
  c.require(order.size() == c.rank(0), "order has {} axes, but the input is {}", order.size(),
            to_string(c.shape(0)));
  c.finish(Transpose{}, {c.in(0), c.constant(order, "order")});
}

void concat(Lowering& c) {
  c.want_inputs(1, kMany);
  Concat op;
  op.axis = c.integer("axis", 1);
  c.finish(op, c.alike());
}

/// How much of the axis each output has is said by the ports.
void split(Lowering& c) {
  c.want_inputs(1, 1);
  const std::size_t count = c.layer().outputs.size();
  const std::size_t axis = normalize_axis(c.integer("axis", 1), c.rank(0), "axis");
  if (c.has("num_split"))
    c.require(c.integer("num_split") == static_cast<std::int64_t>(count),
              "num_split is {}, but there are {} outputs", c.integer("num_split"), count);
  if (count == 1) return c.finish(Identity{}, {c.in(0)});
  Ints lengths;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    c.require(c.declared(i).rank() == c.rank(0), "output {} is {}, but the input is {}", i,
              to_string(c.declared(i)), to_string(c.shape(0)));
    lengths.push_back(c.declared(i)[axis].size());
    c.require(!__builtin_add_overflow(total, lengths.back(), &total), "the outputs are too large");
  }
  const Dim size = c.shape(0)[axis];
  c.require(!c.sizes_hold() || size.fits(total), "the outputs have {} along axis {} in all, the input has {}",
            total, axis, to_string(size));
  const ValueId along = c.constant(Tensor::scalar(static_cast<std::int64_t>(axis)), "axis");
  const bool equal = std::all_of(lengths.begin(), lengths.end(), [&](auto n) { return n == lengths[0]; });
  if (!equal) return c.finish(VariadicSplit{}, {c.in(0), along, c.constant(lengths, "lengths")});
  Split op;
  op.num_splits = static_cast<std::int64_t>(count);
  c.finish(op, {c.in(0), along});
}

/// What is left between begin and end; Slice would clamp bounds that are beyond the input.
void crop(Lowering& c) {
  c.want_inputs(1, 2);
  const Ints axes = c.list("axis");
  Ints begin = c.has("offset") ? c.integers("offset") : c.list("crop_begin");
  if (begin.size() == 1) begin.resize(axes.size(), begin[0]);
  c.require(begin.size() == axes.size(), "{} offsets for {} axes", begin.size(), axes.size());
  Ints sizes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = normalize_axis(axes[i], c.rank(0), "axis");
    const std::int64_t whole = c.known_size(0, axis);
    c.require(begin[i] >= 0 && begin[i] <= whole, "axis {} begins at {} of {}", axis, begin[i], whole);
    const auto item = [&](const char* name) {
      const Ints list = c.integers(name);
      c.require(list.size() == axes.size(), "{} has {} elements for {} axes", name, list.size(), axes.size());
      return list[i];
    };
    std::int64_t size = 0;
    if (c.inputs() == 2 && c.known_shape(1).rank() == c.rank(0))
      size = c.shape(1)[axis].size();
    else if (c.has("dim"))
      size = item("dim");
    else if (c.has("crop_end"))
      c.require(!__builtin_sub_overflow(whole - begin[i], item("crop_end"), &size), "crop_end is too large");
    else
      c.fail("dim and crop_end are missing");
    c.require(size >= 1 && size <= whole && begin[i] <= whole - size, "axis {}: {} elements from {} on of {}",
              axis, size, begin[i], whole);
    sizes.push_back(begin[i] + size);
  }
  c.finish(Slice{}, {c.in(0), c.constant(begin, "begin"), c.constant(sizes, "end"),
                     c.constant(Ints(axes.size(), 1), "step"), c.constant(axes, "axes")});
}

void tile(Lowering& c) {
  c.want_inputs(1, 1);
  Ints repeats(c.rank(0), 1);
  repeats[normalize_axis(c.integer("axis"), repeats.size(), "axis")] = c.integer("tiles");
  c.require(c.integer("tiles") >= 1, "tiles is {}, wanted at least 1", c.integer("tiles"));
  c.finish(Tile{}, {c.in(0), c.constant(repeats, "repeats")});
}

void pad(Lowering& c) {
  c.want_inputs(1, 1);
  const Ints begin = c.list("pads_begin"), end = c.list("pads_end");
  for (const auto* pads : {&begin, &end}) {
    c.require(pads->size() == c.rank(0), "{} pads, but the input is {}", pads->size(), to_string(c.shape(0)));
    for (const auto n : *pads) c.require(n >= 0, "a pad is {}, wanted at least 0", n);
  }
  const Op op = c.plain_op("Pad", {{"pad_mode", c.word("pad_mode", "constant")}});
  std::vector<ValueId> inputs = {c.in(0), c.constant(begin, "pads_begin"), c.constant(end, "pads_end")};
  if (const double value = c.number("pad_value", 0); value != 0)
    inputs.push_back(c.number_like(value, inputs[0], "pad_value"));
  c.finish(op, inputs);
}

/// A mask with an element per element of begin.
Ints mask(Lowering& c, const char* name, std::size_t length, std::int64_t missing) {
  Ints out = c.integers(name);
  for (const auto bit : out) c.require(bit == 0 || bit == 1, "{} contains {}, wanted 0 or 1", name, bit);
  out.resize(std::max(out.size(), length), missing);
  return out;
}

/// The first two masks say which bounds count; lamina's say which do not.
void strided_slice(Lowering& c) {
  c.want_inputs(3, 4);
  const Shape& bounds = c.shape(1);
  const std::size_t length =
      bounds.ranked() && bounds.rank() == 1 && bounds[0].known() && bounds[0].size() <= 64
          ? static_cast<std::size_t>(bounds[0].size())
          : c.rank(0);
  StridedSlice op;
  op.begin_mask = mask(c, "begin_mask", length, 1);
  op.end_mask = mask(c, "end_mask", length, 1);
  for (auto* list : {&op.begin_mask, &op.end_mask})
    for (auto& bit : *list) bit = 1 - bit;
  op.new_axis_mask = mask(c, "new_axis_mask", length, 0);
  op.shrink_axis_mask = mask(c, "shrink_axis_mask", length, 0);
  op.ellipsis_mask = mask(c, "ellipsis_mask", length, 0);
  std::vector<ValueId> inputs = {c.in(0)};
  for (std::size_t i = 1; i < c.inputs(); ++i) inputs.push_back(c.integral(i));
  c.finish(op, inputs);
}

void shuffle_channels(Lowering& c) {
  c.want_inputs(1, 1);
  c.finish(c.op("ShuffleChannels"), {c.in(0)});
}

template <class T>
void blocks(Lowering& c) {
  c.want_inputs(1, 1);
  T op;
  op.block_size = c.integer("block_size", 1);
  c.finish(op, {c.in(0)});
}

/// Input 1 is the shape.
void broadcast(Lowering& c) {
  c.want_inputs(2, 2);
  c.finish(Broadcast{}, {c.in(0), c.integral(1)});
}

void fill(Lowering& c) {
  c.want_inputs(2, 2);
  c.finish(Broadcast{}, {c.in(1), c.integral(0)});
}

void shape_of(Lowering& c) {
  c.want_inputs(1, 1);
  ShapeOf op;
  op.output_type = ElementType::i32;
  c.finish(op, {c.in(0)});
}

void range(Lowering& c) {
  c.want_inputs(3, 3);
  const auto inputs = c.alike();
  Range op;
  op.output_type = c.graph().type(inputs[0]).element;
  std::vector<ValueId> numbers;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    numbers.push_back(c.reshaped(inputs[i], {}, fmt::format("{}", i)));
  c.finish(op, numbers);
}

void reverse_sequence(Lowering& c) {
  c.want_inputs(2, 2);
  ReverseSequence op;
  op.seq_axis = c.integer("seq_axis", 1);
  op.batch_axis = c.integer("batch_axis", 0);
  c.finish(op, {c.in(0), c.integral(1)});
}

}  // namespace

void register_shaping(LoweringTable& t) {
  t.add("Reshape", reshape);
  t.add("Flatten", flatten);
  t.add("Squeeze", squeeze);
  t.add("Unsqueeze", unsqueeze);
  t.add("Permute", permute);
  t.add("Concat", concat);
  t.add("Split", split);
  t.add("Slice", split);
  t.add("Crop", crop);
  t.add("Tile", tile);
  t.add("Pad", pad);
  t.add("StridedSlice", strided_slice);
  t.add("ShuffleChannels", shuffle_channels);
  t.add("DepthToSpace", blocks<DepthToSpace>);
  t.add("SpaceToDepth", blocks<SpaceToDepth>);
  t.add("Broadcast", broadcast);
  t.add("Expand", broadcast);
  t.add("Fill", fill);
  t.add("Shape", shape_of);
  t.add("ShapeOf", shape_of);
  t.add("Range", range);
  t.add("ReverseSequence", reverse_sequence);
}

}  // namespace lamina::ir::legacy
