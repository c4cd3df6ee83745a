/// Conversions between f32 and other types in vector code; see loops.h.
#include "kernels/native/simd/per_isa.h"
#include "kernels/native/stages/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/convert.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/stages/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using namespace stage_loops;
using stages::ConvertLoops;

template <class T>
using Narrow = hn::Rebind<T, D>;

/// NaN becomes 0, the rest stays within the bounds.
HWY_INLINE V bounded(V x, float low, float high) {
  const V number = hn::IfThenElseZero(hn::Eq(x, x), x);
  return hn::Min(set(high), hn::Max(set(low), number));
}

template <class T>
HWY_INLINE auto narrowed(V x, float low, float high) {
  return hn::DemoteTo(Narrow<T>(), hn::ConvertTo(I(), bounded(x, low, high)));
}

HWY_INLINE auto to_i32(V x) {
  const V number = hn::IfThenElseZero(hn::Eq(x, x), x);
  const auto over = hn::RebindMask(I(), hn::Ge(number, set(0x1p31f)));
  return hn::IfThenElse(over, hn::Set(I(), 0x7fffffff), hn::ConvertTo(I(), number));
}

HWY_INLINE auto to_bool(V x) { return bytes_of(hn::Not(hn::Eq(x, set(0)))); }

HWY_INLINE auto to_f16(V x) {
#if HWY_TARGET <= HWY_AVX2
  return hn::BitCast(Narrow<std::uint16_t>(), hn::DemoteTo(Narrow<hwy::float16_t>(), x));
#else
  const I di;
  const V r = nearest_f16(x), a = hn::Abs(r);
  const auto bits = hn::BitCast(di, a);
  const auto normal = hn::ShiftRight<13>(hn::Sub(bits, hn::Set(di, 0x38000000)));
  const auto small = hn::Sub(hn::BitCast(di, hn::Add(a, set(0.5f))), hn::Set(di, 0x3f000000));
  auto half = hn::IfThenElse(hn::RebindMask(di, hn::Lt(a, set(0x1p-14f))), small, normal);
  half = hn::IfThenElse(hn::RebindMask(di, hn::Eq(a, set(kInfinity))), hn::Set(di, 0x7c00), half);
  half = hn::IfThenElse(hn::RebindMask(di, hn::Eq(a, a)), half, hn::Set(di, 0x7e00));
  const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(di, x)), hn::Set(di, 0x8000));
  return hn::DemoteTo(Narrow<std::uint16_t>(), hn::Or(half, sign));
#endif
}

HWY_INLINE auto to_bf16(V x) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  // A NaN whose upper half has no bit of the mantissa must stay one.
  const auto nan = hn::RebindMask(du, hn::IsNaN(x));
  const auto kept = hn::IfThenElse(nan, hn::Or(bits, hn::Set(du, 0x400000)), up);
  return hn::TruncateTo(Narrow<std::uint16_t>(), hn::ShiftRight<16>(kept));
}

HWY_INLINE V from_f16(hn::Vec<Narrow<std::uint16_t>> h) {
#if HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(D(), hn::BitCast(Narrow<hwy::float16_t>(), h));
#else
  const D d;
  const I di;
  const auto bits = hn::PromoteTo(di, h);
  const auto exponent = hn::And(hn::ShiftRight<10>(bits), hn::Set(di, 31));
  const auto mantissa = hn::And(bits, hn::Set(di, 0x3ff));
  const auto wide = hn::ShiftLeft<13>(mantissa);
  const V small = hn::Mul(hn::ConvertTo(d, mantissa), set(0x1p-24f));
  const auto normal = hn::Or(hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(di, 112))), wide);
  const auto special = hn::Or(hn::Set(di, 0x7f800000), wide);
  auto r = hn::IfThenElse(hn::Eq(exponent, hn::Set(di, 31)), special, normal);
  r = hn::IfThenElse(hn::Eq(exponent, hn::Zero(di)), hn::BitCast(di, small), r);
  return hn::BitCast(d, hn::Or(r, hn::ShiftLeft<16>(hn::And(bits, hn::Set(di, 0x8000)))));
#endif
}

HWY_INLINE V from_bf16(hn::Vec<Narrow<std::uint16_t>> h) {
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(I(), h)));
}

/// out[i] = f(x[i]) as T.
template <class T, class F>
HWY_INLINE void narrow(const LoopArgs& a, const F& f) {
  const D d;
  const Narrow<T> to;
  const auto* x = static_cast<const float*>(a.in[0]);
  auto* out = static_cast<T*>(a.out);
  const std::int64_t n = lanes();
  std::int64_t i = 0;
  for (; i + n <= a.count; i += n) hn::StoreU(f(hn::LoadU(d, x + i)), to, out + i);
  if (i == a.count) return;
  HWY_ALIGN T buffer[64];
  hn::StoreU(f(load_some(D(), x + i, a.count - i)), to, buffer);
  for (std::int64_t k = 0; i < a.count; ++i, ++k) out[i] = buffer[k];
}

/// out[i] = f(x[i]) from T.
template <class T, class F>
HWY_INLINE void widen(const LoopArgs& a, const F& f) {
  const D d;
  const Narrow<T> from;
  const auto* x = static_cast<const T*>(a.in[0]);
  auto* out = static_cast<float*>(a.out);
  const std::int64_t n = lanes();
  std::int64_t i = 0;
  for (; i + n <= a.count; i += n) hn::StoreU(f(hn::LoadU(from, x + i)), d, out + i);
  if (i == a.count) return;
  HWY_ALIGN T buffer[64] = {};
  for (std::int64_t k = 0; i + k < a.count; ++k) buffer[k] = x[i + k];
  store_some(f(hn::LoadU(from, buffer)), D(), out + i, a.count - i);
}

void f32_to_f16(const LoopArgs& a) {
  narrow<std::uint16_t>(a, [](V x) HWY_ATTR { return to_f16(x); });
}
void f32_to_bf16(const LoopArgs& a) {
  narrow<std::uint16_t>(a, [](V x) HWY_ATTR { return to_bf16(x); });
}
void f32_to_i32(const LoopArgs& a) {
  narrow<std::int32_t>(a, [](V x) HWY_ATTR { return to_i32(x); });
}
void f32_to_i16(const LoopArgs& a) {
  narrow<std::int16_t>(a, [](V x) HWY_ATTR { return narrowed<std::int16_t>(x, -32768, 32767); });
}
void f32_to_u16(const LoopArgs& a) {
  narrow<std::uint16_t>(a, [](V x) HWY_ATTR { return narrowed<std::uint16_t>(x, 0, 65535); });
}
void f32_to_i8(const LoopArgs& a) {
  narrow<std::int8_t>(a, [](V x) HWY_ATTR { return narrowed<std::int8_t>(x, -128, 127); });
}
void f32_to_u8(const LoopArgs& a) {
  narrow<std::uint8_t>(a, [](V x) HWY_ATTR { return narrowed<std::uint8_t>(x, 0, 255); });
}
void f32_to_boolean(const LoopArgs& a) {
  narrow<std::uint8_t>(a, [](V x) HWY_ATTR { return to_bool(x); });
}

void f16_to_f32(const LoopArgs& a) {
  widen<std::uint16_t>(a, [](auto h) HWY_ATTR { return from_f16(h); });
}
void bf16_to_f32(const LoopArgs& a) {
  widen<std::uint16_t>(a, [](auto h) HWY_ATTR { return from_bf16(h); });
}
template <class T>
void small_to_f32(const LoopArgs& a) {
  widen<T>(a, [](auto v) HWY_ATTR { return hn::ConvertTo(D(), hn::PromoteTo(I(), v)); });
}
void i32_to_f32(const LoopArgs& a) {
  widen<std::int32_t>(a, [](auto v) HWY_ATTR { return hn::ConvertTo(D(), v); });
}
void boolean_to_f32(const LoopArgs& a) {
  widen<std::uint8_t>(a, [](auto v) HWY_ATTR {
    const auto numbers = hn::PromoteTo(I(), v);
    return hn::IfThenZeroElse(hn::RebindMask(D(), hn::Eq(numbers, hn::Zero(I()))), set(1));
  });
}
template <class T>
void long_to_f32(const LoopArgs& a) {  // vector code where the instruction set has it
  const auto* x = static_cast<const T*>(a.in[0]);
  auto* out = static_cast<float*>(a.out);
  for (std::int64_t i = 0; i < a.count; ++i) out[i] = static_cast<float>(x[i]);
}

}  // namespace

void fill_convert_loops(ConvertLoops& t) {
  const auto at = [](ElementType type) { return static_cast<int>(type); };
  t.f32_to[at(ElementType::f16)] = f32_to_f16;
  t.f32_to[at(ElementType::bf16)] = f32_to_bf16;
  t.f32_to[at(ElementType::i32)] = f32_to_i32;
  t.f32_to[at(ElementType::i16)] = f32_to_i16;
  t.f32_to[at(ElementType::u16)] = f32_to_u16;
  t.f32_to[at(ElementType::i8)] = f32_to_i8;
  t.f32_to[at(ElementType::u8)] = f32_to_u8;
  t.f32_to[at(ElementType::boolean)] = f32_to_boolean;
  t.to_f32[at(ElementType::f16)] = f16_to_f32;
  t.to_f32[at(ElementType::bf16)] = bf16_to_f32;
  t.to_f32[at(ElementType::i64)] = long_to_f32<std::int64_t>;
  t.to_f32[at(ElementType::u64)] = long_to_f32<std::uint64_t>;
  t.to_f32[at(ElementType::i32)] = i32_to_f32;
  t.to_f32[at(ElementType::i16)] = small_to_f32<std::int16_t>;
  t.to_f32[at(ElementType::u16)] = small_to_f32<std::uint16_t>;
  t.to_f32[at(ElementType::i8)] = small_to_f32<std::int8_t>;
  t.to_f32[at(ElementType::u8)] = small_to_f32<std::uint8_t>;
  t.to_f32[at(ElementType::boolean)] = boolean_to_f32;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kFillConvertLoops = LAMINA_PER_ISA(fill_convert_loops);

namespace stages {

const ConvertLoops& convert_loops() {
  static const ConvertLoops table = [] {
    ConvertLoops t{};
    kFillConvertLoops.best()(t);
    return t;
  }();
  return table;
}

}  // namespace stages
}  // namespace lamina
#endif
