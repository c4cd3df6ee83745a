/// RotaryEmbedding: pairs of elements turned by the angles of their position.
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/heads.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// One cosine or sine for each pair of elements, as [B, 1, S, pairs], or [B, S, 1, pairs] before the heads
/// are moved.
ValueId rotations(Call& c, ValueId cache, std::int64_t heads_axis, ElementType type) {
  const auto rank = c.known_rank(cache);
  const auto wanted = c.has(3) ? 2U : 3U;
  if (rank != wanted) c.fail("a cache has rank {}, wanted {}", rank, wanted);
  if (c.has(3)) {
    if (c.known_rank(c.in(3)) != 2) c.fail("position_ids have rank {}, wanted 2", c.known_rank(c.in(3)));
    cache = c.add(Gather{0, OutOfRange::error}, {cache, c.in(3), c.int_constant(0)});
  }
  return c.unsqueeze(c.convert(cache, type), {heads_axis});
}

/// Elements of a pair are neighbours, or half of the rotated part away from each other.
ValueId rotated(Call& c, ValueId x, ValueId cosines, ValueId sines, std::int64_t size) {
  const bool neighbours = c.flag("interleaved");
  const auto part = [&](std::int64_t which) {
    if (!neighbours) return c.slice(x, 3, which * size / 2, (which + 1) * size / 2);
    return c.add(Slice{}, {x, c.ints_constant({which}), c.ints_constant({size}), c.ints_constant({2}),
                           c.ints_constant({3})});
  };
  const auto a = part(0), b = part(1);
  const auto real = subtract(c, multiply(c, a, cosines), multiply(c, b, sines)),
             imaginary = add(c, multiply(c, a, sines), multiply(c, b, cosines));
  if (!neighbours) return c.concat({real, imaginary}, 3);
  const auto joined = c.concat({c.unsqueeze(real, {4}), c.unsqueeze(imaginary, {4})}, 4);
  return c.add(Reshape{true}, {joined, c.ints_constant({0, 0, 0, size})});
}

/// [B, S, heads * size] or [B, heads, S, size].
Values convert_rotary_embedding(Call& c) {
  auto x = c.in(0);
  const auto rank = c.known_rank(x);
  if (rank != 3 && rank != 4) c.fail("the input has rank {}, wanted 3 or 4", rank);
  const auto last = c.type(x).shape[rank - 1];
  if (!last.known()) c.unsupported("an unknown hidden size");
  auto size = last.size();
  if (rank == 3) {
    const auto heads = c.i("num_heads", 0);
    if (heads <= 0 || size % heads != 0) c.fail("num_heads is {} for {} channels", heads, size);
    size /= heads;
    x = c.add(Reshape{true}, {x, c.ints_constant({0, 0, heads, size})});
  }
  const auto turned = c.i("rotary_embedding_dim", 0) == 0 ? size : c.i("rotary_embedding_dim", 0);
  if (turned < 2 || turned > size || turned % 2 != 0)
    c.fail("rotary_embedding_dim is {}, wanted an even number up to {}", turned, size);
  const auto type = c.known_element(x);
  const std::int64_t heads_axis = rank == 3 ? 2 : 1;
  const auto cosines = rotations(c, c.in(1), heads_axis, type),
             sines = rotations(c, c.in(2), heads_axis, type);
  for (auto v : {cosines, sines})
    if (!c.type(v).shape.ranked() || !c.type(v).shape[3].fits(Dim(turned / 2)))
      c.fail("a cache has {} values for a position, wanted {}", to_string(c.type(v).shape[3]), turned / 2);
  const auto batch = c.type(x).shape[0], length = c.type(x).shape[rank == 3 ? 1 : 2];
  auto y = rotated(c, turned == size ? x : c.slice(x, 3, 0, turned), cosines, sines, turned);
  const auto& made = c.type(y).shape;
  if (made.ranked() && (!made[0].fits(batch) || !made[rank == 3 ? 1 : 2].fits(length)))
    c.fail("the caches are for {}, wanted a batch of {} and {} positions", to_string(made), to_string(batch),
           to_string(length));
  if (turned != size) y = c.concat({y, c.slice(x, 3, turned, size)}, 3);
  if (rank == 3) y = c.add(Reshape{true}, {y, c.ints_constant({0, 0, last.size()})});
  return {y};
}

}  // namespace

void register_rotary_embedding(ConverterTable& t) { t.add("RotaryEmbedding", convert_rotary_embedding); }

}  // namespace lamina::onnx
