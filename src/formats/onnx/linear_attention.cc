/// LinearAttention: attention as a recurrence over a state that keys and values are written into.
#include <cmath>
#include <tuple>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/heads.h"
#include "formats/onnx/importer.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// Everything for the tokens, which lie on axis 2 with all groups' heads as rows: T tokens of R heads that
/// share a state are T * R rows of queries.
struct Tokens {
  ValueId q;      ///< [N, groups, T * R, Dk], times the scale
  ValueId k, v;   ///< [N, groups, T, Dk], [N, groups, T, Dv]
  ValueId decay;  ///< [N, groups, T, Dk or 1], what is left of the state; may be absent
  ValueId beta;   ///< [N, groups or 1, T, 1]; may be absent
};

struct Sizes {
  std::int64_t heads = 0, groups = 0, key = 0;
  bool gated = false, delta = false;
};

/// One token: the new state [N, groups, Dk, Dv], and what its queries read, [N, groups, R, Dv].
std::pair<ValueId, ValueId> step(const Building& b, const Tokens& t, ValueId state) {
  if (t.decay.valid()) state = b.add(Multiply{}, {state, b.transpose(t.decay, {0, 1, 3, 2})});
  auto v = t.v;
  if (t.beta.valid()) {
    const auto read = b.add(MatMul{}, {t.k, state});
    v = b.add(Multiply{}, {t.beta, b.add(Subtract{}, {v, read})});
  }
  state = b.add(Add{}, {state, b.add(MatMul{true, false}, {t.k, v})});
  return {state, b.add(MatMul{}, {t.q, state})};
}

Sizes read_sizes(const Call& c) {
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

Tokens read_tokens(Call& c, const Sizes& s, ElementType type) {
  Tokens t;
  const auto given = c.f("scale", 0);
  const auto scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(s.key));
  const auto q = multiply(c, c.convert(c.in(0), type), c.number(scale, type));
  if (s.heads == s.groups) {
    t.q = split_heads(c, q, s.heads);
  } else {
    const auto apart =
        c.add(Reshape{true}, {q, c.ints_constant({0, 0, s.groups, s.heads / s.groups, s.key})});
    t.q = c.add(Reshape{true}, {c.transpose(apart, {0, 2, 1, 3, 4}), c.ints_constant({0, 0, -1, s.key})});
  }
  t.k = by_heads(c, c.in(1), type, s.groups);
  t.v = by_heads(c, c.in(2), type, s.groups);
  if (s.gated) {
    check_rank(c, c.in(4), "the decay", 3);
    const auto width = c.type(c.in(4)).shape[2];
    if (!width.known()) c.unsupported("a decay with an unknown number of channels");
    if (!width.is(s.groups) && !width.is(s.groups * s.key))
      c.fail("the decay has {} channels, wanted {} or {}", width.size(), s.groups, s.groups * s.key);
    t.decay = c.add(Exp{}, {by_heads(c, c.in(4), type, s.groups)});
  }
  if (s.delta) {
    check_rank(c, c.in(5), "beta", 3);
    const auto width = c.type(c.in(5)).shape[2];
    if (!width.known()) c.unsupported("a beta with an unknown number of channels");
    if (!width.is(s.groups) && !width.is(1))
      c.fail("beta has {} channels, wanted {} or 1", width.size(), s.groups);
    t.beta = by_heads(c, c.in(5), type, width.size());
  }
  return t;
}

ValueId first_state(Call& c, const Sizes& s, const Tokens& t, ElementType type) {
  if (c.has(3)) {
    check_rank(c, c.in(3), "the past state", 4);
    return c.convert(c.in(3), type);
  }
  const auto sizes =
      c.concat({sizes_of(c, t.v, 0, 1), c.ints_constant({s.groups, s.key}), sizes_of(c, t.v, 3, 4)}, 0);
  return c.filled(c.number(0, type), sizes);
}

/// Loops over the tokens: their number may be another one at each run.
std::pair<ValueId, ValueId> run_tokens(Call& c, const Sizes& s, const Tokens& t, ValueId state) {
  Loop op;
  op.carried = 1;
  op.concat_axes = {2};
  Values inputs{ValueId{}, ValueId{}, state};
  Graph body;
  body.name = "token";
  body.add_input("iteration", {ElementType::i64, Shape(std::vector<Dim>{})});
  body.add_input("condition", {ElementType::boolean, Shape(std::vector<Dim>{})});
  const auto before = body.add_input("state", c.type(state));
  const auto slice = [&](const char* name, ValueId v, std::int64_t rows) {
    if (!v.valid()) return ValueId{};
    op.slice_axes.push_back(2);
    op.slice_starts.push_back(0);
    op.slice_ends.push_back(-1);
    op.slice_strides.push_back(rows);
    op.slice_part_sizes.push_back(rows);
    inputs.push_back(v);
    auto type = c.type(v);
    type.shape[2] = Dim(rows);
    return body.add_input(name, type);
  };
  Tokens one;
  one.q = slice("query", t.q, s.heads / s.groups);
  one.k = slice("key", t.k, 1);
  one.v = slice("value", t.v, 1);
  one.decay = slice("decay", t.decay, 1);
  one.beta = slice("beta", t.beta, 1);
  const auto [after, y] = step(Building(body, c.importer().folding_budget), one, before);
  body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
  body.add_result("state", after);
  body.add_result("read", y);
  std::vector<Graph> bodies;
  bodies.push_back(std::move(body));
  const auto out = c.add_all(op, std::move(inputs), 2, std::move(bodies));
  return {out[0], out[1]};
}

/// Query, key, value, past state, decay, beta.
Values convert_linear_attention(Call& c) {
  const auto s = read_sizes(c);
  const auto type = c.known_element(c.in(0));
  const auto computed = type == ElementType::f64 ? type : ElementType::f32;
  const auto t = read_tokens(c, s, computed);
  auto state = first_state(c, s, t, computed);
  const bool one_token = c.type(c.in(0)).shape[1].is(1);
  ValueId y;
  std::tie(state, y) = one_token ? step(c, t, state) : run_tokens(c, s, t, state);
  // [N, groups, T * R, Dv] as [N, T, heads * Dv].
  const auto size = c.type(t.v).shape[3];
  const auto rows = s.heads / s.groups;
  if (rows == 1) {
    y = join_heads(c, y);
  } else {
    if (!size.known()) c.unsupported("an unknown size of values");
    y = c.add(Reshape{true}, {y, c.ints_constant({0, 0, -1, rows, size.size()})});
    y = c.add(Reshape{true},
              {c.transpose(y, {0, 2, 1, 3, 4}), c.ints_constant({0, 0, s.heads * size.size()})});
  }
  return {c.convert(y, type), c.convert(state, c.has(3) ? c.known_element(c.in(3)) : type)};
}

}  // namespace

void register_linear_attention(ConverterTable& t) {
  for (auto domain : {std::string_view(), kMicrosoft})
    t.add(domain, "LinearAttention", convert_linear_attention);
}

}  // namespace lamina::onnx
