/// Joining, cutting, padding and gathering.
#include "formats/tensorflow/call.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "ops/sorting.h"

namespace lamina::tensorflow {
namespace {

ValueId join(Call& c, Values parts, std::int64_t axis) {
  if (parts.empty()) c.fail("has nothing to join");
  if (parts.size() == 1) return c.add(Identity{}, {parts[0]});
  return c.add(Concat{axis}, std::move(parts));
}

/// The axis comes first.
Values convert_concat(Call& c) {
  const auto axis = c.wanted_int(c.in(0), "an axis");
  return {join(c, {c.all().begin() + 1, c.all().end()}, axis)};
}

/// The axis comes last.
Values convert_concat_v2(Call& c) {
  if (c.inputs() < 2) c.fail("has {} inputs, wanted 2 or more", c.inputs());
  const auto axis = c.wanted_int(c.all().back(), "an axis");
  return {join(c, {c.all().begin(), c.all().end() - 1}, axis)};
}

Values convert_pack(Call& c) {
  const auto axis = c.i("axis", 0);
  Values parts;
  for (auto v : c.all()) parts.push_back(c.unsqueeze(v, {axis}));
  if (parts.empty()) c.fail("has nothing to join");
  return {parts.size() == 1 ? parts[0] : c.add(Concat{axis}, std::move(parts))};
}

constexpr std::int64_t kMostParts = 100'000;

std::int64_t parts_of(const Call& c, std::string_view attribute) {
  const auto parts = c.i(attribute, 0);
  if (parts < 1 || parts > kMostParts) c.fail("{} is {}, wanted 1 to {}", attribute, parts, kMostParts);
  return parts;
}

Values convert_unpack(Call& c) {
  const auto axis = c.i("axis", 0), parts = parts_of(c, "num");
  if (const auto rank = c.rank(c.in(0))) {
    const auto& size = c.shape(c.in(0))[normalize_axis(axis, *rank, "axis")];
    if (!size.fits(parts)) c.fail("num is {}, the axis has size {}", parts, to_string(size));
  }
  Values out;
  for (auto v : c.add_all(Split{parts}, {c.in(0), c.int_constant(axis)}, static_cast<int>(parts)))
    out.push_back(c.squeeze(v, {axis}));
  return out;
}

/// Axis, value.
Values convert_split(Call& c) {
  const auto parts = parts_of(c, "num_split");
  const auto axis = c.wanted_int(c.in(0), "an axis");
  if (parts == 1) return {c.add(Identity{}, {c.in(1)})};
  return c.add_all(Split{parts}, {c.in(1), c.int_constant(axis)}, static_cast<int>(parts));
}

/// Value, lengths, axis.
Values convert_split_v(Call& c) {
  const auto parts = parts_of(c, "num_split");
  const auto axis = c.wanted_int(c.in(2), "an axis");
  if (parts == 1) return {c.add(Identity{}, {c.in(0)})};
  const auto known = c.known_ints(c.in(1));
  const auto lengths = known ? c.ints_constant(*known) : c.in(1);
  return c.add_all(VariadicSplit{}, {c.in(0), c.int_constant(axis), lengths}, static_cast<int>(parts));
}

/// [rank, 2] as two lists.
std::pair<ValueId, ValueId> read_pads(Call& c) {
  const auto pads = c.in(1);
  if (const auto& shape = c.shape(pads); shape.known() && (shape.rank() != 2 || !shape[1].is(2)))
    c.fail("the paddings are {}, wanted [rank,2]", to_string(shape));
  if (const auto known = c.known_ints(pads)) {
    Ints begin, end;
    for (std::size_t i = 0; i + 1 < known->size(); i += 2) {
      begin.push_back((*known)[i]);
      end.push_back((*known)[i + 1]);
    }
    return {c.ints_constant(begin), c.ints_constant(end)};
  }
  return {c.pick(pads, 1, 0), c.pick(pads, 1, 1)};
}

Values convert_pad(Call& c) {
  const auto [begin, end] = read_pads(c);
  Values inputs{c.in(0), begin, end};
  if (c.inputs() > 2) inputs.push_back(c.to_scalar(c.in(2)));
  return {c.add(Pad{}, std::move(inputs))};
}

Values convert_mirror_pad(Call& c) {
  const auto mode = c.s("mode", "");
  if (mode != "REFLECT" && mode != "SYMMETRIC") c.fail("mode is \"{}\", wanted REFLECT or SYMMETRIC", mode);
  const auto [begin, end] = read_pads(c);
  return {c.add(Pad{mode == "REFLECT" ? PadMode::reflect : PadMode::symmetric}, {c.in(0), begin, end})};
}

ValueId axis_or_first(Call& c) {
  if (c.inputs() < 3) return c.int_constant(0);
  if (const auto axis = c.known_ints(c.in(2)); axis && axis->size() == 1)
    return c.int_constant(axis->front());
  return c.in(2);
}

Values convert_gather(Call& c) {
  Gather op;
  op.batch_dims = c.i("batch_dims", 0);
  return {c.add(op, {c.in(0), c.in(1), axis_or_first(c)})};
}

Values convert_gather_nd(Call& c) {
  GatherND op;
  op.batch_dims = c.i("batch_dims", 0);
  return {c.add(op, {c.in(0), c.in(1)})};
}

/// Indices, updates, shape: what meets at one place adds up.
Values convert_scatter_nd(Call& c) {
  const auto zeros = c.filled(c.number_like(0, c.in(1)), c.in(2));
  return {c.add(ScatterNDUpdate{SlicesReduction::sum}, {zeros, c.in(0), c.in(1)})};
}

template <SlicesReduction kReduction>
Values convert_tensor_scatter(Call& c) {
  return {c.add(ScatterNDUpdate{kReduction}, {c.in(0), c.in(1), c.in(2)})};
}

Values convert_reverse_sequence(Call& c) {
  ReverseSequence op;
  op.seq_axis = c.i("seq_dim", 0);
  op.batch_axis = c.i("batch_dim", 0);
  return {c.add(op, {c.in(0), c.in(1)})};
}

Values convert_roll(Call& c) { return {c.add(Roll{}, {c.in(0), c.in(1), c.in(2)})}; }

/// Indices of what is not zero, one row each.
Values convert_where(Call& c) { return {c.transpose(c.add(NonZero{}, {c.in(0)}), {1, 0})}; }

}  // namespace

void register_arrays(ConverterTable& t) {
  t.add("Concat", convert_concat);
  t.add("ConcatV2", convert_concat_v2);
  t.add("Gather", convert_gather);
  t.add("GatherNd", convert_gather_nd);
  t.add("GatherV2", convert_gather);
  t.add("MirrorPad", convert_mirror_pad);
  t.add("Pack", convert_pack);
  t.add("Pad", convert_pad);
  t.add("PadV2", convert_pad);
  t.add("ReverseSequence", convert_reverse_sequence);
  t.add("Roll", convert_roll);
  t.add("ScatterNd", convert_scatter_nd);
  t.add("Split", convert_split);
  t.add("SplitV", convert_split_v);
  t.add("TensorScatterAdd", convert_tensor_scatter<SlicesReduction::sum>);
  t.add("TensorScatterMax", convert_tensor_scatter<SlicesReduction::max>);
  t.add("TensorScatterMin", convert_tensor_scatter<SlicesReduction::min>);
  t.add("TensorScatterSub", convert_tensor_scatter<SlicesReduction::sub>);
  t.add("TensorScatterUpdate", convert_tensor_scatter<SlicesReduction::none>);
  t.add("Unpack", convert_unpack);
  t.add("Where", convert_where);
}

}  // namespace lamina::tensorflow
