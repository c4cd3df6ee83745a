// Functions of f32 vectors, compiled once per instruction set (include inside Highway units only, after
// hwy/highway.h): relative error of a few units in the last place, NaN and infinities as the C library's.
#if defined(LAMINA_VECTOR_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_VECTOR_MATH_INL
#undef LAMINA_VECTOR_MATH_INL
#else
#define LAMINA_VECTOR_MATH_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace vector_math {

namespace hn = hwy::HWY_NAMESPACE;

/// x = n ln 2 + r with |r| <= ln 2 / 2 and the polynomial of e^r - 1.
template <class V>
struct ReducedExp {
  V part;   ///< e^r - 1
  V whole;  ///< n
};

template <class D, class V>
HWY_INLINE ReducedExp<V> reduced_exp(D d, V x) {
  const V whole = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  // ln 2 in two parts, the first exact in few bits.
  V r = hn::NegMulAdd(whole, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(whole, hn::Set(d, -2.12194440e-4f), r);
  // Least largest relative error (1.3e-8) of r + r^2 q(r) on the interval.
  V q = hn::MulAdd(r, hn::Set(d, 0.0013882516f), hn::Set(d, 0.0083665471f));
  q = hn::MulAdd(r, q, hn::Set(d, 0.0416672007f));
  q = hn::MulAdd(r, q, hn::Set(d, 0.1666654342f));
  q = hn::MulAdd(r, q, hn::Set(d, 0.4999999815f));
  return {hn::MulAdd(hn::Mul(r, r), q, r), whole};
}

/// 2^n for -126 <= n <= 127.
template <class D, class N>
HWY_INLINE auto power_of_two(D d, N n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

/// (1 + part) 2^whole for whole numbers of -160 to 140; 0 and infinity beyond f32's range.
template <class D, class V>
HWY_INLINE V scaled(D d, V part, V whole) {
  const hn::RebindToSigned<D> di;
  const auto n = hn::ConvertTo(di, whole), half = hn::ShiftRight<1>(n);
  const V scale = power_of_two(d, half), rest = power_of_two(d, hn::Sub(n, half));
  return hn::Mul(hn::MulAdd(part, scale, scale), rest);
}
/// 2^whole for whole numbers of -126 to 127.
template <class D, class V>
HWY_INLINE V whole_power(D d, V whole) {
  const hn::RebindToSigned<D> di;
  return power_of_two(d, hn::ConvertTo(di, whole));
}
#if HWY_TARGET == HWY_AVX3  // one instruction
HWY_INLINE hn::Vec512<float> scaled(hn::Full512<float> d, hn::Vec512<float> part, hn::Vec512<float> whole) {
  return {_mm512_scalef_ps(hn::Add(part, hn::Set(d, 1.0f)).raw, whole.raw)};
}
HWY_INLINE hn::Vec512<float> whole_power(hn::Full512<float> d, hn::Vec512<float> whole) {
  return {_mm512_scalef_ps(hn::Set(d, 1.0f).raw, whole.raw)};
}
#endif

/// The least number whose e^x is a normal number: 2^-126 is e^-87.3365447.
constexpr float kLeastExp = -87.33654f;

/// e^x; infinity beyond f32's range, 0 below its normal numbers: denormal ones would cost 25 times as much.
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  const V least = hn::Set(d, kLeastExp);
  // The limits stand first: on x86 the second operand is kept when it is NaN.
  const auto e = reduced_exp(d, hn::Min(hn::Set(d, 89.0f), hn::Max(least, x)));
  return hn::IfThenZeroElse(hn::Lt(x, least), scaled(d, e.part, e.whole));
}

/// e^x for x <= 0 or NaN, in fewer instructions.
template <class D, class V>
HWY_INLINE V exp_below(D d, V x) {
  const V least = hn::Set(d, kLeastExp);
  const auto e = reduced_exp(d, hn::Max(least, x));
  const V scale = whole_power(d, e.whole);
  return hn::IfThenZeroElse(hn::Lt(x, least), hn::MulAdd(e.part, scale, scale));
}

/// e^x - 1 without cancellation, for x <= 88.
template <class D, class V>
HWY_INLINE V expm1_of(D d, V x) {
  const auto e = reduced_exp(d, hn::Max(hn::Set(d, -25.0f), x));
  const V scale = whole_power(d, e.whole);
  return hn::MulAdd(e.part, scale, hn::Sub(scale, hn::Set(d, 1.0f)));
}

template <class D, class V>
HWY_INLINE V sigmoid_of(D d, V x) {
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

/// (e^2x - 1) / (e^2x + 1) of the absolute value.
template <class D, class V>
HWY_INLINE V tanh_of(D d, V x) {
  const auto a = hn::Abs(x);
  const auto e = expm1_of(d, hn::Min(hn::Set(d, 20.0f), hn::Add(a, a)));
  return hn::CopySignToAbs(hn::Div(e, hn::Add(e, hn::Set(d, 2.0f))), x);
}

}  // namespace vector_math
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
