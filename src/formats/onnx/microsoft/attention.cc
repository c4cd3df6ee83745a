/// com.microsoft: Attention with its projections, MultiHeadAttention without.
#include "formats/onnx/microsoft/attention.h"

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "ops/matmul.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

std::optional<double> read_scale(const Call& c) {
  const auto scale = c.f("scale", 0);
  return scale == 0 ? std::nullopt : std::optional(scale);
}

Attended read_attended(const Call& c) {
  Attended a;
  a.causal = read_flag(c, "unidirectional");
  a.filter = c.f("mask_filter_value", -10000);
  a.scale = read_scale(c);
  return a;
}

/// Widths of queries, keys and values in the joined weights.
Ints hidden_sizes(const Call& c, ValueId weights) {
  const auto columns = c.type(weights).shape[1];
  if (auto sizes = c.maybe_ints("qkv_hidden_sizes"); sizes && !sizes->empty()) {
    if (sizes->size() != 3) c.fail("qkv_hidden_sizes has {} elements, wanted 3", sizes->size());
    for (auto s : *sizes)
      if (s <= 0 || s > (std::int64_t{1} << 30)) c.fail("qkv_hidden_sizes has {}, wanted 1 or more", s);
    if ((*sizes)[0] != (*sizes)[1]) c.fail("queries of {} and keys of {}", (*sizes)[0], (*sizes)[1]);
    if (!columns.fits((*sizes)[0] + (*sizes)[1] + (*sizes)[2]))
      c.fail("qkv_hidden_sizes do not add up to the weights' {} columns", to_string(columns));
    return *sizes;
  }
  if (!columns.known()) c.unsupported("weights with an unknown number of columns");
  if (columns.size() % 3 != 0) c.fail("the weights have {} columns, wanted a multiple of 3", columns.size());
  return Ints(3, columns.size() / 3);
}

/// Keys, then values, with those from the past.
struct State {
  ValueId k, v;
};

State read_past(Call& c, ValueId past) {
  check_rank(c, past, "the past", 5);
  if (!c.type(past).shape[0].fits(2))
    c.fail("the past is {}, wanted [2, ...]", to_string(c.type(past).shape));
  return {c.pick(past, 0, 0), c.pick(past, 0, 1)};
}

/// Input, weights, bias, mask, past, bias of the scores. Each projection has its own part of the weights.
Values convert_microsoft_attention(Call& c) {
  if (c.flag("do_rotary")) c.unsupported("do_rotary is not supported");
  if (c.flag("past_present_share_buffer") || c.has(6))
    c.unsupported("past and present in one buffer are not supported");
  const auto heads = read_heads(c, "num_heads");
  check_rank(c, c.in(0), "the input", 3);
  check_rank(c, c.in(1), "the weights", 2);
  const auto sizes = hidden_sizes(c, c.in(1));
  Values parts;
  for (std::int64_t i = 0, from = 0; i < 3; ++i) {
    const auto to = from + sizes[static_cast<std::size_t>(i)];
    auto y = c.add(MatMul{}, {c.in(0), c.slice(c.in(1), 1, from, to)});
    if (c.has(2)) y = add(c, y, c.slice(c.in(2), 0, from, to));
    parts.push_back(split_heads(c, y, heads));
    from = to;
  }
  auto a = read_attended(c);
  a.starts_too = true;
  a.q = parts[0], a.k = parts[1], a.v = parts[2];
  if (c.has(4)) {
    const auto past = read_past(c, c.in(4));
    a.past = past.k;
    a.k = c.concat({past.k, a.k}, 2);
    a.v = c.concat({past.v, a.v}, 2);
  }
  a.key_mask = c.maybe(3);
  a.bias = c.maybe(5);
  Values out{attend(c, a)};
  if (c.wants(1)) out.push_back(c.concat({c.unsqueeze(a.k, {0}), c.unsqueeze(a.v, {0})}, 0));
  return out;
}

/// A part of the bias of all projections.
ValueId biased(Call& c, ValueId v, std::int64_t from, std::int64_t size) {
  return c.has(3) ? add(c, v, c.slice(c.in(3), 0, from, from + size)) : v;
}

std::int64_t width_of(const Call& c, ValueId v, std::size_t axis) {
  const auto d = c.type(v).shape[axis];
  if (!d.known()) c.unsupported("a bias with an unknown hidden size");
  return d.size();
}

/// [N, L, heads, parts, size]: part i as [N, heads, L, size].
ValueId packed_part(Call& c, ValueId v, std::int64_t heads, std::int64_t parts, std::int64_t i) {
  const auto shape = c.type(v).shape;
  if (!shape[2].fits(heads) || !shape[3].fits(parts))
    c.fail("a packed operand is {}, wanted [N, L, {}, {}, size]", to_string(shape), heads, parts);
  auto part = c.pick(v, 3, i);
  if (c.has(3)) {
    const auto size = width_of(c, v, 4), first = (i + 3 - parts) * heads * size;
    part = add(c, part, c.reshape(c.slice(c.in(3), 0, first, first + heads * size), Ints{heads, size}));
  }
  return c.transpose(part, {0, 2, 1, 3});
}

/// Queries, keys and values in all the forms that they come in; those of rank 4 are ready.
void read_operands(Call& c, std::int64_t heads, Attended& a) {
  check_rank(c, c.in(0), "the query", 3, 5);
  if (c.known_rank(c.in(0)) == 5) {
    if (c.has(1) || c.has(2)) c.fail("has keys or values beside a packed query");
    a.q = packed_part(c, c.in(0), heads, 3, 0);
    a.k = packed_part(c, c.in(0), heads, 3, 1);
    a.v = packed_part(c, c.in(0), heads, 3, 2);
    return;
  }
  const auto width = c.has(3) ? width_of(c, c.in(0), 2) : 0;
  a.q = split_heads(c, biased(c, c.in(0), 0, width), heads);
  const auto rank = c.known_rank(c.in(1));
  if (rank == 5) {
    if (c.has(2)) c.fail("has values beside packed keys");
    a.k = packed_part(c, c.in(1), heads, 2, 0);
    a.v = packed_part(c, c.in(1), heads, 2, 1);
    return;
  }
  check_rank(c, c.in(1), "the keys", 3, 4);
  check_rank(c, c.in(2), "the values", rank);
  if (rank == 4) {  // of another layer, bias and all
    a.k = c.in(1), a.v = c.in(2);
    return;
  }
  a.k = split_heads(c, biased(c, c.in(1), width, width), heads);
  const auto value_width = c.has(3) ? width_of(c, c.in(2), 2) : 0;
  a.v = split_heads(c, biased(c, c.in(2), 2 * width, value_width), heads);
}

/// Query, keys, values, bias, key mask, bias of the scores, past keys and values.
Values convert_multi_head_attention(Call& c) {
  if (c.has(8) || c.has(9)) c.unsupported("past and present in one buffer are not supported");
  if (c.has(6) != c.has(7)) c.fail("has only one of past_key and past_value");
  const auto heads = read_heads(c, "num_heads");
  if (c.has(3)) check_rank(c, c.in(3), "the bias", 1);
  auto a = read_attended(c);
  read_operands(c, heads, a);
  if (c.has(6)) {
    check_rank(c, c.in(6), "past_key", 4);
    check_rank(c, c.in(7), "past_value", 4);
    a.past = c.in(6);
    a.k = c.concat({c.in(6), a.k}, 2);
    a.v = c.concat({c.in(7), a.v}, 2);
  }
  a.key_mask = c.maybe(4);
  a.bias = c.maybe(5);
  ValueId scores;
  const auto y = attend(c, a, c.wants(3) ? &scores : nullptr);
  return {y, a.k, a.v, scores};
}

}  // namespace

void register_microsoft_attention(ConverterTable& t) {
  t.add(kMicrosoft, "Attention", convert_microsoft_attention);
  t.add(kMicrosoft, "MultiHeadAttention", convert_multi_head_attention);
}

}  // namespace lamina::onnx
