/// com.microsoft: what decoders of text generate with: RotaryEmbedding, GroupQueryAttention.
#include <cmath>
#include <limits>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/attention.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();

/// Angles' cosines and sines for x [N, *, *, size]; the first 2 * half of a head turn.
struct Rotation {
  ValueId cos, sin;
  std::int64_t half = 0;
  bool interleaved = false;
};

/// Caches [longest, half] at positions [N, L], for an x whose axis `heads` is that of the heads.
Rotation read_rotation(Call& c, std::size_t caches, ValueId positions, std::int64_t heads) {
  for (const auto i : {caches, caches + 1}) check_rank(c, c.in(i), "a cache of angles", 2);
  const auto width = c.type(c.in(caches)).shape[1];
  if (!width.known() || !c.type(c.in(caches + 1)).shape[1].same(width))
    c.unsupported("caches of angles of different or unknown widths");
  if (width.size() == 0) c.fail("a cache of angles is empty");
  const auto at = [&](std::size_t i) {
    const auto rows = c.add(Gather{0, OutOfRange::error}, {c.in(i), positions, c.int_constant(0)});
    return c.unsqueeze(rows, {heads});
  };
  return {at(caches), at(caches + 1), width.size(), false};
}

ValueId rotated(Call& c, ValueId x, const Rotation& r) {
  const auto size = c.type(x).shape[3];
  if (size.known() && size.size() < 2 * r.half) c.fail("{} angles for heads of {}", r.half, size.size());
  ValueId a, b;
  if (r.interleaved) {
    const auto turning = c.slice(x, 3, 0, 2 * r.half);
    const auto pairs = c.add(Reshape{true}, {turning, c.ints_constant({0, 0, 0, r.half, 2})});
    a = c.pick(pairs, 4, 0), b = c.pick(pairs, 4, 1);
  } else {
    a = c.slice(x, 3, 0, r.half), b = c.slice(x, 3, r.half, 2 * r.half);
  }
  const auto real = subtract(c, multiply(c, a, r.cos), multiply(c, b, r.sin)),
             imaginary = add(c, multiply(c, b, r.cos), multiply(c, a, r.sin));
  Values parts{real, imaginary};
  if (r.interleaved) {
    const auto pairs = c.concat({c.unsqueeze(real, {4}), c.unsqueeze(imaginary, {4})}, 4);
    parts = {c.add(Reshape{true}, {pairs, c.ints_constant({0, 0, 0, 2 * r.half})})};
  }
  if (!size.is(2 * r.half)) parts.push_back(c.slice(x, 3, 2 * r.half, kEnd));
  return c.concat(std::move(parts), 3);
}

/// [N, L], or [1]: the first one's.
ValueId positions_of(Call& c, ValueId given, ValueId length) {
  check_rank(c, given, "position_ids", 1, 2);
  if (c.known_rank(given) == 2) return given;
  return c.unsqueeze(add(c, counted(c, length), c.convert(given, ElementType::i64)), {0});
}

/// Input, positions, cosines, sines.
Values convert_microsoft_rotary_embedding(Call& c) {
  if (c.flag("is_packed_batching")) c.unsupported("is_packed_batching is not supported");
  if (const auto scale = c.f("scale", 1); scale != 1) c.unsupported("a scale of {} is not supported", scale);
  const auto x = c.in(0);
  check_rank(c, x, "the input", 3, 4);
  const bool joined = c.known_rank(x) == 3;
  const auto rotary = c.i("rotary_embedding_dim", 0);
  auto r = read_rotation(c, 2, positions_of(c, c.in(1), size_of(c, x, joined ? 1 : 2)), joined ? 2 : 1);
  r.interleaved = read_flag(c, "interleaved");
  if (rotary != 0 && rotary != 2 * r.half)
    c.fail("rotary_embedding_dim is {}, the caches have {} angles", rotary, r.half);
  if (!joined) return {rotated(c, x, r)};
  const auto heads = rotary != 0 ? apart(c, x, read_heads(c, "num_heads"))
                                 : c.add(Reshape{true}, {x, c.ints_constant({0, 0, -1, 2 * r.half})});
  return {c.add(Reshape{true}, {rotated(c, heads, r), c.ints_constant({0, 0, -1})})};
}

/// One GroupQueryAttention on its way.
struct Grouped {
  std::int64_t heads = 0, groups = 0, size = 0;
  ValueId q, k, v;         // [N, L, heads, size], then [N, heads, L, size]
  ValueId length;          // L
  ValueId totals, before;  // [N]: keys of each sequence in all, and before this call
  ValueId columns;         // how many keys there are for the longest
  bool has_past = false;
};

void refuse_unsupported(Call& c) {
  for (const auto* name : {"k_quant_type", "v_quant_type"})
    if (c.s(name, "NONE") != "NONE") c.unsupported("{} = \"{}\" is not supported", name, c.s(name, ""));
  for (const auto* name : {"sliding_window_cache", "qk_output"})
    if (c.i(name, 0) != 0) c.unsupported("{} is not supported", name);
  if (c.has(12) || c.has(13)) c.unsupported("scales of keys and values are not supported");
  if (c.has(14) || c.has(15)) c.unsupported("norms of queries and keys are not supported");
  if (c.wants(3)) c.unsupported("the scores as an output");
  if (c.has(3) != c.has(4)) c.fail("has only one of past_key and past_value");
  if (c.has(1) != c.has(2)) c.fail("has only one of key and value");
}

void read_operands(Call& c, Grouped& g) {
  g.heads = read_heads(c, "num_heads");
  g.groups = read_heads(c, "kv_num_heads");
  if (g.heads % g.groups != 0) c.fail("{} heads of queries for {} of keys", g.heads, g.groups);
  check_rank(c, c.in(0), "the query", 3);
  const auto width = c.type(c.in(0)).shape[2];
  if (!width.known()) c.unsupported("an unknown hidden size");
  const auto parts = c.has(1) ? g.heads : g.heads + 2 * g.groups;
  if (width.size() % parts != 0 || width.size() == 0)
    c.fail("the query has {} channels for {} heads", width.size(), parts);
  g.size = width.size() / parts;
  if (c.has(1)) {
    for (const auto i : {std::size_t{1}, std::size_t{2}}) {
      check_rank(c, c.in(i), i == 1 ? "the key" : "the value", 3);
      if (!c.type(c.in(i)).shape[2].fits(g.groups * g.size))
        c.fail("{} has {} channels, wanted {}", i == 1 ? "the key" : "the value",
               to_string(c.type(c.in(i)).shape[2]), g.groups * g.size);
    }
    g.q = c.in(0), g.k = c.in(1), g.v = c.in(2);
  } else {
    const auto q = g.heads * g.size, k = g.groups * g.size;
    g.q = c.slice(c.in(0), 2, 0, q);
    g.k = c.slice(c.in(0), 2, q, q + k);
    g.v = c.slice(c.in(0), 2, q + k, q + 2 * k);
  }
  g.q = apart(c, g.q, g.heads), g.k = apart(c, g.k, g.groups), g.v = apart(c, g.v, g.groups);
  g.length = size_of(c, g.q, 1);
}

/// Without a past nothing is before, whatever the lengths say: these are then of padded prompts.
void read_lengths(Call& c, Grouped& g) {
  g.has_past = c.has(3);
  for (std::size_t i = 3; i < 5 && g.has_past; ++i) check_rank(c, c.in(i), "the past", 4);
  if (g.has_past && c.type(c.in(3)).shape[2].is(0)) g.has_past = false;
  const auto last = c.reshape(c.convert(c.in(5), ElementType::i64), Ints{-1});
  g.totals = add(c, last, c.int_constant(1));
  g.columns = g.length;
  if (!g.has_past) return;
  g.before = c.add(Maximum{}, {subtract(c, g.totals, g.length), c.int_constant(0)});
  g.columns = c.to_scalar(c.convert(c.in(6), ElementType::i64));
}

void rotate(Call& c, Grouped& g) {
  if (!read_flag(c, "do_rotary")) return;
  ValueId positions;
  if (c.has(9))
    positions = positions_of(c, c.in(9), g.length);
  else if (g.has_past)
    positions = add(c, c.unsqueeze(g.before, {1}), counted(c, g.length));
  else
    positions = c.unsqueeze(counted(c, g.length), {0});
  auto r = read_rotation(c, 7, positions, 2);
  r.interleaved = read_flag(c, "rotary_interleaved");
  g.q = rotated(c, g.q, r), g.k = rotated(c, g.k, r);
}

/// The new ones stand right after those that a sequence has had, in a buffer that grows when it must. What is
/// after them is zeros.
ValueId present(Call& c, const Grouped& g, ValueId past, ValueId now) {
  const auto room = size_of(c, past, 2);
  const auto at = counted(c, c.add(Maximum{}, {g.columns, room}));
  const auto before = c.unsqueeze(g.before, {1});
  const auto indices =
      c.add(Select{}, {c.add(Less{}, {at, before}), at, add(c, subtract(c, at, before), room)});
  return c.add(Gather{1, OutOfRange::zeros}, {c.concat({past, now}, 2), indices, c.int_constant(2)});
}

/// What is added to the scores [N, groups, heads of a group, L, columns]; absent where nothing is hidden.
ValueId grouped_mask(Call& c, const Grouped& g, ValueId rows, std::int64_t window) {
  const auto at = counted(c, g.columns);
  ValueId seen;
  if (!read_flag(c, "causal", true)) {
    seen = c.add(Less{}, {at, c.unsqueeze(g.totals, {1, 2, 3, 4})});
  } else {
    seen = c.add(LessEqual{}, {at, rows});
    if (window > 0)
      seen = c.add(LogicalAnd{}, {seen, c.add(Greater{}, {at, subtract(c, rows, c.int_constant(window))})});
  }
  return hidden_unless(c, seen, c.number_like(0, g.q));
}

ValueId grouped_bias(Call& c, const Grouped& g) {
  check_rank(c, c.in(10), "the bias of the scores", 4);
  const auto heads = c.type(c.in(10)).shape[1];
  if (heads.is(1)) return c.unsqueeze(c.in(10), {2});
  if (!heads.is(g.heads)) c.fail("a bias for {} heads, wanted 1 or {}", to_string(heads), g.heads);
  const auto sizes = c.shape_of(c.in(10));
  return c.reshape(c.in(10),
                   c.concat({c.slice(sizes, 0, 0, 1), c.ints_constant({g.groups, g.heads / g.groups}),
                             c.slice(sizes, 0, 2, 4)},
                            0));
}

/// softmax with one more score for each row, of which nothing is taken.
ValueId softmax_with_sink(Call& c, const Grouped& g, ValueId scores) {
  const auto one = c.ints_constant({1});
  const auto sink =
      c.has(11) ? c.reshape(c.in(11), Ints{1, g.groups, g.heads / g.groups, 1, 1}) : c.number_like(0, scores);
  const auto column = c.filled(sink, c.concat({c.slice(c.shape_of(scores), 0, 0, 4), one}, 0));
  const auto weights = c.add(Softmax{-1}, {c.concat({column, scores}, 4)});
  return c.slice(weights, 4, 1, kEnd);
}

/// q [N, groups, heads of a group, L, size], k and v [N, groups, 1, T, size].
ValueId attend_grouped(Call& c, const Grouped& g, ValueId q, ValueId k, ValueId v) {
  const auto window = c.i("local_window_size", -1);
  const bool causal = read_flag(c, "causal", true), has_sink = c.has(11) || c.i("smooth_softmax", -1) > 0;
  if (window == 0 || window < -1) c.fail("local_window_size is {}, wanted -1, or 1 or more", window);
  if (!causal && window > 0) c.fail("local_window_size is {} without causal", window);
  const auto given = c.f("scale", 0);
  const auto scale = c.number_like(given != 0 ? given : 1 / std::sqrt(static_cast<double>(g.size)), q);
  const auto softcap = c.f("softcap", 0);
  if (softcap < 0) c.fail("softcap is {}, wanted 0 or more", softcap);
  if (causal && !g.has_past && window <= 0 && !c.has(10) && softcap == 0 && !has_sink)
    return c.add(ScaledDotProductAttention{true}, {q, k, v, ValueId{}, scale});

  auto rows = counted(c, g.length);
  if (g.has_past) rows = add(c, c.unsqueeze(g.before, {1}), rows);
  rows = c.unsqueeze(rows, g.has_past ? Ints{1, 2, 4} : Ints{1});
  auto mask = grouped_mask(c, g, rows, window);
  if (c.has(10)) mask = add(c, mask, grouped_bias(c, g));
  if (softcap == 0 && !has_sink) return c.add(ScaledDotProductAttention{}, {q, k, v, mask, scale});

  auto scores = multiply(c, c.add(MatMul{false, true}, {q, k}), scale);
  scores = add(c, soft_capped(c, scores, softcap), mask);
  return c.add(MatMul{}, {has_sink ? softmax_with_sink(c, g, scores) : c.add(Softmax{-1}, {scores}), v});
}

/// Query, key, value, past_key, past_value, last key of each sequence, number of keys of the longest,
/// cosines, sines, positions, bias of the scores, sinks.
Values convert_group_query_attention(Call& c) {
  refuse_unsupported(c);
  Grouped g;
  read_operands(c, g);
  read_lengths(c, g);
  rotate(c, g);
  const Ints order{0, 2, 1, 3};
  auto k = c.transpose(g.k, order), v = c.transpose(g.v, order);
  if (g.has_past) k = present(c, g, c.in(3), k), v = present(c, g, c.in(4), v);
  Values out{ValueId{}, k, v};
  const auto grouped = [&](ValueId x) {
    if (g.has_past)
      x = c.add(Slice{}, {x, c.ints_constant({0}), c.to_vector(g.columns), c.ints_constant({1}),
                          c.ints_constant({2})});
    return c.unsqueeze(x, {2});
  };
  const auto q = c.add(Reshape{true}, {c.transpose(g.q, order),
                                       c.ints_constant({0, g.groups, g.heads / g.groups, -1, g.size})});
  const auto y = attend_grouped(c, g, q, grouped(k), grouped(v));
  out[0] = join_heads(c, c.add(Reshape{true}, {y, c.ints_constant({0, g.heads, -1, g.size})}));
  return out;
}

}  // namespace

void register_microsoft_generation(ConverterTable& t) {
  t.add(kMicrosoft, "GroupQueryAttention", convert_group_query_attention);
  t.add(kMicrosoft, "RotaryEmbedding", convert_microsoft_rotary_embedding);
}

}  // namespace lamina::onnx
