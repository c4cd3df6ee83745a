/// Blocks of space as channels or batches, and patches of pictures.
#include "formats/tensorflow/layout.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {
namespace {

template <class Op>
Values convert_depth(Call& c) {
  const auto layout = read_layout(c, 2);
  Op op;
  op.mode = DepthMode::blocks_first;
  op.block_size = c.i("block_size", 0);
  if (op.block_size < 1) c.fail("block_size is {}, wanted 1 or more", op.block_size);
  const auto y = c.add(op, {to_channels_first(c, c.in(0), layout)});
  return {to_framework(c, y, layout)};
}

/// Numbers for the axes from 1 on become numbers for all axes, `outside` for the others.
ValueId for_all_axes(Call& c, ValueId v, std::int64_t outside, std::size_t count, std::size_t rank) {
  Values parts{c.ints_constant({outside}), c.convert(v, ElementType::i64)};
  if (count + 1 < rank) parts.push_back(c.ints_constant(Ints(rank - count - 1, outside)));
  if (const auto known = c.known_ints(v)) {
    Ints all{outside};
    all.insert(all.end(), known->begin(), known->end());
    all.resize(rank, outside);
    return c.ints_constant(all);
  }
  return c.add(Concat{0}, std::move(parts));
}

/// Batch and space changes places; the block shape, then begins and ends for each axis of space.
template <class Op>
Values convert_space(Call& c, ValueId blocks, ValueId edges) {
  const auto rank = c.known_rank(c.in(0));
  const auto& shape = c.shape(blocks);
  if (!shape.known()) c.unsupported("a block shape of unknown size");
  if (shape.rank() != 1) c.fail("the block shape is {}, wanted rank 1", to_string(shape));
  const auto count = static_cast<std::size_t>(shape.sizes()[0]);
  if (count + 1 > rank) c.fail("has {} block sizes for an input of rank {}", count, rank);
  const auto column = [&](std::int64_t which) {
    auto v = c.pick(edges, 1, which);
    if (const auto known = c.known_ints(v)) v = c.ints_constant(*known);
    return for_all_axes(c, v, 0, count, rank);
  };
  return {c.add(Op{}, {c.in(0), for_all_axes(c, blocks, 1, count, rank), column(0), column(1)})};
}

template <class Op>
Values convert_space_nd(Call& c) {
  return convert_space<Op>(c, c.in(1), c.in(2));
}

/// The older form: one block size for height and width.
template <class Op>
Values convert_space_square(Call& c) {
  const auto size = c.i("block_size", 0);
  if (size < 1) c.fail("block_size is {}, wanted 1 or more", size);
  return convert_space<Op>(c, c.ints_constant({size, size}), c.in(1));
}

Values convert_patches(Call& c) {
  const Layout layout;
  ExtractImagePatches op;
  op.sizes = read_spatial(c, layout, "ksizes", true);
  op.strides = read_spatial(c, layout, "strides", true);
  op.rates = read_spatial(c, layout, "rates", false);
  Window window;
  read_padding(c, layout, window);
  op.auto_pad = window.auto_pad;
  const auto y = c.add(op, {to_channels_first(c, c.in(0), layout)});
  return {to_framework(c, y, layout)};
}

}  // namespace

void register_space(ConverterTable& t) {
  t.add("BatchToSpace", convert_space_square<BatchToSpace>);
  t.add("BatchToSpaceND", convert_space_nd<BatchToSpace>);
  t.add("DepthToSpace", convert_depth<DepthToSpace>);
  t.add("ExtractImagePatches", convert_patches);
  t.add("SpaceToBatch", convert_space_square<SpaceToBatch>);
  t.add("SpaceToBatchND", convert_space_nd<SpaceToBatch>);
  t.add("SpaceToDepth", convert_depth<SpaceToDepth>);
}

}  // namespace lamina::tensorflow
