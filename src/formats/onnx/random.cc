/// Random numbers, and what draws them: Bernoulli, Dropout.
#include <cmath>

#include "formats/onnx/build.h"
#include "formats/onnx/importer.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/movement.h"

namespace lamina::onnx {
namespace {

/// The operator with the node's seed, which is a float, for Dropout an integer. Nodes with the same seed give
/// different numbers, in whichever body they are; nodes without one give others each time (RandomUniform in
/// ops/generation.h).
template <class R>
R random(Call& c, ElementType type) {
  R op;
  op.output_type = type;
  if (!c.has_attribute("seed")) return op;
  if (c.op() == "Dropout") {
    op.global_seed = c.i("seed", 0);
  } else {
    const auto seed = c.f("seed", 0);
    op.global_seed = std::isfinite(seed) && std::abs(seed) < 1e15 ? static_cast<std::int64_t>(seed) : 1;
  }
  op.op_seed = ++c.importer().random_operators;
  return op;
}

ElementType random_type(const Call& c, bool like) {
  if (like && !c.has_attribute("dtype")) return c.known_element(c.in(0));
  return c.element_attribute("dtype", ElementType::f32);
}

/// RandomUniform between `low` and `high`, or RandomNormal with `mean` and `scale`.
template <class R, bool kLike>
Values convert_random(Call& c) {
  constexpr bool kUniform = std::is_same_v<R, RandomUniform>;
  const auto type = random_type(c, kLike);
  const auto shape = kLike ? c.shape_of(c.in(0)) : c.ints_constant(c.ints("shape"));
  const auto first = c.f(kUniform ? "low" : "mean", 0), second = c.f(kUniform ? "high" : "scale", 1);
  return {c.add(random<R>(c, type), {shape, c.number(first, type), c.number(second, type)})};
}

/// Numbers in 0 .. 1, 1 excluded, for each element of x.
ValueId draws_for(Call& c, ValueId x, ElementType type) {
  return c.add(random<RandomUniform>(c, type), {c.shape_of(x), c.number(0, type), c.number(1, type)});
}

/// Each element of the result is 1 with the probability that the input's element gives, else 0.
Values convert_bernoulli(Call& c) {
  const auto p = c.in(0);
  const auto from = c.known_element(p), type = random_type(c, true);
  const auto drawn = from == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  return {c.convert(c.add(Less{}, {draws_for(c, p, drawn), c.convert(p, drawn)}), type)};
}

/// The input itself, nothing dropped.
Values without_drops(Call& c) {
  const auto x = c.in(0);
  Values out{c.add(Identity{}, {x})};
  if (c.wants(1)) {
    const auto type = c.version() >= 10 ? ElementType::boolean : c.known_element(x);
    out.push_back(c.filled(c.number(1, type), c.shape_of(x)));
  }
  return out;
}

/// In training mode, elements are dropped with the probability `ratio`, and the others are divided by the
/// probability that they stay.
Values convert_dropout(Call& c) {
  const bool trains = c.version() >= 12 && c.has(2) && c.known_number(c.in(2)) != 0.0;
  if (!trains || (c.has(1) && c.known_number(c.in(1)) == 0.0)) return without_drops(c);
  c.warn("Dropout in training mode drops elements at random at each run; export the model for inference");
  const auto x = c.in(0);
  const auto type = c.known_element(x);
  const auto drawn = type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  auto ratio = c.has(1) ? c.convert(c.to_scalar(c.in(1)), drawn) : c.number(0.5, drawn);
  if (!c.known_number(c.in(2))) ratio = c.add(Select{}, {c.to_scalar(c.in(2)), ratio, c.number(0, drawn)});
  const auto kept = c.add(GreaterEqual{}, {draws_for(c, x, drawn), ratio});
  const auto left = c.convert(subtract(c, c.number(1, drawn), ratio), type);
  return {c.add(Select{}, {kept, divide(c, x, left), c.number(0, type)}), kept};
}

}  // namespace

void register_random(ConverterTable& t) {
  t.add("Bernoulli", convert_bernoulli);
  t.add("Dropout", convert_dropout);
  t.add("RandomNormal", convert_random<RandomNormal, false>);
  t.add("RandomNormalLike", convert_random<RandomNormal, true>);
  t.add("RandomUniform", convert_random<RandomUniform, false>);
  t.add("RandomUniformLike", convert_random<RandomUniform, true>);
}

}  // namespace lamina::onnx
