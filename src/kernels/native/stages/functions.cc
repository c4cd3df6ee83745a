#include "kernels/native/stages/functions.h"

#include <cmath>

#include "ops/activation.h"
#include "ops/elementwise.h"

namespace lamina::stages {
namespace {

using Cheap = std::pair<Unary, double>;

std::optional<Cheap> light(const Op& op) {
  if (op.is<Abs>()) return Cheap{Unary::abs, 0.1};
  if (op.is<Negative>()) return Cheap{Unary::negative, 0.1};
  if (op.is<Sign>()) return Cheap{Unary::sign, 0.15};
  if (op.is<Ceiling>()) return Cheap{Unary::ceiling, 0.1};
  if (op.is<Floor>()) return Cheap{Unary::floor, 0.1};
  if (const auto* r = op.as<Round>())
    return Cheap{r->mode == RoundMode::half_to_even ? Unary::round_even : Unary::round_away, 0.15};
  if (op.is<Sqrt>()) return Cheap{Unary::sqrt, 0.3};
  if (op.is<Relu>()) return Cheap{Unary::relu, 0.1};
  if (op.is<HSwish>()) return Cheap{Unary::hswish, 0.2};
  if (op.is<HSigmoid>()) return Cheap{Unary::hsigmoid, 0.15};
  if (op.is<HardSigmoid>()) return Cheap{Unary::hard_sigmoid, 0.15};
  if (op.is<SoftSign>()) return Cheap{Unary::softsign, 0.3};
  if (op.is<Clamp>()) return Cheap{Unary::clamp, 0.1};
  return std::nullopt;
}

std::optional<Cheap> math(const Op& op) {
  if (op.is<Exp>()) return Cheap{Unary::exp, 0.25};
  if (op.is<Log>()) return Cheap{Unary::log, 0.65};
  if (op.is<Erf>()) return Cheap{Unary::erf, 0.4};
  if (op.is<Sin>()) return Cheap{Unary::sin, 0.6};
  if (op.is<Cos>()) return Cheap{Unary::cos, 0.6};
  if (op.is<Acos>()) return Cheap{Unary::acos, 1};
  if (op.is<Acosh>()) return Cheap{Unary::acosh, 3};
  if (op.is<Asin>()) return Cheap{Unary::asin, 1};
  if (op.is<Asinh>()) return Cheap{Unary::asinh, 3};
  if (op.is<Atan>()) return Cheap{Unary::atan, 0.6};
  if (op.is<Atanh>()) return Cheap{Unary::atanh, 3};
  if (op.is<Sinh>()) return Cheap{Unary::sinh, 1.2};
  if (op.is<Cosh>()) return Cheap{Unary::cosh, 0.6};
  if (op.is<Sigmoid>()) return Cheap{Unary::sigmoid, 0.6};
  if (op.is<Tanh>()) return Cheap{Unary::tanh, 0.45};
  if (op.is<Mish>()) return Cheap{Unary::mish, 0.6};
  if (op.is<SoftPlus>()) return Cheap{Unary::softplus, 0.8};
  if (const auto* g = op.as<Gelu>())
    return Cheap{g->approximation_mode == GeluMode::erf ? Unary::gelu_erf : Unary::gelu_tanh, 0.45};
  if (op.is<Elu>()) return Cheap{Unary::elu, 0.4};
  if (op.is<Selu>()) return Cheap{Unary::selu, 0.4};
  if (op.is<Swish>()) return Cheap{Unary::swish, 0.6};
  return std::nullopt;
}

template <class F>
const void* address(F* f) {
  return reinterpret_cast<const void*>(f);
}

template <class F>
bool find_unary(const Op& op, Functions& out) {
  if (!op.is<lamina::Unary<F>>()) return false;
  out.real1 = address(F::real);
  out.integer1 = address<std::int64_t(std::int64_t)>(F::integer);
  out.unsigned1 = address<std::uint64_t(std::uint64_t)>(F::integer);
  return true;
}
template <class F>
bool find_binary(const Op& op, Functions& out) {
  if (!op.is<lamina::Binary<F>>()) return false;
  out.real2 = address(F::real);
  out.integer2 = address<std::int64_t(std::int64_t, std::int64_t)>(F::integer);
  out.unsigned2 = address<std::uint64_t(std::uint64_t, std::uint64_t)>(F::integer);
  return true;
}

template <class... F>
bool find_unaries(const Op& op, Functions& out) {
  return (find_unary<F>(op, out) || ...);
}
template <class... F>
bool find_binaries(const Op& op, Functions& out) {
  return (find_binary<F>(op, out) || ...);
}

double divide(double a, double b) { return a / b; }
double is_nan(double x) { return std::isnan(x) ? 1 : 0; }
double is_finite(double x) { return std::isfinite(x) ? 1 : 0; }
double is_infinite(double x) { return std::isinf(x) ? 1 : 0; }
double is_positive_infinite(double x) { return std::isinf(x) && x > 0 ? 1 : 0; }
double is_negative_infinite(double x) { return std::isinf(x) && x < 0 ? 1 : 0; }
double never(double) { return 0; }

bool find_with_parameters(const Op& op, Functions& out) {
  if (const auto* d = op.as<Divide>()) {
    out.real2 = address(divide);
    out.integer2 = address(integer_quotient<std::int64_t>(d->m_pythondiv));
    out.unsigned2 = address(integer_quotient<std::uint64_t>(d->m_pythondiv));
  } else if (const auto* r = op.as<Round>()) {
    out.real1 =
        address(r->mode == RoundMode::half_to_even ? scalar::round_half_even : scalar::round_half_away);
  } else if (op.is<Elu>()) {
    out.real2 = address(scalar::elu);
  } else if (op.is<Selu>()) {
    out.real3 = address(scalar::selu);
  } else if (op.is<HardSigmoid>()) {
    out.real3 = address(scalar::hard_sigmoid);
  } else if (op.is<Swish>()) {
    out.real2 = address(scalar::swish);
  } else if (const auto* g = op.as<Gelu>()) {
    out.real1 = address(g->approximation_mode == GeluMode::erf ? scalar::gelu_erf : scalar::gelu_tanh);
  } else if (op.is<Clamp>()) {
    out.real3 = address(scalar::clamp);
  } else if (op.is<PRelu>()) {
    out.real2 = address<double(double, double)>(scalar::prelu);
    out.integer2 = address(scalar::prelu<std::int64_t>);
    out.unsigned2 = address(scalar::prelu<std::uint64_t>);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<std::pair<Unary, double>> float_unary(const Op& op) {
  if (auto found = light(op)) return found;
  return math(op);
}

std::optional<std::pair<Binary, double>> float_binary(const Op& op) {
  using Found = std::pair<Binary, double>;
  if (op.is<Add>()) return Found{Binary::add, 0.1};
  if (op.is<Subtract>()) return Found{Binary::subtract, 0.1};
  if (op.is<Multiply>()) return Found{Binary::multiply, 0.1};
  if (op.is<Divide>()) return Found{Binary::divide, 0.25};
  if (op.is<Maximum>()) return Found{Binary::maximum, 0.15};
  if (op.is<Minimum>()) return Found{Binary::minimum, 0.15};
  if (op.is<SquaredDifference>()) return Found{Binary::squared_difference, 0.1};
  if (op.is<PRelu>()) return Found{Binary::prelu, 0.1};
  if (op.is<Power>()) return Found{Binary::power, 2.5};
  return std::nullopt;
}

std::optional<Compare> comparison(const Op& op) {
  if (op.is<Equal>()) return Compare::equal;
  if (op.is<NotEqual>()) return Compare::not_equal;
  if (op.is<Less>()) return Compare::less;
  if (op.is<LessEqual>()) return Compare::less_equal;
  if (op.is<Greater>()) return Compare::greater;
  if (op.is<GreaterEqual>()) return Compare::greater_equal;
  return std::nullopt;
}

std::optional<Test> test_of(const Op& op) {
  if (op.is<IsNaN>()) return Test::nan;
  if (op.is<IsFinite>()) return Test::finite;
  if (const auto* i = op.as<IsInf>())
    return i->detect_negative   ? (i->detect_positive ? Test::infinite : Test::negative_infinite)
           : i->detect_positive ? Test::positive_infinite
                                : Test::none;
  return std::nullopt;
}

std::optional<Integer> integer_operator(const Op& op) {
  if (op.is<Negative>()) return Integer::negative;
  if (op.is<Abs>()) return Integer::abs;
  if (op.is<Sign>()) return Integer::sign;
  if (op.is<Relu>()) return Integer::relu;
  if (op.is<Ceiling>() || op.is<Floor>()) return Integer::copy;
  if (op.is<BitwiseNot>()) return Integer::bit_not;
  if (op.is<LogicalNot>()) return Integer::logical_not;
  if (op.is<Add>()) return Integer::add;
  if (op.is<Subtract>()) return Integer::subtract;
  if (op.is<Multiply>()) return Integer::multiply;
  if (op.is<Maximum>()) return Integer::maximum;
  if (op.is<Minimum>()) return Integer::minimum;
  if (op.is<SquaredDifference>()) return Integer::squared_difference;
  if (op.is<BitwiseAnd>()) return Integer::bit_and;
  if (op.is<BitwiseOr>()) return Integer::bit_or;
  if (op.is<BitwiseXor>()) return Integer::bit_xor;
  if (op.is<LogicalAnd>()) return Integer::logical_and;
  if (op.is<LogicalOr>()) return Integer::logical_or;
  if (op.is<LogicalXor>()) return Integer::logical_xor;
  return std::nullopt;
}

std::vector<double> parameters_of(const Op& op) {
  if (const auto* c = op.as<Clamp>()) return {c->min, c->max};
  if (const auto* e = op.as<Elu>()) return {e->alpha};
  return {};
}

std::optional<Functions> real_functions(const Op& op) {
  namespace s = scalar;
  Functions out;
  const bool found =
      find_unaries<s::Abs, s::Negative, s::Sign, s::Ceiling, s::Floor, s::Acos, s::Acosh, s::Asin, s::Asinh,
                   s::Atan, s::Atanh, s::Cos, s::Cosh, s::Erf, s::Exp, s::Log, s::Sin, s::Sinh, s::Sqrt,
                   s::Tan, s::LogicalNot, s::BitwiseNot, s::Relu, s::Sigmoid, s::Tanh, s::HSwish, s::HSigmoid,
                   s::Mish, s::SoftPlus, s::SoftSign>(op, out) ||
      find_binaries<s::Add, s::Subtract, s::Multiply, s::Maximum, s::Minimum, s::Power, s::Mod, s::FloorMod,
                    s::SquaredDifference, s::LogicalAnd, s::LogicalOr, s::LogicalXor, s::BitwiseAnd,
                    s::BitwiseOr, s::BitwiseXor, s::BitwiseLeftShift, s::BitwiseRightShift, s::Equal,
                    s::NotEqual, s::Less, s::LessEqual, s::Greater, s::GreaterEqual>(op, out) ||
      find_with_parameters(op, out);
  return found ? std::optional(out) : std::nullopt;
}

const void* test_function(Test test) {
  switch (test) {
    case Test::nan:
      return address(is_nan);
    case Test::finite:
      return address(is_finite);
    case Test::infinite:
      return address(is_infinite);
    case Test::positive_infinite:
      return address(is_positive_infinite);
    case Test::negative_infinite:
      return address(is_negative_infinite);
    default:
      return address(never);
  }
}

}  // namespace lamina::stages
