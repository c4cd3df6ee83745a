/// Masks of com.microsoft's attentions, as numbers that are added to the scores.
#include <algorithm>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/attention.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// The least finite number.
double least_of(ElementType type) {
  if (type == ElementType::f16) return -65504;
  return type == ElementType::bf16 ? -3.3895313892515355e38 : -3.4028234663852886e38;
}

/// 0 where `seen` holds, else the filter's value.
ValueId filtered(Call& c, ValueId seen, const Attended& a) {
  const auto type = c.known_element(a.q);
  return c.add(Select{}, {seen, c.number(0, type), c.number(std::max(a.filter, least_of(type)), type)});
}

/// [N] as i64 [N, 1, 1, 1].
ValueId by_batch(Call& c, ValueId v) { return c.unsqueeze(c.convert(v, ElementType::i64), {1, 2, 3}); }

/// [N] lengths; [2N] ends and starts, or [3N + 2] lengths and what only other processors read.
ValueId length_mask(Call& c, const Attended& a) {
  const auto count = c.type(a.key_mask).shape[0], batch = c.type(a.q).shape[0];
  const auto columns = counted(c, size_of(c, a.k, 2));
  auto ends = a.key_mask;
  ValueId starts;
  if (!count.same(batch) && count.known()) {
    if (!batch.known()) c.unsupported("a mask of {} elements for an unknown batch", count.size());
    const auto n = batch.size();
    if (a.starts_too && count.is(2 * n))
      starts = c.slice(a.key_mask, 0, n, 2 * n);
    else if (!count.is(3 * n + 2))
      c.fail("the mask has {} elements for a batch of {}", count.size(), n);
    ends = c.slice(a.key_mask, 0, 0, n);
  }
  auto seen = c.add(Less{}, {columns, by_batch(c, ends)});
  if (starts.valid())
    seen = c.add(LogicalAnd{}, {seen, c.add(GreaterEqual{}, {columns, by_batch(c, starts)})});
  return filtered(c, seen, a);
}

/// [N, T] or [N, L, T], more than 0 where a key takes part.
ValueId raw_mask(Call& c, const Attended& a) {
  const auto shape = c.type(a.key_mask).shape;
  const auto last = shape[shape.rank() - 1], keys = c.type(a.k).shape[2];
  if (!last.fits(keys))
    c.fail("the mask has {} columns, there are {} keys", to_string(last), to_string(keys));
  const auto seen = c.add(Greater{}, {a.key_mask, c.number_like(0, a.key_mask)});
  return filtered(c, c.unsqueeze(seen, shape.rank() == 2 ? Ints{1, 2} : Ints{1}), a);
}

ValueId key_mask(Call& c, const Attended& a) {
  const auto type = c.known_element(a.key_mask);
  if (type != ElementType::i32 && type != ElementType::i64)
    c.fail("the mask is {}, wanted i32", name_of(type));
  const auto rank = c.known_rank(a.key_mask);
  if (rank == 1) return length_mask(c, a);
  if (rank != 2 && rank != 3) c.unsupported("a mask of rank {}, wanted 1, 2 or 3", rank);
  return raw_mask(c, a);
}

/// Query i sees the keys up to i, and all those from before.
ValueId seen_before(Call& c, const Attended& a) {
  auto rows = c.unsqueeze(counted(c, size_of(c, a.q, 2)), {1});
  if (a.past.valid()) rows = add(c, rows, size_of(c, a.past, 2));
  return c.add(LessEqual{}, {counted(c, size_of(c, a.k, 2)), rows});
}

/// Attention in steps, for nodes whose scores are a result.
ValueId attend_in_steps(Call& c, const Attended& a, ValueId mask, ValueId& scores) {
  const auto scale = a.scale ? c.number_like(*a.scale, a.q) : scale_by_size(c, a.q);
  scores = c.add(MatMul{false, true}, {multiply(c, a.q, scale), a.k});
  if (mask.valid()) scores = add(c, scores, mask);
  return join_heads(c, c.add(MatMul{}, {c.add(Softmax{-1}, {scores}), a.v}));
}

}  // namespace

ValueId hidden_unless(Call& c, ValueId seen, ValueId v) {
  return c.add(Select{}, {seen, v, c.number_like(least_of(c.known_element(v)), v)});
}

ValueId attend(Call& c, const Attended& a, ValueId* scores) {
  ValueId mask;
  if (a.key_mask.valid()) mask = key_mask(c, a);
  const bool by_flag = !scores && a.causal && !mask.valid() && !a.bias.valid() && !a.past.valid();
  if (a.causal && !by_flag)
    mask = hidden_unless(c, seen_before(c, a), mask.valid() ? mask : c.number_like(0, a.q));
  if (a.bias.valid()) {
    check_rank(c, a.bias, "the bias of the scores", 4);
    mask = mask.valid() ? add(c, mask, a.bias) : a.bias;
  }
  if (scores) return attend_in_steps(c, a, mask, *scores);
  Values inputs{a.q, a.k, a.v, mask};
  if (a.scale) inputs.push_back(c.number_like(*a.scale, a.q));
  while (!inputs.back().valid()) inputs.pop_back();
  return join_heads(c, c.add(ScaledDotProductAttention{by_flag}, std::move(inputs)));
}

}  // namespace lamina::onnx
