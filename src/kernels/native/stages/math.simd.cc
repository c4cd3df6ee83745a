/// f32 loops with exp, log and their kin; see loops.h.
#include <cmath>

#include "kernels/native/simd/per_isa.h"
#include "kernels/native/stages/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/math.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/native/simd/vector_math-inl.h"
#include "kernels/native/stages/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using namespace stage_loops;
namespace vm = vector_math;
using stages::Binary;
using stages::FloatLoops;
using stages::Unary;
using M = hn::Mask<D>;

constexpr float kLn2 = 0.69314718f;

/// x = 2^exponent * (1 + fraction) with 1 + fraction in [sqrt(1/2), sqrt(2)), for positive finite x.
struct Split {
  V exponent, fraction;
};
HWY_INLINE Split split(V x) {
  const D d;
  const I di;
  const auto tiny = hn::Lt(x, set(0x1p-126f));
  const auto bits = hn::BitCast(di, hn::IfThenElse(tiny, hn::Mul(x, set(0x1p23f)), x));
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const V exponent = hn::Sub(hn::ConvertTo(d, e), hn::IfThenElseZero(tiny, set(23)));
  return {exponent, hn::Sub(m, set(1))};
}

/// ln(1 + f) - f for such a fraction: f^3 p(f) - f^2 / 2, least largest relative error of the whole 6e-9.
HWY_INLINE V log_rest(V f) {
  V p = hn::MulAdd(f, set(-0.0763442984f), set(0.1276155034f));
  p = hn::MulAdd(f, p, set(-0.1316019507f));
  p = hn::MulAdd(f, p, set(0.1420176247f));
  p = hn::MulAdd(f, p, set(-0.1662335648f));
  p = hn::MulAdd(f, p, set(0.2000122667f));
  p = hn::MulAdd(f, p, set(-0.2500082106f));
  p = hn::MulAdd(f, p, set(0.3333333171f));
  const V square = hn::Mul(f, f);
  return hn::MulAdd(hn::Mul(square, f), p, hn::Mul(square, set(-0.5f)));
}

HWY_INLINE V positive_log(V x) {
  const auto s = split(x);
  const V low = hn::MulAdd(s.exponent, set(-2.12194440e-4f), log_rest(s.fraction));
  return hn::MulAdd(s.exponent, set(0.693359375f), hn::Add(low, s.fraction));
}

HWY_INLINE V log_of(V x) {
  V y = hn::IfThenElse(hn::Lt(x, set(kInfinity)), positive_log(x), x);  // infinity and NaN stay
  y = hn::IfThenElse(hn::Eq(x, set(0)), set(-kInfinity), y);
  return hn::IfThenElse(hn::Lt(x, set(0)), set(__builtin_nanf("")), y);
}

/// ln(1 + t) for t in [0, 1]: t p(t), least largest relative error 5e-9.
HWY_INLINE V log1p_of(V t) {
  V p = hn::MulAdd(t, set(-0.00324398082f), set(0.0198512624f));
  p = hn::MulAdd(t, p, set(-0.0569591587f));
  p = hn::MulAdd(t, p, set(0.106036168f));
  p = hn::MulAdd(t, p, set(-0.153055701f));
  p = hn::MulAdd(t, p, set(0.196759315f));
  p = hn::MulAdd(t, p, set(-0.249541321f));
  p = hn::MulAdd(t, p, set(0.333299623f));
  p = hn::MulAdd(t, p, set(-0.499999024f));
  p = hn::MulAdd(t, p, set(0.999999995f));
  return hn::Mul(t, p);
}

HWY_INLINE V exp_of(V x) { return vm::exp_of(D(), x); }
HWY_INLINE V expm1_of(V x) { return vm::expm1_of(D(), x); }

HWY_INLINE V softplus_of(V x) { return hn::Add(hn::Max(set(0), x), log1p_of(exp_of(hn::Neg(hn::Abs(x))))); }

/// tanh(ln(1 + e)) = w / (w + 2) with w = e (e + 2).
HWY_INLINE V mish_of(V x) {
  const V e = exp_of(hn::Min(set(20), x));
  const V w = hn::Mul(e, hn::Add(e, set(2)));
  return hn::Mul(x, hn::Div(w, hn::Add(w, set(2))));
}

HWY_INLINE V swish_of(V x, V beta) { return hn::Div(x, hn::Add(set(1), exp_of(hn::Neg(hn::Mul(beta, x))))); }

/// x p(x^2) / q(x^2) below 4, least largest relative error 2.5e-8; 1 beyond.
HWY_INLINE V erf_of(V x) {
  const V a = hn::Min(set(4), hn::Abs(x)), t = hn::Mul(a, a);
  V p = hn::MulAdd(t, set(1.98664826e-6f), set(2.84555426e-4f));
  p = hn::MulAdd(t, p, set(3.88333946e-3f));
  p = hn::MulAdd(t, p, set(0.0531017534f));
  p = hn::MulAdd(t, p, set(0.193546449f));
  p = hn::MulAdd(t, p, set(1.12837914f));
  V q = hn::MulAdd(t, set(3.74182078e-5f), set(1.18554935e-3f));
  q = hn::MulAdd(t, q, set(0.0152072708f));
  q = hn::MulAdd(t, q, set(0.11535041f));
  q = hn::MulAdd(t, q, set(0.504858632f));
  q = hn::MulAdd(t, q, set(1));
  const V y = hn::Min(set(1), hn::Div(hn::Mul(a, p), q));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Ge(a, set(4)), set(1), y), x);
}

HWY_INLINE V gelu_erf_of(V x) {
  return hn::Mul(hn::Mul(x, set(0.5f)), hn::Add(set(1), erf_of(hn::Mul(x, set(0.70710678f)))));
}
/// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)).
HWY_INLINE V gelu_tanh_of(V x) {
  const V u = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), set(0.044715f), x);
  return hn::Div(x, hn::Add(set(1), exp_of(hn::Mul(u, set(-2 * 0.79788456f)))));
}

/// e^|x| / 2, which may be finite where e^|x| is not.
HWY_INLINE V half_exp(V x) { return exp_of(hn::Sub(hn::Abs(x), set(kLn2))); }
HWY_INLINE V cosh_of(V x) {
  const V e = half_exp(x);
  return hn::Add(e, hn::Div(set(0.25f), e));
}
HWY_INLINE V sinh_of(V x) {
  const V a = hn::Abs(x), e = expm1_of(hn::Min(set(9), a));
  const V small = hn::Mul(set(0.5f), hn::Add(e, hn::Div(e, hn::Add(e, set(1)))));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Gt(a, set(9)), half_exp(x), small), x);
}

/// The C library's function for lanes that the fast one does not cover.
HWY_INLINE V patched(V x, V fast, M covered, double (*slow)(double)) {
  const D d;
  if (hn::AllTrue(d, covered)) return fast;
  HWY_ALIGN float from[hn::MaxLanes(d)], to[hn::MaxLanes(d)], bad[hn::MaxLanes(d)];
  hn::Store(x, d, from);
  hn::Store(fast, d, to);
  hn::Store(hn::IfThenElseZero(hn::Not(covered), set(1)), d, bad);
  for (std::int64_t i = 0; i < lanes(); ++i)
    if (bad[i] != 0) to[i] = static_cast<float>(slow(static_cast<double>(from[i])));
  return hn::Load(d, to);
}

HWY_INLINE M within(V x, float limit) { return hn::Le(hn::Abs(x), set(limit)); }

/// 2^y for y = whole + part; infinity beyond f32's range, 0 below its normal numbers.
HWY_INLINE V power_of_two(V whole, V part) {
  const auto e = vm::reduced_exp(D(), hn::Mul(part, set(kLn2)));
  const V n = hn::Add(e.whole, hn::Min(set(138), hn::Max(set(-127), whole)));
  return hn::IfThenZeroElse(hn::Lt(n, set(-126)), vm::scaled(D(), e.part, n));
}

/// |a|^b = 2^(b log2 |a|), the logarithm and the product in two parts each.
HWY_INLINE V power_of_size(V size, V b) {
  const auto s = split(size);
  const V log2 = hn::Mul(hn::Add(s.fraction, log_rest(s.fraction)), set(1.44269504f));
  const V high = hn::Add(s.exponent, log2), low = hn::Add(hn::Sub(s.exponent, high), log2);
  const V y = hn::Mul(b, high), error = hn::MulAdd(b, low, hn::MulSub(b, high, y));
  const V whole = hn::Round(y);
  return power_of_two(whole, hn::Add(hn::Sub(y, whole), error));
}

HWY_INLINE V power_of(V a, V b) {
  const D d;
  const V size = hn::Abs(a);
  V y = power_of_size(size, b);
  const auto zero = hn::Eq(size, set(0));
  const V of_zero =
      hn::IfThenElse(hn::Gt(b, set(0)), set(0), hn::IfThenElse(hn::Lt(b, set(0)), set(kInfinity), set(1)));
  y = hn::IfThenElse(zero, of_zero, y);
  // Negative bases: odd exponents give the sign, fractions have no value.
  const auto whole = hn::Eq(hn::Round(b), b);
  const auto odd = hn::Eq(hn::Sub(b, hn::Mul(set(2), hn::Floor(hn::Mul(b, set(0.5f))))), set(1));
  const auto sign = hn::RebindMask(d, hn::Lt(hn::BitCast(I(), a), hn::Zero(I())));
  y = hn::IfThenElse(hn::And(sign, hn::And(whole, odd)), hn::Neg(y), y);
  y = hn::IfThenElse(hn::And(hn::Lt(a, set(0)), hn::Not(whole)), set(__builtin_nanf("")), y);
  const auto covered =
      hn::And(hn::Or(zero, hn::And(hn::Ge(size, set(0x1p-126f)), hn::Lt(size, set(kInfinity)))),
              hn::Le(hn::Abs(b), set(1e9f)));
  if (hn::AllTrue(d, covered)) return y;
  HWY_ALIGN float base[hn::MaxLanes(d)], exponent[hn::MaxLanes(d)], to[hn::MaxLanes(d)];
  hn::Store(a, d, base);
  hn::Store(b, d, exponent);
  for (std::int64_t i = 0; i < lanes(); ++i)
    to[i] = static_cast<float>(::pow(double{base[i]}, double{exponent[i]}));
  return hn::Load(d, to);
}

HWY_INLINE float parameter(const LoopArgs& a, int k) { return *static_cast<const float*>(a.in[k]); }

#define LAMINA_UNARY(NAME, EXPRESSION)                       \
  void NAME##_loop(const LoopArgs& a) {                      \
    for_vectors(a, [](V x) HWY_ATTR { return EXPRESSION; }); \
  }

LAMINA_UNARY(exp, exp_of(x))
LAMINA_UNARY(log, log_of(x))
LAMINA_UNARY(erf, erf_of(x))
LAMINA_UNARY(sin, patched(x, hn::Sin(D(), x), within(x, 30000), ::sin))
LAMINA_UNARY(cos, patched(x, hn::Cos(D(), x), within(x, 30000), ::cos))
LAMINA_UNARY(acos, patched(x, hn::Acos(D(), x), within(x, 1), ::acos))
LAMINA_UNARY(asin, patched(x, hn::Asin(D(), x), within(x, 1), ::asin))
LAMINA_UNARY(atan, patched(x, hn::Atan(D(), x), within(x, 1e6f), ::atan))
LAMINA_UNARY(acosh, patched(x, hn::Acosh(D(), x), hn::And(hn::Ge(x, set(1)), within(x, 1e6f)), ::acosh))
LAMINA_UNARY(asinh, patched(x, hn::Asinh(D(), x), within(x, 1e6f), ::asinh))
LAMINA_UNARY(atanh, patched(x, hn::Atanh(D(), x), within(x, 0.9999f), ::atanh))
LAMINA_UNARY(sinh, sinh_of(x))
LAMINA_UNARY(cosh, cosh_of(x))
LAMINA_UNARY(sigmoid, vm::sigmoid_of(D(), x))
LAMINA_UNARY(tanh, vm::tanh_of(D(), x))
LAMINA_UNARY(mish, mish_of(x))
LAMINA_UNARY(softplus, softplus_of(x))
LAMINA_UNARY(gelu_erf, gelu_erf_of(x))
LAMINA_UNARY(gelu_tanh, gelu_tanh_of(x))
#undef LAMINA_UNARY

void elu_loop(const LoopArgs& a) {
  const V alpha = set(parameter(a, 1));
  for_vectors(a, [&](V x) HWY_ATTR {
    return hn::IfThenElse(hn::Lt(x, set(0)), hn::Mul(alpha, expm1_of(hn::Min(set(0), x))), x);
  });
}
void selu_loop(const LoopArgs& a) {
  const V alpha = set(parameter(a, 1)), lambda = set(parameter(a, 2));
  for_vectors(a, [&](V x) HWY_ATTR {
    return hn::Mul(lambda,
                   hn::IfThenElse(hn::Gt(x, set(0)), x, hn::Mul(alpha, expm1_of(hn::Min(set(0), x)))));
  });
}
void swish_loop(const LoopArgs& a) {
  const V beta = set(parameter(a, 1));
  for_vectors(a, [&](V x) HWY_ATTR { return swish_of(x, beta); });
}

void power_loop(const LoopArgs& args) {
  auto* out = static_cast<float*>(args.out);
  for_operands(
      args, [](V a, V b) HWY_ATTR { return power_of(a, b); },
      [out](V v, std::int64_t i, std::int64_t n) HWY_ATTR { store_some(v, D(), out + i, n); });
}

}  // namespace

void fill_math_loops(FloatLoops& t) {
#define LAMINA_UNARY(NAME) t.unary[static_cast<int>(Unary::NAME)] = NAME##_loop
  LAMINA_UNARY(exp);
  LAMINA_UNARY(log);
  LAMINA_UNARY(erf);
  LAMINA_UNARY(sin);
  LAMINA_UNARY(cos);
  LAMINA_UNARY(acos);
  LAMINA_UNARY(asin);
  LAMINA_UNARY(atan);
  LAMINA_UNARY(acosh);
  LAMINA_UNARY(asinh);
  LAMINA_UNARY(atanh);
  LAMINA_UNARY(sinh);
  LAMINA_UNARY(cosh);
  LAMINA_UNARY(sigmoid);
  LAMINA_UNARY(tanh);
  LAMINA_UNARY(mish);
  LAMINA_UNARY(softplus);
  LAMINA_UNARY(gelu_erf);
  LAMINA_UNARY(gelu_tanh);
  LAMINA_UNARY(elu);
  LAMINA_UNARY(selu);
  LAMINA_UNARY(swish);
#undef LAMINA_UNARY
  t.binary[static_cast<int>(Binary::power)] = power_loop;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kFillMathLoops = LAMINA_PER_ISA(fill_math_loops);

namespace stages {

void fill_math_loops(FloatLoops& table);
void fill_math_loops(FloatLoops& table) { kFillMathLoops.best()(table); }

}  // namespace stages
}  // namespace lamina
#endif
