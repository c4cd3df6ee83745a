/// LinearAttention: attention as a recurrence over a state that keys and values are written into.
#include <cmath>

#include "formats/onnx/build.h"
#include "formats/onnx/heads.h"
#include "ops/elementwise.h"
#include "ops/linear_attention.h"

namespace lamina::onnx {
namespace {

struct Sizes {
  std::int64_t heads = 0, groups = 0, key = 0;
  bool gated = false, delta = false;
};

Sizes read_head_sizes(const Call& c) {
  Sizes s;
  s.heads = read_heads(c, "q_num_heads");
  s.groups = read_heads(c, "kv_num_heads");
  if (s.heads % s.groups != 0) c.fail("{} heads of queries for {} of keys", s.heads, s.groups);
  const auto rule = c.s("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    c.fail("update_rule is \"{}\", wanted linear, gated, delta or gated_delta", rule);
  s.gated = rule == "gated" || rule == "gated_delta";
  s.delta = rule == "delta" || rule == "gated_delta";
  if (s.gated != c.has(4)) c.fail("{} decay for update_rule \"{}\"", s.gated ? "has no" : "has a", rule);
  if (s.delta != c.has(5)) c.fail("{} beta for update_rule \"{}\"", s.delta ? "has no" : "has a", rule);
  for (std::size_t i = 0; i < 3; ++i)
    check_rank(c, c.in(i), i == 0 ? "the query" : i == 1 ? "the key" : "the value", 3);
  const auto width = c.type(c.in(0)).shape[2];
  if (!width.known()) c.unsupported("an unknown hidden size");
  if (width.size() == 0 || width.size() % s.heads != 0)
    c.fail("{} channels for {} heads", width.size(), s.heads);
  s.key = width.size() / s.heads;
  if (!c.type(c.in(1)).shape[2].fits(s.groups * s.key))
    c.fail("the key has {} channels, wanted {}", to_string(c.type(c.in(1)).shape[2]), s.groups * s.key);
  return s;
}

/// [N, T, groups * size] as [N, groups, T, size].
ValueId by_heads(Call& c, ValueId v, ElementType type, std::int64_t heads) {
  return split_heads(c, c.convert(v, type), heads);
}

/// What is left of the state, [N, groups, T, key or 1].
ValueId read_decay(Call& c, const Sizes& s, ElementType type) {
  check_rank(c, c.in(4), "the decay", 3);
  const auto width = c.type(c.in(4)).shape[2];
  if (!width.known()) c.unsupported("a decay with an unknown number of channels");
  if (!width.is(s.groups) && !width.is(s.groups * s.key))
    c.fail("the decay has {} channels, wanted {} or {}", width.size(), s.groups, s.groups * s.key);
  return c.add(Exp{}, {by_heads(c, c.in(4), type, s.groups)});
}

/// [N, groups or 1, T, 1].
ValueId read_beta(Call& c, const Sizes& s, ElementType type) {
  check_rank(c, c.in(5), "beta", 3);
  const auto width = c.type(c.in(5)).shape[2];
  if (!width.known()) c.unsupported("a beta with an unknown number of channels");
  if (!width.is(s.groups) && !width.is(1))
    c.fail("beta has {} channels, wanted {} or 1", width.size(), s.groups);
  return by_heads(c, c.in(5), type, width.size());
}

ValueId first_state(Call& c, const Sizes& s, ValueId v, ElementType type) {
  if (c.has(3)) {
    check_rank(c, c.in(3), "the past state", 4);
    return c.convert(c.in(3), type);
  }
  const auto sizes =
      c.concat({sizes_of(c, v, 0, 1), c.ints_constant({s.groups, s.key}), sizes_of(c, v, 3, 4)}, 0);
  return c.filled(c.number(0, type), sizes);
}

/// Query, key, value, past state, decay, beta. Halves are computed in f32.
Values convert_linear_attention(Call& c) {
  const auto s = read_head_sizes(c);
  const auto given = c.known_element(c.in(0));
  const auto type = given == ElementType::f64 ? given : ElementType::f32;
  const auto scale = c.f("scale", 0) != 0 ? c.f("scale", 0) : 1 / std::sqrt(static_cast<double>(s.key));
  const auto q = by_heads(c, multiply(c, c.convert(c.in(0), type), c.number(scale, type)), type, s.heads);
  const auto k = by_heads(c, c.in(1), type, s.groups), v = by_heads(c, c.in(2), type, s.groups);
  Values inputs{q, k, v, first_state(c, s, v, type)};
  if (s.gated || s.delta) inputs.push_back(s.gated ? read_decay(c, s, type) : ValueId{});
  if (s.delta) inputs.push_back(read_beta(c, s, type));
  const auto out = c.add_all(LinearAttention{}, std::move(inputs));
  return {c.convert(join_heads(c, out[0]), given),
          c.convert(out[1], c.has(3) ? c.known_element(c.in(3)) : given)};
}

}  // namespace

void register_linear_attention(ConverterTable& t) {
  for (auto domain : {std::string_view(), kMicrosoft})
    t.add(domain, "LinearAttention", convert_linear_attention);
}

}  // namespace lamina::onnx
