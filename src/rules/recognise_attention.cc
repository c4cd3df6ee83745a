/// Attention written out: Softmax of a scaled product of queries and keys, times the values. Whether one node
/// is faster is for the plan to say.
#include <numeric>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

bool is_plain_product(const Graph& g, const Node& n) {
  const auto* op = n.op.as<MatMul>();
  return !op->transpose_a && n.inputs.size() == 2 && n.bodies.empty() &&
         g.type(n.inputs[0]).element == ElementType::f32;
}

bool is_matrix(const Shape& s) { return s.ranked() && s.rank() >= 2; }

bool is_last_axis(std::int64_t axis, const Shape& s) {
  return s.ranked() && (axis == -1 || axis + 1 == static_cast<std::int64_t>(s.rank()));
}

/// The input of a product with one number, else the value itself.
ValueId unscaled(const Graph& g, ValueId v) {
  const auto maker = g.producer(v);
  if (!maker.valid()) return v;
  const auto& n = g.node(maker);
  if (!n.bodies.empty() || !(n.op.is<Multiply>() || n.op.is<Divide>())) return v;
  if (single_value(g, n.inputs[1])) return n.inputs[0];
  return n.op.is<Multiply>() && single_value(g, n.inputs[0]) ? n.inputs[1] : v;
}

/// The keys come as [..., E, S] from a Transpose with a known order, which another Transpose can join.
bool is_transposed(const Graph& g, ValueId keys) {
  const auto maker = g.producer(unscaled(g, keys));
  return maker.valid() && g.node(maker).op.is<Transpose>() && transpose_order(g, g.node(maker));
}

/// Changes the last two axes.
ValueId swapped(Rewrite& r, ValueId v) {
  Ints order(r.graph().type(v).shape.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return r.add(Transpose{}, {v, r.constant(ints_tensor(order))});
}

}  // namespace

void add_recognise_attention(Rules& rules) {
  const auto query = any(), key = any(), value = any(), factor = constant_only(), divisor = constant_only(),
             mask = any();
  const auto product = is<MatMul>(query, key).that(is_plain_product).used_once();
  const auto scaled = either({product, is<Multiply>(product, factor).any_order().used_once(),
                              is<Divide>(product, divisor).used_once()});
  const auto masked = either({scaled, is<Add>(scaled, mask).any_order().used_once()});
  const auto softmax = is<Softmax>(masked).used_once().that([](const Graph& g, const Node& n) {
    return n.bodies.empty() && is_last_axis(n.op.as<Softmax>()->axis, g.type(n.inputs[0]).shape);
  });
  const auto root = is<MatMul>(softmax, value).that([](const Graph& g, const Node& n) {
    return is_plain_product(g, n) && !n.op.as<MatMul>()->transpose_b;
  });
  const auto scale_of = [=](const Match& m) -> std::optional<double> {
    if (m.has(factor)) return single_value(m.graph(), m.value(factor));
    if (!m.has(divisor)) return 1;
    const auto by = single_value(m.graph(), m.value(divisor));
    return by && *by != 0 ? std::optional(1 / *by) : std::nullopt;
  };
  rules.push_back(
      rule("recognise-attention", "softmax(query * key^T * scale + mask) * value", RuleSet::portable, root)
          .when([=](const Match& m) -> Found<double> {
            for (const auto& p : {query, key, value})
              if (!is_matrix(m.shape(p)))
                return Verdict::no("{} has shape {}, wanted 2 or more dimensions", m.label(p),
                                   to_string(m.shape(p)));
            if (!m.op<MatMul>(product).transpose_b && !is_transposed(m.graph(), m.value(key)))
              return Verdict::no("the keys {} are not transposed", m.label(key));
            const auto scale = scale_of(m);
            if (!scale) return Verdict::no("the scale is not one number");
            for (const auto& by : {factor, divisor})
              if (m.has(by))
                if (auto v = does_not_grow(m.label(by), m.shape(by), m.shape(product)); !v) return v;
            if (m.has(mask))
              if (auto v = does_not_grow(m.label(mask), m.shape(mask), m.shape(product)); !v) return v;
            return *scale;
          })
          .make([=](Rewrite& r, const double& number) {
            const Match& m = r.match();
            const auto keys = m.op<MatMul>(product).transpose_b ? m.value(key) : swapped(r, m.value(key));
            const auto scale = r.constant(from_doubles(ElementType::f32, {}, {number}));
            r.replace(r.add(ScaledDotProductAttention{}, {m.value(query), keys, m.value(value),
                                                          m.has(mask) ? m.value(mask) : ValueId{}, scale}));
          }));
}

}  // namespace lamina
