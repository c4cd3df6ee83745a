/// Operators of shaping.h that move blocks of space: DepthToSpace, ShuffleChannels, BatchToSpace and their
/// kin.
#include <algorithm>
#include <numeric>

#include "base/cancellation.h"
#include "graph/permute.h"
#include "ops/operators.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/shaping.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// block_size^(rank - 2), checked.
std::int64_t depth_factor(const InferContext& c, std::int64_t block_size, const Shape& x) {
  c.require(block_size >= 1, "block_size is {}, wanted 1 or more", block_size);
  if (!x.ranked()) return 1;
  c.require(x.rank() >= 3, "input has rank {}, wanted 3 or more", x.rank());
  std::int64_t factor = 1;
  for (std::size_t i = 2; i < x.rank(); ++i) factor = saturated_mul(factor, block_size);
  c.require(factor < INT64_MAX, "block_size {} is too large for rank {}", block_size, x.rank());
  return factor;
}

Dim divided(const InferContext& c, const Dim& d, std::int64_t divisor, std::string_view what) {
  c.require(!d.known() || d.size() % divisor == 0, "{} is {}, wanted a multiple of {}", what, to_string(d),
            divisor);
  return floor_div(d, divisor);
}

/// A constant list of one value per axis, or nothing.
std::optional<Ints> per_axis(const InferContext& c, std::size_t input, std::size_t rank, std::int64_t least,
                             std::string_view what) {
  const Dim length = require_list(c, input, what);
  c.require(length.fits(static_cast<std::int64_t>(rank)), "{} has {} elements, the input has rank {}", what,
            to_string(length), rank);
  auto values = c.ints(input);
  if (!values) return std::nullopt;
  for (auto v : *values) c.require(v >= least, "{} has {}, wanted {} or more", what, v, least);
  return values;
}

struct BatchBlocks {
  Ints block, begin, end;
  std::int64_t product = 1;
};

/// The three further inputs of BatchToSpace and SpaceToBatch; nothing when one is not known.
std::optional<BatchBlocks> batch_blocks(const InferContext& c, std::size_t rank, std::string_view begin_name,
                                        std::string_view end_name) {
  c.require(rank >= 1, "input has rank 0, wanted 1 or more");
  const auto block = per_axis(c, 1, rank, 1, "block_shape");
  const auto begin = per_axis(c, 2, rank, 0, begin_name), end = per_axis(c, 3, rank, 0, end_name);
  if (!block || !begin || !end) return std::nullopt;
  BatchBlocks b{*block, *begin, *end, 1};
  c.require(b.block[0] == 1 && b.begin[0] == 0 && b.end[0] == 0,
            "the batch has block {} and borders {} and {}, wanted 1, 0, 0", b.block[0], b.begin[0], b.end[0]);
  for (auto v : b.block) b.product = saturated_mul(b.product, v);
  c.require(b.product < INT64_MAX, "block_shape {} is too large", to_string(b.block));
  return b;
}

}  // namespace

void DepthToSpace::infer(InferContext& c) const {
  const Shape& x = c.shape(0);
  const auto factor = depth_factor(c, block_size, x);
  Shape out = x;
  if (x.ranked()) {
    out[1] = divided(c, x[1], factor, "the number of channels");
    for (std::size_t i = 2; i < x.rank(); ++i) out[i] = x[i] * Dim(block_size);
  }
  c.set(0, c.element(0), std::move(out));
}

void DepthToSpace::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& x = c.dims(0);
  const std::size_t k = x.size() - 2;
  const std::int64_t channels = c.out_dims()[1];
  // Seen as [N, blocks.., C, D..] or [N, C, blocks.., D..]; wanted [N, C, D1, block1, D2, block2, ...].
  const bool blocks_first = mode == DepthMode::blocks_first;
  Dims seen{x[0]};
  if (!blocks_first) seen.push_back(channels);
  seen.insert(seen.end(), k, block_size);
  if (blocks_first) seen.push_back(channels);
  seen.insert(seen.end(), x.begin() + 2, x.end());
  std::vector<std::size_t> order{0, blocks_first ? k + 1 : 1};
  const std::size_t first_block = blocks_first ? 1 : 2;
  for (std::size_t i = 0; i < k; ++i) order.insert(order.end(), {k + 2 + i, first_block + i});
  c.set(0, transposed(c.in(0), seen, order, c.out_dims()));
}

void SpaceToDepth::infer(InferContext& c) const {
  const Shape& x = c.shape(0);
  const auto factor = depth_factor(c, block_size, x);
  Shape out = x;
  if (x.ranked()) {
    out[1] = x[1] * Dim(factor);
    for (std::size_t i = 2; i < x.rank(); ++i) out[i] = divided(c, x[i], block_size, "a spatial dimension");
  }
  c.set(0, c.element(0), std::move(out));
}

void SpaceToDepth::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& x = c.dims(0);
  const std::size_t k = x.size() - 2;
  // Seen as [N, C, D1, block1, D2, block2, ...]; wanted [N, blocks.., C, D..] or [N, C, blocks.., D..].
  Dims seen{x[0], x[1]};
  for (std::size_t i = 0; i < k; ++i) seen.insert(seen.end(), {x[2 + i] / block_size, block_size});
  std::vector<std::size_t> order{0};
  if (mode == DepthMode::depth_first) order.push_back(1);
  for (std::size_t i = 0; i < k; ++i) order.push_back(3 + 2 * i);
  if (mode == DepthMode::blocks_first) order.push_back(1);
  for (std::size_t i = 0; i < k; ++i) order.push_back(2 + 2 * i);
  c.set(0, transposed(c.in(0), seen, order, c.out_dims()));
}

void ShuffleChannels::infer(InferContext& c) const {
  c.require(group >= 1, "group is {}, wanted 1 or more", group);
  const Shape& x = c.shape(0);
  if (x.ranked()) divided(c, x[normalize_axis(axis, x.rank(), "axis")], group, "the shuffled dimension");
  c.set(0, c.type(0));
}

void ShuffleChannels::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& x = c.dims(0);
  const auto a = normalize_axis(axis, x.size(), "axis");
  Dims seen{1, group, x[a] / group, 1};
  for (std::size_t i = 0; i < a; ++i) seen[0] *= x[i];
  for (std::size_t i = a + 1; i < x.size(); ++i) seen[3] *= x[i];
  c.set(0, transposed(c.in(0), seen, {0, 2, 1, 3}, x));
}

void BatchToSpace::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  if (!x.ranked()) return c.set(0, element, Shape());
  const auto b = batch_blocks(c, x.rank(), "crops_begin", "crops_end");
  if (!b) return c.set(0, element, Shape::of_rank(x.rank()));
  Shape out = x;
  out[0] = divided(c, x[0], b->product, "the batch");
  for (std::size_t i = 1; i < x.rank(); ++i) {
    const Dim grown = x[i] * Dim(b->block[i]), crop = Dim(b->begin[i]) + Dim(b->end[i]);
    c.require(!grown.is(Dim::kUnbounded), "axis {} of {} grows beyond 2^63", i, to_string(x));
    c.require(crop.low() <= grown.high(), "axis {} of {} elements is cropped by {}", i, to_string(grown),
              to_string(crop));
    out[i] = grown - crop;
  }
  c.set(0, element, std::move(out));
}

void BatchToSpace::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims &x = c.dims(0), &out = c.out_dims();
  const Ints block = c.ints(1), begin = c.ints(2);
  const std::size_t rank = x.size();
  // Seen as [blocks 1.., N, D1, ...]; wanted [N, D1, block1, D2, block2, ...], then cropped.
  Dims seen(block.begin() + 1, block.end()), grown{out[0]};
  seen.push_back(out[0]);
  seen.insert(seen.end(), x.begin() + 1, x.end());
  std::vector<std::size_t> order{rank - 1};
  for (std::size_t i = 1; i < rank; ++i) {
    order.insert(order.end(), {rank - 1 + i, i - 1});
    grown.push_back(x[i] * block[i]);
  }
  const Tensor whole = transposed(c.in(0), seen, order, grown);
  const auto strides = dense_strides(grown);
  std::int64_t offset = 0;
  for (std::size_t i = 1; i < rank; ++i) offset += begin[i] * strides[i];
  if (c.out().size() != 0)
    copy_strided(c.out().raw(), out, whole.raw(), offset, strides, element_bytes(c.out_element(0)));
}

void SpaceToBatch::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  if (!x.ranked()) return c.set(0, element, Shape());
  const auto b = batch_blocks(c, x.rank(), "pads_begin", "pads_end");
  if (!b) return c.set(0, element, Shape::of_rank(x.rank()));
  Shape out = x;
  out[0] = x[0] * Dim(b->product);
  for (std::size_t i = 1; i < x.rank(); ++i)
    out[i] = divided(c, x[i] + Dim(b->begin[i]) + Dim(b->end[i]), b->block[i], "a padded dimension");
  c.set(0, element, std::move(out));
}

void SpaceToBatch::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims &x = c.dims(0), &out = c.out_dims();
  const Ints block = c.ints(1), begin = c.ints(2);
  const std::size_t rank = x.size();
  const auto bytes = element_bytes(c.out_element(0));
  // Per output: batch = (blocks, N), position p along axis i reads x at p * block + offset of its block -
  // pad.
  const auto from = dense_strides(x), to = dense_strides(out);
  const std::int64_t total = static_cast<std::int64_t>(c.out().size());
  StopPoints points;
  for (std::int64_t o = 0; o < total; ++o) {
    points(16);
    std::int64_t in = 0, blocks = o / to[0] / x[0];
    bool inside = true;
    in += o / to[0] % x[0] * from[0];
    for (std::size_t i = rank; i-- > 1; blocks /= block[i]) {
      const std::int64_t at = o / to[i] % out[i] * block[i] + blocks % block[i] - begin[i];
      inside = inside && at >= 0 && at < x[i];
      in += at * from[i];
    }
    if (inside)
      std::copy_n(c.in(0).raw() + in * static_cast<std::int64_t>(bytes), bytes,
                  c.out().raw() + o * static_cast<std::int64_t>(bytes));
  }
}

namespace {

/// Blocks lie in the batch in the order of their axes, which may not change.
Verdict permute_blocks(PermuteContext& c) {
  std::int64_t last = 0;
  for (std::size_t i = 1; i < 4; ++i) {
    const auto list = c.node().ints(i);
    if (!list || list->size() != c.rank()) return not_known("blocks");
    c.replace(i, c.per_axis(*list));
    for (std::size_t axis = 1; i == 1 && axis < c.rank(); ++axis) {
      if ((*list)[axis] == 1) continue;
      if (c.order()[axis] < last) return Verdict::no("its blocks would change places in the batch");
      last = c.order()[axis];
    }
  }
  return c.order()[0] == 0 ? Verdict::yes() : Verdict::no("its batch would be another axis");
}

}  // namespace

Verdict BatchToSpace::permute(PermuteContext& c) const { return permute_blocks(c); }
Verdict SpaceToBatch::permute(PermuteContext& c) const { return permute_blocks(c); }

Verdict ShuffleChannels::permute(PermuteContext& c) const { return c.move_axis(*this); }

}  // namespace lamina
