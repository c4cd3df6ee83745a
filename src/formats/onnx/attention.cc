/// Attention of ONNX's own operator sets, from 23 on.
#include "ops/attention.h"

#include <algorithm>
#include <limits>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/heads.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

constexpr auto kHidden = -std::numeric_limits<double>::infinity();  ///< added where a key takes no part

/// The intermediate result that the fourth output is.
enum class Scores : std::uint8_t { products, capped, masked, weights };

/// One Attention on its way.
struct AttentionInputs : QueryKeyValue {
  ValueId offset;   ///< of the first query among the keys, scalar or [N, 1, 1, 1]; absent: 0
  ValueId lengths;  ///< keys that take part, [N, 1, 1, 1]; absent: all
  bool causal = false, joined = false;
  std::int64_t left = -1, right = -1;  ///< keys that a query sees on each side of it; -1: all
};

std::int64_t read_window_size(const Call& c, std::string_view name) {
  const auto size = c.i(name, -1);
  if (size < -1) c.fail("{} is {}, wanted -1 or more", name, size);
  return std::min(size, std::int64_t{1} << 40);
}

void check_inputs(const Call& c) {
  if (c.has(4) != c.has(5)) c.fail("has only one of past_key and past_value");
  if (c.has(6) && c.has(4)) c.fail("has both nonpad_kv_seqlen and past_key");
  check_rank(c, c.in(0), "the query", 3, 4);
  const auto rank = c.known_rank(c.in(0));
  for (std::size_t i = 1; i < 3; ++i)
    if (c.known_rank(c.in(i)) != rank)
      c.fail("input {} has rank {}, the query {}", i, c.known_rank(c.in(i)), rank);
  for (std::size_t i = 4; i < 6 && c.has(i); ++i) check_rank(c, c.in(i), "the past", 4);
}

/// Each sequence's number of keys as i64 [N, 1, 1, 1].
ValueId read_lengths(Call& c) {
  check_rank(c, c.in(6), "nonpad_kv_seqlen", 1);
  const auto batch = c.type(c.in(0)).shape[0], given = c.type(c.in(6)).shape[0];
  if (!given.fits(batch))
    c.fail("nonpad_kv_seqlen has {} elements for a batch of {}", to_string(given), to_string(batch));
  return c.unsqueeze(c.convert(c.in(6), ElementType::i64), {1, 2, 3});
}

AttentionInputs read_operands(Call& c) {
  check_inputs(c);
  AttentionInputs a;
  a.q = c.in(0), a.k = c.in(1), a.v = c.in(2);
  a.joined = c.known_rank(a.q) == 3;
  if (a.joined) {
    const auto heads = read_heads(c, "q_num_heads"), groups = read_heads(c, "kv_num_heads");
    a.q = split_heads(c, a.q, heads);
    a.k = split_heads(c, a.k, groups);
    a.v = split_heads(c, a.v, groups);
  }
  if (c.has(4)) {
    a.offset = size_of(c, c.in(4), 2);
    a.k = c.concat({c.in(4), a.k}, 2);
    a.v = c.concat({c.in(5), a.v}, 2);
  }
  if (c.has(6)) {
    a.lengths = read_lengths(c);
    a.offset = subtract(c, a.lengths, size_of(c, a.q, 2));
  }
  a.causal = c.flag("is_causal");
  a.left = read_window_size(c, "left_window_size");
  a.right = a.causal ? -1 : read_window_size(c, "right_window_size");
  return a;
}

/// Booleans that broadcast to [N, heads, L, S]: which keys a query sees by their positions. Absent: all.
ValueId seen_by_position(Call& c, const AttentionInputs& a) {
  ValueId seen;
  const auto narrow = [&](ValueId more) { seen = seen.valid() ? c.add(LogicalAnd{}, {seen, more}) : more; };
  const auto keys = counted(c, size_of(c, a.k, 2));
  if (a.lengths.valid()) narrow(c.add(Less{}, {keys, a.lengths}));
  if (!a.causal && a.left < 0 && a.right < 0) return seen;
  auto queries = c.unsqueeze(counted(c, size_of(c, a.q, 2)), {1});
  if (a.offset.valid()) queries = add(c, queries, a.offset);
  if (a.causal) narrow(c.add(LessEqual{}, {keys, queries}));
  if (a.right >= 0) narrow(c.add(LessEqual{}, {keys, add(c, queries, c.int_constant(a.right))}));
  if (a.left >= 0) narrow(c.add(GreaterEqual{}, {keys, subtract(c, queries, c.int_constant(a.left))}));
  return seen;
}

/// A mask for fewer keys than there are hides the others.
ValueId padded_mask(Call& c, ValueId mask, const AttentionInputs& a) {
  const auto rank = static_cast<std::int64_t>(c.known_rank(mask));
  if (rank == 0) return mask;
  const auto columns = c.type(mask).shape[static_cast<std::size_t>(rank - 1)], keys = c.type(a.k).shape[2];
  // Opset 23 knows masks that broadcast only.
  if (columns.same(keys) || (c.version() < 24 && (columns.is(1) || !columns.known() || !keys.known())))
    return mask;
  if (columns.known() && keys.known() && columns.size() > keys.size())
    c.fail("the mask has {} columns, there are {} keys", columns.size(), keys.size());
  const auto missing = subtract(c, sizes_of(c, a.k, 2, 3), sizes_of(c, mask, rank - 1, rank));
  const bool boolean = c.element(mask) == ElementType::boolean;
  const auto hidden = c.filled(c.number_like(boolean ? 0 : kHidden, mask),
                               c.concat({sizes_of(c, mask, 0, rank - 1), missing}, 0));
  return c.concat({mask, hidden}, rank - 1);
}

/// What the mask and the positions say together, booleans or numbers to add; absent: each query sees all
/// keys.
ValueId read_mask(Call& c, const AttentionInputs& a, ValueId seen) {
  if (!c.has(3)) return seen;
  auto mask = c.in(3);
  if (c.known_rank(mask) > 4) c.fail("the mask has rank {}, wanted 4 at most", c.known_rank(mask));
  const bool boolean = c.known_element(mask) == ElementType::boolean;
  if (!boolean) mask = c.convert(mask, c.known_element(a.q));
  mask = padded_mask(c, mask, a);
  if (!seen.valid()) return mask;
  if (boolean) return c.add(LogicalAnd{}, {mask, seen});
  return c.add(Select{}, {seen, mask, c.number_like(kHidden, mask)});
}

/// Whether a query sees any key, [..., L, 1].
ValueId sees_any(Call& c, ValueId mask) {
  if (c.known_rank(mask) == 0) mask = c.reshape(mask, Ints{1});
  const auto last = c.ints_constant({-1});
  if (c.element(mask) == ElementType::boolean) {
    ReduceLogicalOr any;
    any.keep_dims = true;
    return c.add(any, {mask, last});
  }
  ReduceMax most;
  most.keep_dims = true;
  return c.add(NotEqual{}, {c.add(most, {mask, last}), c.number_like(kHidden, mask)});
}

/// `of` with zeros for queries whose mask hides all keys. Of a constant mask it is known that none does.
ValueId without_empty_rows(Call& c, ValueId of, ValueId mask) {
  const auto seen = folded(c, sees_any(c, mask));
  if (const auto* all = c.graph().constant(seen)) {
    const auto rows = to_ints(*all);
    if (std::find(rows.begin(), rows.end(), 0) == rows.end()) return of;
  }
  return c.add(Select{}, {seen, of, c.number_like(0, of)});
}

ElementType softmax_type(const Call& c, ElementType type) {
  const auto wanted = c.element_attribute("softmax_precision", type);
  if (!is_float(wanted)) c.fail("softmax_precision is {}, wanted floats", name_of(wanted));
  return wanted;
}

/// ScaledDotProductAttention computes halves in f32, so that it may stand for an attention whose softmax
/// does.
bool is_one_operator(const Call& c, ElementType type) {
  const auto precision = softmax_type(c, type);
  const bool half = type == ElementType::f16 || type == ElementType::bf16;
  return !c.wants(3) && c.f("softcap", 0) == 0 &&
         (precision == type || (half && precision == ElementType::f32));
}

Scores read_output_mode(const Call& c) {
  const auto mode = c.i("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) c.fail("qk_matmul_output_mode is {}, wanted 0 to 3", mode);
  return static_cast<Scores>(mode);
}

/// What takes part, by groups of heads. `may_be_empty`: there may be queries that see no key.
struct GroupedInputs : QueryKeyValue {
  ValueId mask, scale;
  bool may_be_empty = false;
};

/// Step by step; `shown` becomes the result that the fourth output asks for.
ValueId attend_in_steps(Call& c, const GroupedInputs& g, ValueId& shown) {
  const auto mode = read_output_mode(c);
  auto scores = c.add(MatMul{false, true}, {multiply(c, g.q, g.scale), g.k});
  if (mode == Scores::products) shown = scores;
  scores = soft_capped(c, scores, c.f("softcap", 0));
  if (mode == Scores::capped) shown = scores;
  if (g.mask.valid())
    scores = c.element(g.mask) == ElementType::boolean
                 ? c.add(Select{}, {g.mask, scores, c.number_like(kHidden, scores)})
                 : add(c, scores, g.mask);
  if (mode == Scores::masked) shown = scores;
  const auto type = c.known_element(g.q);
  auto weights = c.convert(c.add(Softmax{-1}, {c.convert(scores, softmax_type(c, type))}), type);
  if (g.may_be_empty) weights = without_empty_rows(c, weights, g.mask);
  if (mode == Scores::weights) shown = weights;
  return c.add(MatMul{}, {weights, g.v});
}

/// Query, keys, values, mask, past keys and values, numbers of keys.
Values convert_attention(Call& c) {
  const auto a = read_operands(c);
  Values out{ValueId{}, a.k, a.v, ValueId{}};
  const auto type = c.known_element(a.q);
  const HeadGroups groups(c, {a.q, a.k, c.convert(a.v, type)});
  const bool direct = is_one_operator(c, type);
  const bool by_flag = direct && a.causal && a.left < 0 && !a.offset.valid() && !c.has(3);
  GroupedInputs g{groups.grouped(), {}, scale_of_scores(c, a.q), false};
  if (!by_flag) g.mask = read_mask(c, a, seen_by_position(c, a));
  if (g.mask.valid()) g.mask = groups.grouped_mask(g.mask);
  // By its place alone a query sees the first key at least, unless a window or a length cuts it off.
  g.may_be_empty = g.mask.valid() && (c.has(3) || a.lengths.valid() || a.left >= 0);
  if (direct) {
    out[0] = c.add(ScaledDotProductAttention{by_flag}, {g.q, g.k, g.v, g.mask, g.scale});
    if (g.may_be_empty) out[0] = without_empty_rows(c, out[0], g.mask);
  } else {
    out[0] = attend_in_steps(c, g, out[3]);
  }
  out[0] = groups.ungrouped(out[0], a.v, 3);
  if (c.wants(3)) out[3] = groups.ungrouped(out[3], a.k, 2);
  if (a.joined) out[0] = join_heads(c, out[0]);
  return out;
}

}  // namespace

void register_attention(ConverterTable& t) {
  t.add("Attention", convert_attention);
  register_rotary_embedding(t);
  register_flex_attention(t);
  register_linear_attention(t);
  register_decoder_state(t);
}

}  // namespace lamina::onnx
