#include "kernels/native/float_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/fake_quantize.h"
#include "ops/quantization.h"

namespace lamina {
namespace {

template <class F>
FloatFunction unary(F f) {
  return [f](const float* const* in, float* out, std::int64_t n) {
    const float* x = in[0];
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
  };
}

template <class F>
FloatFunction binary(F f) {
  return [f](const float* const* in, float* out, std::int64_t n) {
    const float *a = in[0], *b = in[1];
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  };
}

template <class F>
IntFunction int_binary(F f) {
  return [f](const std::int64_t* const* in, std::int64_t* out, std::int64_t n) {
    const std::int64_t *a = in[0], *b = in[1];
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  };
}

template <class F>
IntFunction int_unary(F f) {
  return [f](const std::int64_t* const* in, std::int64_t* out, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(in[0][i]);
  };
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float softplus(float x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
float clamp(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }

FloatFunction unary_math(const Op& op) {
  if (op.is<Abs>()) return unary([](float x) { return std::fabs(x); });
  if (op.is<Negative>()) return unary([](float x) { return -x; });
  if (op.is<Sign>())
    return unary([](float x) { return std::isnan(x) ? x : static_cast<float>((x > 0) - (x < 0)); });
  if (op.is<Ceiling>()) return unary([](float x) { return std::ceil(x); });
  if (op.is<Floor>()) return unary([](float x) { return std::floor(x); });
  if (op.is<Acos>()) return unary([](float x) { return std::acos(x); });
  if (op.is<Acosh>()) return unary([](float x) { return std::acosh(x); });
  if (op.is<Asin>()) return unary([](float x) { return std::asin(x); });
  if (op.is<Asinh>()) return unary([](float x) { return std::asinh(x); });
  if (op.is<Atan>()) return unary([](float x) { return std::atan(x); });
  if (op.is<Atanh>()) return unary([](float x) { return std::atanh(x); });
  if (op.is<Cos>()) return unary([](float x) { return std::cos(x); });
  if (op.is<Cosh>()) return unary([](float x) { return std::cosh(x); });
  if (op.is<Erf>()) return unary([](float x) { return std::erf(x); });
  if (op.is<Exp>()) return unary([](float x) { return std::exp(x); });
  if (op.is<Log>()) return unary([](float x) { return std::log(x); });
  if (op.is<Sin>()) return unary([](float x) { return std::sin(x); });
  if (op.is<Sinh>()) return unary([](float x) { return std::sinh(x); });
  if (op.is<Sqrt>()) return unary([](float x) { return std::sqrt(x); });
  if (op.is<Tan>()) return unary([](float x) { return std::tan(x); });
  if (op.is<IsNaN>()) return unary([](float x) { return std::isnan(x) ? 1.f : 0.f; });
  if (const auto* r = op.as<Round>())
    return r->mode == RoundMode::half_to_even ? unary([](float x) { return std::nearbyintf(x); })
                                              : unary([](float x) { return std::round(x); });
  return {};
}

FloatFunction activation(const Op& op, const std::function<const Tensor*(std::size_t)>& constant) {
  const auto scalar = [&](std::size_t i) -> std::optional<float> {
    const auto* t = constant(i);
    return t && t->size() == 1 ? std::optional<float>(to_floats(*t)[0]) : std::nullopt;
  };
  if (op.is<Relu>()) return unary([](float x) { return x < 0 ? 0 : x; });
  if (op.is<Sigmoid>()) return unary(sigmoid);
  if (op.is<Tanh>()) return unary([](float x) { return std::tanh(x); });
  if (op.is<HSwish>()) return unary([](float x) { return x * clamp(x + 3, 0, 6) / 6; });
  if (op.is<HSigmoid>()) return unary([](float x) { return clamp(x + 3, 0, 6) / 6; });
  if (op.is<Mish>()) return unary([](float x) { return x * std::tanh(softplus(x)); });
  if (op.is<SoftPlus>()) return unary(softplus);
  if (op.is<SoftSign>()) return unary([](float x) { return x / (1 + std::fabs(x)); });
  if (const auto* e = op.as<Elu>())
    return unary([a = static_cast<float>(e->alpha)](float x) { return x < 0 ? a * std::expm1(x) : x; });
  if (const auto* c = op.as<Clamp>())
    return unary([low = static_cast<float>(c->min), high = static_cast<float>(c->max)](float x) {
      return clamp(x, low, high);
    });
  if (const auto* g = op.as<Gelu>()) {
    if (g->approximation_mode == GeluMode::erf)
      return unary([](float x) { return x * 0.5f * std::erfc(-x * 0.707106781186547524f); });
    return unary([](float x) {
      return 0.5f * x * (1 + std::tanh(0.797884560802865356f * (x + 0.044715f * x * x * x)));
    });
  }
  if (op.is<Swish>()) {
    const auto beta = constant(1) ? scalar(1) : std::optional<float>(1.f);
    if (beta) return unary([b = *beta](float x) { return x / (1 + std::exp(-b * x)); });
  }
  if (op.is<HardSigmoid>() && scalar(1) && scalar(2))
    return unary([a = *scalar(1), b = *scalar(2)](float x) { return clamp(a * x + b, 0, 1); });
  if (op.is<Selu>() && scalar(1) && scalar(2))
    return unary([a = *scalar(1), l = *scalar(2)](float x) { return l * (x > 0 ? x : a * std::expm1(x)); });
  return {};
}

FloatFunction binary_math(const Op& op) {
  if (op.is<Add>()) return binary([](float a, float b) { return a + b; });
  if (op.is<Subtract>()) return binary([](float a, float b) { return a - b; });
  if (op.is<Multiply>()) return binary([](float a, float b) { return a * b; });
  if (op.is<Divide>()) return binary([](float a, float b) { return a / b; });
  if (op.is<Maximum>()) return binary([](float a, float b) { return std::isnan(a) || a > b ? a : b; });
  if (op.is<Minimum>()) return binary([](float a, float b) { return std::isnan(a) || a < b ? a : b; });
  if (op.is<Power>())
    return binary([](float a, float b) {
      return b == 2 ? a * a : b == 0.5f ? std::sqrt(a) : std::pow(a, b);
    });
  if (op.is<Mod>()) return binary([](float a, float b) { return std::fmod(a, b); });
  if (op.is<FloorMod>())
    return binary(
        [](float a, float b) { return static_cast<float>(scalar::floored_mod(double(a), double(b))); });
  if (op.is<SquaredDifference>()) return binary([](float a, float b) { return (a - b) * (a - b); });
  if (op.is<PRelu>()) return binary([](float x, float slope) { return x < 0 ? x * slope : x; });
  if (op.is<Equal>()) return binary([](float a, float b) { return a == b ? 1.f : 0.f; });
  if (op.is<NotEqual>()) return binary([](float a, float b) { return a != b ? 1.f : 0.f; });
  if (op.is<Less>()) return binary([](float a, float b) { return a < b ? 1.f : 0.f; });
  if (op.is<LessEqual>()) return binary([](float a, float b) { return a <= b ? 1.f : 0.f; });
  if (op.is<Greater>()) return binary([](float a, float b) { return a > b ? 1.f : 0.f; });
  if (op.is<GreaterEqual>()) return binary([](float a, float b) { return a >= b ? 1.f : 0.f; });
  return {};
}

}  // namespace

FloatFunction float_function(const Op& op, const std::function<const Tensor*(std::size_t)>& constant) {
  if (auto f = unary_math(op)) return f;
  if (auto f = activation(op, constant)) return f;
  if (auto f = binary_math(op)) return f;
  if (const auto* q = op.as<FakeQuantize>())
    return [steps = static_cast<float>(q->levels - 1)](const float* const* in, float* out, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
        out[i] = fake_quantize(in[0][i], in[1][i], in[2][i], in[3][i], in[4][i], steps);
    };
  return {};
}

IntFunction int_function(const Op& op) {
  if (op.is<Add>()) return int_binary(scalar::Add::integer);
  if (op.is<Subtract>()) return int_binary(scalar::Subtract::integer);
  if (op.is<Multiply>()) return int_binary(scalar::Multiply::integer);
  if (const auto* d = op.as<Divide>())
    return d->m_pythondiv ? int_binary(scalar::floored_div) : int_binary(scalar::truncated_div);
  if (op.is<Maximum>()) return int_binary(scalar::Maximum::integer);
  if (op.is<Minimum>()) return int_binary(scalar::Minimum::integer);
  if (op.is<Power>()) return int_binary(scalar::Power::integer);
  if (op.is<Mod>()) return int_binary(scalar::Mod::integer);
  if (op.is<FloorMod>()) return int_binary(scalar::FloorMod::integer);
  if (op.is<Equal>()) return int_binary(scalar::Equal::integer);
  if (op.is<NotEqual>()) return int_binary(scalar::NotEqual::integer);
  if (op.is<Less>()) return int_binary(scalar::Less::integer);
  if (op.is<LessEqual>()) return int_binary(scalar::LessEqual::integer);
  if (op.is<Greater>()) return int_binary(scalar::Greater::integer);
  if (op.is<GreaterEqual>()) return int_binary(scalar::GreaterEqual::integer);
  if (op.is<LogicalAnd>()) return int_binary(scalar::LogicalAnd::integer);
  if (op.is<LogicalOr>()) return int_binary(scalar::LogicalOr::integer);
  if (op.is<LogicalXor>()) return int_binary(scalar::LogicalXor::integer);
  if (op.is<BitwiseAnd>()) return int_binary(scalar::BitwiseAnd::integer);
  if (op.is<BitwiseOr>()) return int_binary(scalar::BitwiseOr::integer);
  if (op.is<BitwiseXor>()) return int_binary(scalar::BitwiseXor::integer);
  if (op.is<LogicalNot>()) return int_unary(scalar::LogicalNot::integer);
  if (op.is<Negative>()) return int_unary(scalar::Negative::integer);
  if (op.is<Abs>()) return int_unary(scalar::Abs::integer);
  if (op.is<Relu>()) return int_unary(scalar::Relu::integer);
  return {};
}

std::pair<std::int64_t, std::int64_t> quantized_range(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return {0, 255};
    case ElementType::i8:
      return {-128, 127};
    case ElementType::u16:
      return {0, 65535};
    case ElementType::i16:
      return {-32768, 32767};
    default:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  }
}

}  // namespace lamina
