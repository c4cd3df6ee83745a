/// The scale of what is rounded goes up into what stands before it: sums of a product are multiplied once,
/// and rounded as they are then.
#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "ops/walk.h"
#include "rewrite/driver.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

constexpr std::size_t kMostScaleSteps = 16;

/// Operators from what is multiplied up to the Multiply or Dequantize that takes the factor.
struct ScaledRun {
  struct Step {
    NodeId node;
    std::size_t running;  ///< which input is the running value
  };
  std::vector<Step> steps;  ///< from the lowest up, without the end
  NodeId end;
  ValueId end_factor;  ///< of a Multiply
};

/// The factor may go past it: f(x * k) = f(x) * k for k > 0, once its other operand is multiplied.
std::optional<std::size_t> running_input(const Match& m, const Node& n) {
  const Graph& g = m.graph();
  if (n.op.is<Relu>() || n.op.is<Clamp>()) return 0;
  if (n.op.is<PRelu>() && g.constant(n.inputs[1])) return 0;
  if (!n.op.is<Add>() && !n.op.is<Maximum>() && !n.op.is<Minimum>()) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto* t = g.constant(n.inputs[1 - i]);
    if (t && t->element_type() == ElementType::f32 && all_finite(*t)) return i;
  }
  if (!n.op.is<Add>()) return std::nullopt;
  // If both operands are sums, that of a product is followed.
  for (std::size_t i = 0; i < 2; ++i)
    if (int8::levels_of(m, n.inputs[1 - i]) && g.readers(n.inputs[i]) == 1) return i;
  return std::nullopt;
}

/// What is multiplied by their scale: sums of a product or of signs, means, or these without their zero
/// point.
bool has_sums(const Graph& g, const Node& n) {
  if (n.op.is<BinaryConvolution>() && !epilogue(n)) return true;
  if (int8::widens_sums(g, n) || int8::averages_integers(g, n)) return true;
  if (!n.op.is<Add>() || !g.constant(n.inputs[1]) || g.readers(n.outputs[0]) != 1) return false;
  const auto maker = g.producer(n.inputs[0]);
  return maker.valid() && int8::averages_integers(g, g.node(maker));
}

/// A constant factor of sums of integers.
ValueId factor_of_sums(const Graph& g, const Node& n) {
  if (!n.op.is<Multiply>()) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto maker = g.producer(n.inputs[i]);
    if (g.constant(n.inputs[1 - i]) && maker.valid() && has_sums(g, g.node(maker))) return n.inputs[1 - i];
  }
  return {};
}

/// What a node multiplies with, where that is a constant.
ValueId constant_factor(const Graph& g, const Node& n) {
  if (!n.op.is<Multiply>()) return {};
  for (const auto v : n.inputs)
    if (const auto* t = g.constant(v); t && t->element_type() == ElementType::f32 && all_finite(*t)) return v;
  return {};
}

/// Nothing but constants and what a factor may go past is between the value and sums of integers.
bool is_of_sums(const Match& m, ValueId v) {
  const Graph& g = m.graph();
  for (std::size_t i = 0; i < kMostScaleSteps; ++i) {
    const auto maker = g.producer(v);
    if (!maker.valid()) return false;
    const Node& n = g.node(maker);
    if (factor_of_sums(g, n).valid()) return true;
    const auto factor = constant_factor(g, n);
    const auto running =
        factor.valid() ? std::optional<std::size_t>(n.inputs[0] == factor ? 1 : 0) : running_input(m, n);
    if (!running) return false;
    v = n.inputs[*running];
  }
  return false;
}

/// The constant factor of sums, or of what is made of them.
ValueId nearest_factor(const Match& m, NodeId id) {
  const Graph& g = m.graph();
  const Node& n = g.node(id);
  const auto factor = factor_of_sums(g, n);
  return factor.valid() || !is_of_sums(m, n.outputs[0]) ? factor : constant_factor(g, n);
}

/// Upwards from a value that is multiplied.
std::optional<ScaledRun> run_above(const Match& m, ValueId v) {
  const Graph& g = m.graph();
  ScaledRun run;
  for (std::size_t i = 0; i < kMostScaleSteps; ++i) {
    const auto maker = g.producer(v);
    if (!maker.valid() || g.readers(v) != 1 || m.is_exempt(maker)) return std::nullopt;
    const Node& n = g.node(maker);
    run.end = maker;
    run.end_factor = nearest_factor(m, maker);
    if (run.end_factor.valid()) return run;
    if (n.op.is<Dequantize>()) return int8::levels_of(m, v) ? std::optional(run) : std::nullopt;
    const auto running = running_input(m, n);
    if (!running) return std::nullopt;
    run.steps.push_back({maker, *running});
    v = n.inputs[*running];
  }
  return std::nullopt;
}

struct Scaled {
  ScaledRun run;
  double factor;
};

/// No constant gets lost by the factor.
Verdict stays_finite(const Graph& g, const ScaledRun& run, double factor) {
  const auto fits = [&](const Tensor& t) {
    const auto values = to_doubles(t);
    return std::all_of(values.begin(), values.end(), [&](double v) {
      return v == 0 || std::isnormal(static_cast<float>(v * factor)) || !std::isnormal(static_cast<float>(v));
    });
  };
  if (!(factor > 0) || !std::isnormal(static_cast<float>(factor)))
    return Verdict::no("its scale is no positive number");
  if (run.end_factor.valid() && !fits(*g.constant(run.end_factor)))
    return Verdict::no("a scale is too small or too large when it is multiplied");
  // What becomes too small for f32 is no part of a level.
  const auto dequantised_fits = [&](NodeId id) {
    const Node& n = g.node(id);
    return !n.op.is<Dequantize>() || int8::numbers_are_finite(*single_value(g, n.inputs[1]) * factor);
  };
  bool fit = dequantised_fits(run.end);
  for (const auto& s : run.steps)
    for (const auto v : g.node(s.node).inputs) {
      if (const auto* t = v.valid() ? g.constant(v) : nullptr; t && !fits(*t))
        return Verdict::no("a constant of '{}' is too small or too large when it is multiplied",
                           g.label(s.node));
      const auto maker = v.valid() && v != g.node(s.node).inputs[s.running] ? g.producer(v) : NodeId{};
      fit = fit && (!maker.valid() || dequantised_fits(maker));
    }
  return fit ? Verdict::yes() : Verdict::no("a scale is too large when it is multiplied");
}

/// A constant, or what a Dequantize gives, multiplied.
ValueId multiplied(Rewrite& r, ValueId v, double factor) {
  const Graph& g = r.graph();
  if (const auto* t = g.constant(v)) {
    auto values = to_doubles(*t);
    for (auto& x : values) x *= factor;
    return r.constant(from_doubles(ElementType::f32, t->shape(), values), g.value(v).name);
  }
  const Node n = g.node(g.producer(v));
  auto inputs = n.inputs;
  inputs[1] = multiplied(r, inputs[1], factor);
  r.named_after(g.producer(v));
  return r.add(Op(n.op), std::move(inputs));
}

/// The run, its end multiplied.
ValueId raised(Rewrite& r, const Scaled& found) {
  const Graph& g = r.graph();
  const auto& [run, factor] = found;
  r.absorb(run.end);
  r.named_after(run.end);
  ValueId y;
  if (run.end_factor.valid()) {
    auto inputs = g.node(run.end).inputs;
    for (auto& v : inputs)
      if (v == run.end_factor) v = multiplied(r, v, factor);
    y = r.add(Multiply{}, std::move(inputs));
  } else {
    y = multiplied(r, g.node(run.end).outputs[0], factor);
  }
  for (auto s = run.steps.rbegin(); s != run.steps.rend(); ++s) {
    const Node n = g.node(s->node);
    auto inputs = n.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (i == s->running)
        inputs[i] = y;
      else if (!n.op.is<PRelu>())
        inputs[i] = multiplied(r, inputs[i], factor);
    Op op = n.op;
    if (const auto* c = n.op.as<Clamp>()) op = Clamp{c->min * factor, c->max * factor};
    r.absorb(s->node);
    r.named_after(s->node);
    y = r.add(std::move(op), std::move(inputs));
  }
  return y;
}

/// True if both together are no larger than one of them.
bool one_covers(const Dims& a, const Dims& b) {
  const auto both = broadcast(Shape::of(a), Shape::of(b));
  const auto count = both ? element_count(both->sizes()) : 0;
  return both && (count == element_count(a) || count == element_count(b));
}

Found<Scaled> scale_goes_up(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto* op = n.op.as<Quantize>();
  if (op->block_size != 0 || g.type(n.inputs[0]).element != ElementType::f32 ||
      bits_of(op->destination_type) != 8)  // levels of more bits are no more than roundings apart
    return std::nullopt;
  const auto scale = single_value(g, n.inputs[1]);
  if (!scale || *scale == 1) return std::nullopt;
  const auto run = run_above(m, n.inputs[0]);
  if (!run) return std::nullopt;
  Scaled out{*run, 1 / *scale};
  if (auto v = stays_finite(g, out.run, out.factor); !v) return v;
  return out;
}

/// A Multiply by one number above which sums of integers are multiplied already.
Found<Scaled> factor_goes_up(const Match& m, const Pattern& x, const Pattern& factor) {
  const Graph& g = m.graph();
  const auto k = single_value(g, m.value(factor));
  if (!k || m.type(x).element != ElementType::f32) return std::nullopt;
  const auto run = run_above(m, m.value(x));
  if (!run) return std::nullopt;
  Scaled out{*run, *k};
  if (auto v = does_not_grow(m.label(factor), m.shape(factor), m.shape(x)); !v) return v;
  if (auto v = stays_finite(g, out.run, out.factor); !v) return v;
  return out;
}

/// Two numbers behind each other.
Rule shift() {
  const auto below = constant_only(), above = constant_only(), sums = any();
  const auto inner = is<Add>(sums, below).any_order().used_once();
  return rule("int8-shift", "Merges two numbers that are added to sums of integers", RuleSet::integers,
              is<Add>(inner, above).any_order())
      .when([=](const Match& m) -> Verdict {
        const Graph& g = m.graph();
        const auto maker = g.producer(m.value(sums));
        if (!maker.valid() || !nearest_factor(m, maker).valid()) return nothing_to_do();
        for (const auto& number : {below, above})
          if (auto v = does_not_grow(m.label(number), m.shape(number), m.shape(sums)); !v) return v;
        if (!one_covers(m.tensor(below).shape(), m.tensor(above).shape()))
          return Verdict::no("they lie along different axes");
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const auto &a = r.match().tensor(below), &b = r.match().tensor(above);
        const auto dims = broadcast(Shape::of(a.shape()), Shape::of(b.shape()))->sizes();
        auto values = broadcast_values(to_doubles(a), a.shape(), dims);
        const auto others = broadcast_values(to_doubles(b), b.shape(), dims);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += others[i];
        r.replace(
            r.add(Add{}, {r.match().value(sums), r.constant(from_doubles(ElementType::f32, dims, values))}));
      })
      .only_with(&RewriteOptions::integers)
      .when_others_are_done();
}

/// Element-wise operators alone lead from sums of integers to the value: they will be one epilogue.
bool follows_sums(const Graph& g, ValueId v) {
  for (std::size_t i = 0; i < kMostScaleSteps; ++i) {
    const auto maker = g.producer(v);
    if (!maker.valid() || g.readers(v) != 1) return false;
    const Node& n = g.node(maker);
    if (int8::widens_sums(g, n)) return true;
    const auto running = std::find_if(n.inputs.begin(), n.inputs.end(),
                                      [&](ValueId input) { return input.valid() && !g.constant(input); });
    if (!n.op.has(Trait::elementwise) || running == n.inputs.end()) return false;
    v = *running;
  }
  return false;
}

/// Where 0 is no level of a second tensor: behind it nothing but its integers are to be read.
Rule offset() {
  const auto sums = any(), levels = is<Dequantize>(), number = constant_only();
  const auto beside = is<Add>(levels, number).any_order().used_once();
  return rule("int8-offset", "Moves the zero point of an added tensor to the sums of integers",
              RuleSet::integers, is<Add>(sums, beside).any_order())
      .when([=](const Match& m) -> Verdict {
        const Graph& g = m.graph();
        if (!single_value(g, m.value(number)) || !follows_sums(g, m.value(sums))) return nothing_to_do();
        if (const auto found = int8::levels_of(m, m.value(levels)); !found) return found.verdict();
        const auto& shape = m.shape(levels);
        if (!(shape == m.shape(sums)) || !(shape == m.shape(beside)))
          return Verdict::no("{} has the shape {}, the sums have {}", m.label(levels), to_string(shape),
                             to_string(m.shape(sums)));
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const auto& m = r.match();
        r.replace(r.add(Add{}, {r.add(Add{}, {m.value(sums), m.value(number)}), m.value(levels)}));
      })
      .only_with(&RewriteOptions::integers)
      .when_others_are_done();
}

}  // namespace

void add_int8_scales(Rules& rules) {
  rules.push_back(rule("int8-scale", "Multiplies the scale of a Quantize into those of the sums before it",
                       RuleSet::integers, is<Quantize>(any()))
                      .when(scale_goes_up)
                      .make([](Rewrite& r, const Scaled& found) {
                        const Node n = r.match().root_node();
                        auto inputs = n.inputs;
                        inputs[0] = raised(r, found);
                        inputs[1] = r.constant(from_doubles(ElementType::f32, {}, {1}));
                        r.named_after(r.match().root());
                        r.replace(r.add(Op(n.op), std::move(inputs)));
                      })
                      .only_with(&RewriteOptions::integers)
                      .when_others_are_done());
  const auto x = any(), factor = constant_only();
  rules.push_back(rule("int8-factor", "Multiplies a factor into the scales of the sums before it",
                       RuleSet::integers, is<Multiply>(x, factor).any_order())
                      .when([=](const Match& m) { return factor_goes_up(m, x, factor); })
                      .make([](Rewrite& r, const Scaled& found) { r.replace(raised(r, found)); })
                      .only_with(&RewriteOptions::integers)
                      .when_others_are_done());
  rules.push_back(shift());
  rules.push_back(offset());
}

}  // namespace lamina
