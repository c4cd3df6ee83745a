/// Attention and gated activations.
#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// Swish(a) * b
Values convert_swiglu(Call& c) {
  const auto gate = c.add(Swish{}, {c.in(0), c.number_like(c.f("alpha", 1), c.in(0))});
  return {multiply(c, gate, c.in(1))};
}

/// [N, L, heads * size] as [N, heads, L, size].
ValueId split_heads(Call& c, ValueId v, std::int64_t heads) {
  if (heads <= 0) c.fail("the number of heads is {}, wanted 1 or more", heads);
  const auto& width = c.type(v).shape[2];
  if (!width.known()) c.unsupported("an unknown hidden size");
  if (width.size() % heads != 0) c.fail("{} channels for {} heads", width.size(), heads);
  const auto split = c.add(Reshape{true}, {v, c.ints_constant({0, 0, heads, width.size() / heads})});
  return c.transpose(split, {0, 2, 1, 3});
}

std::int64_t known_dim(const Call& c, ValueId v, std::size_t axis) {
  const auto& shape = c.type(v).shape;
  if (!shape.ranked() || shape.rank() != 4) c.fail("an operand is {}, wanted rank 4", to_string(shape));
  if (!shape[axis].known()) c.unsupported("an unknown number of heads or head size");
  return shape[axis].size();
}

/// Heads of keys or values repeated so that each head of the queries has its own.
ValueId repeat_heads(Call& c, ValueId v, std::int64_t heads, std::int64_t times) {
  if (times == 1) return v;
  const auto tiled = c.add(Tile{}, {c.unsqueeze(v, {2}), c.ints_constant({1, 1, times, 1, 1})});
  return c.add(Reshape{true}, {tiled, c.ints_constant({0, heads * times, -1, known_dim(c, v, 3)})});
}

/// Scores where the mask is false become minus infinity; a mask of numbers is added.
ValueId masked(Call& c, ValueId scores, ValueId mask) {
  const auto &m = c.type(mask).shape, &s = c.type(scores).shape;
  if (!m.ranked() || m.rank() == 0) c.unsupported("a mask of unknown rank");
  if (!m[m.rank() - 1].same(s[3]) && !m[m.rank() - 1].is(1))
    c.unsupported("a mask that may be shorter than the keys");
  if (c.known_element(mask) != ElementType::boolean)
    return add(c, scores, c.convert(mask, c.known_element(scores)));
  return c.add(Select{}, {mask, scores, c.number_like(-std::numeric_limits<double>::infinity(), scores)});
}

/// Query i sees the keys up to i, and all those from before.
ValueId causal(Call& c, ValueId scores, ValueId past) {
  const auto range = [&](ValueId size) {
    return c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)});
  };
  auto rows = c.unsqueeze(range(size_of(c, scores, 2)), {1});
  if (past.valid()) rows = add(c, rows, size_of(c, past, 2));
  const auto seen = c.add(LessEqual{}, {range(size_of(c, scores, 3)), rows});
  return c.add(Select{}, {seen, scores, c.number_like(-std::numeric_limits<double>::infinity(), scores)});
}

/// A row that sees nothing gives zeros.
ValueId probabilities(Call& c, ValueId scores) {
  ReduceMax highest;
  highest.keep_dims = true;
  const auto most = c.add(highest, {scores, c.ints_constant({-1})});
  const auto nothing =
      c.add(Equal{}, {most, c.number_like(-std::numeric_limits<double>::infinity(), scores)});
  return c.add(Select{}, {nothing, c.number_like(0, scores), c.add(Softmax{-1}, {scores})});
}

void check_attention(const Call& c) {
  if (c.has(6)) c.unsupported("nonpad_kv_seqlen is not supported");
  if (c.i("left_window_size", -1) != -1 || c.i("right_window_size", -1) != -1)
    c.unsupported("windows are not supported");
  if (c.wants(3)) c.unsupported("the scores as an output");
  if (c.has(4) != c.has(5)) c.fail("has only one of past_key and past_value");
  const auto rank = c.known_rank(c.in(0));
  if (rank != 3 && rank != 4) c.fail("the query has rank {}, wanted 3 or 4", rank);
  for (std::size_t i = 1; i < 3; ++i)
    if (c.known_rank(c.in(i)) != rank)
      c.fail("input {} has rank {}, the query {}", i, c.known_rank(c.in(i)), rank);
}

Values convert_attention(Call& c) {
  check_attention(c);
  auto q = c.in(0), k = c.in(1), v = c.in(2);
  const bool joined = c.known_rank(q) == 3;
  if (joined) {
    q = split_heads(c, q, c.i("q_num_heads", 0));
    k = split_heads(c, k, c.i("kv_num_heads", 0));
    v = split_heads(c, v, c.i("kv_num_heads", 0));
  }
  if (c.has(4)) {
    k = c.concat({c.in(4), k}, 2);
    v = c.concat({c.in(5), v}, 2);
  }
  Values out{ValueId{}, k, v};
  const auto heads = known_dim(c, q, 1), groups = known_dim(c, k, 1);
  if (groups == 0 || heads % groups != 0) c.fail("{} heads of queries for {} of keys", heads, groups);
  k = repeat_heads(c, k, groups, heads / groups);
  v = repeat_heads(c, v, groups, heads / groups);

  const double scale = c.f("scale", 1 / std::sqrt(static_cast<double>(known_dim(c, q, 3)))),
               softcap = c.f("softcap", 0);
  const bool is_causal = c.flag("is_causal");
  if (!c.has(3) && softcap == 0 && !(is_causal && c.has(4))) {
    out[0] = c.add(ScaledDotProductAttention{is_causal}, {q, k, v, ValueId{}, c.number_like(scale, q)});
  } else {
    auto scores = c.add(MatMul{false, true}, {multiply(c, q, c.number_like(scale, q)), k});
    if (softcap != 0) {
      const auto cap = c.number_like(softcap, scores);
      scores = multiply(c, c.add(Tanh{}, {divide(c, scores, cap)}), cap);
    }
    if (c.has(3)) scores = masked(c, scores, c.in(3));
    if (is_causal) scores = causal(c, scores, c.maybe(4));
    out[0] = c.add(MatMul{}, {probabilities(c, scores), v});
  }
  if (joined) out[0] = c.add(Reshape{true}, {c.transpose(out[0], {0, 2, 1, 3}), c.ints_constant({0, 0, -1})});
  return out;
}

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

void register_attention(ConverterTable& t) {
  t.add("Attention", convert_attention);
  t.add("RotaryEmbedding", convert_rotary_embedding);
  t.add("SwiGLU", convert_swiglu);
}

}  // namespace lamina::onnx
