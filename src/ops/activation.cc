#include "ops/activation.h"

#include <cmath>

#include "graph/op_model.h"
#include "graph/permute.h"
#include "ops/operators.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// A parameter of one element.
void require_parameter(const InferContext& c, std::size_t input) {
  require_takes(c, input, Takes::floats);
  const Shape& s = c.shape(input);
  c.require(!s.ranked() || s.count().fits(1), "parameter {} has shape {}, wanted one element", input,
            to_string(s));
}

double parameter(const EvalContext& c, std::size_t input) { return c.doubles(input).at(0); }

}  // namespace

void Elu::infer(InferContext& c) const { infer_unary(c, Takes::floats); }
void Elu::evaluate(EvalContext& c) const {
  evaluate_unary(c, [this](double x) { return scalar::elu(x, alpha); });
}

void Selu::infer(InferContext& c) const {
  infer_unary(c, Takes::floats);
  require_parameter(c, 1);
  require_parameter(c, 2);
}
void Selu::evaluate(EvalContext& c) const {
  const double alpha = parameter(c, 1), lambda = parameter(c, 2);
  evaluate_unary(c, [=](double x) { return scalar::selu(x, alpha, lambda); });
}

void HardSigmoid::infer(InferContext& c) const {
  infer_unary(c, Takes::floats);
  require_parameter(c, 1);
  require_parameter(c, 2);
}
void HardSigmoid::evaluate(EvalContext& c) const {
  const double alpha = parameter(c, 1), beta = parameter(c, 2);
  evaluate_unary(c, [=](double x) { return scalar::hard_sigmoid(x, alpha, beta); });
}

void Swish::infer(InferContext& c) const {
  infer_unary(c, Takes::floats);
  if (c.has(1)) require_parameter(c, 1);
}
void Swish::evaluate(EvalContext& c) const {
  const double beta = c.has(1) ? parameter(c, 1) : 1;
  evaluate_unary(c, [=](double x) { return scalar::swish(x, beta); });
}

void Gelu::infer(InferContext& c) const { infer_unary(c, Takes::floats); }
void Gelu::evaluate(EvalContext& c) const {
  evaluate_unary(c, approximation_mode == GeluMode::erf ? scalar::gelu_erf : scalar::gelu_tanh);
}

void Clamp::infer(InferContext& c) const {
  c.require(min <= max, "min is {} and max is {}, wanted min <= max", min, max);
  infer_unary(c, Takes::numbers);
}

void Clamp::evaluate(EvalContext& c) const {
  with_number_type(c.in(0).element_type(), [&]<class T>() {
    auto values = c.numbers<T>(0);
    const auto [low, high] = bounds<T>(c.in(0).element_type());
    for (auto& x : values) x = x < low ? low : (x > high ? high : x);
    c.store(0, values);
  });
}

void PowerStatic::infer(InferContext& c) const { infer_unary(c, Takes::floats); }

void PowerStatic::evaluate(EvalContext& c) const {
  const bool wide = c.in(0).element_type() == ElementType::f64;
  const auto rounded = [wide](double v) { return wide ? v : static_cast<double>(static_cast<float>(v)); };
  evaluate_unary(c, [&](double x) {
    if (scale != 1) x = rounded(x * rounded(scale));
    if (shift != 0) x = rounded(x + rounded(shift));
    return power != 1 ? std::pow(x, rounded(power)) : x;
  });
}

Shape prelu_slope_shape(const Shape& x, const Shape& slope) {
  if (!slope.ranked() || !x.ranked()) return {};
  if (slope.rank() != 1 || x.rank() < 2 || slope[0].is(1)) return slope;
  if (slope[0].known() && x[1].known() && slope[0].size() != x[1].size()) return slope;
  if (!slope[0].same(x[1])) return {};
  std::vector<Dim> dims(x.rank() - 1, 1);
  dims[0] = slope[0];
  return Shape(std::move(dims));
}

void PRelu::infer(InferContext& c) const {
  infer_unary(c, Takes::numbers);
  const auto a = c.element(0), b = c.element(1);
  c.require(a == b || a == ElementType::undefined || b == ElementType::undefined,
            "slope is {}, wanted {} like the input", name_of(b), name_of(a));
  const Shape placed = prelu_slope_shape(c.shape(0), c.shape(1));
  if (placed.ranked() && !placed.same(c.shape(1))) return;  // along axis 1
  if (placed.ranked()) require_broadcast(c, 1, c.shape(0), "slope");
}

void PRelu::evaluate(EvalContext& c) const {
  const Dims& dims = c.dims(0);
  const auto slope_dims = prelu_slope_shape(Shape::of(dims), Shape::of(c.dims(1))).sizes();
  const auto strides = broadcast_strides(slope_dims, dims);
  const std::int64_t step = dims.empty() ? 0 : strides.back();
  with_number_type(c.in(0).element_type(), [&]<class T>() {
    auto values = c.numbers<T>(0);
    const auto slopes = c.numbers<T>(1);
    for_each_row<1>(dims, {strides}, [&](std::int64_t first, const auto& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        auto& x = values[static_cast<std::size_t>(first + i)];
        x = scalar::prelu(x, slopes[static_cast<std::size_t>(at[0] + i * step)]);
      }
    });
    c.store(0, values);
  });
}

Verdict PRelu::permute(PermuteContext& c) const {
  const Shape placed = prelu_slope_shape(c.node().shape(0), c.node().shape(1));
  if (!placed.ranked()) return Verdict::no("it is not known along which axis its slope lies");
  return c.follow_as(1, placed);
}

void register_activation(Registry& r) {
  r.add<Clamp>();
  r.add<PowerStatic>();
  r.add<Elu>();
  r.add<Gelu>();
  r.add<HSigmoid>();
  r.add<HSwish>();
  r.add<HardSigmoid>();
  r.add<Mish>();
  r.add<PRelu>();
  r.add<Relu>();
  r.add<Selu>();
  r.add<Sigmoid>();
  r.add<SoftPlus>();
  r.add<SoftSign>();
  r.add<Swish>();
  r.add<Tanh>();
}

}  // namespace lamina
