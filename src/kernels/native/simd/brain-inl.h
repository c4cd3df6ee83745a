// Elements in memory and the numbers that they are computed in: bf16 as floats. Include inside Highway units
// only, after hwy/highway.h.
#if defined(LAMINA_BRAIN_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_BRAIN_INL
#undef LAMINA_BRAIN_INL
#else
#define LAMINA_BRAIN_INL
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace brain {

namespace hn = hwy::HWY_NAMESPACE;

/// The upper half of a float, in memory.
struct Brain {
  std::uint16_t bits;
};
template <class T>
struct NumberOf {
  using Type = T;
};
template <>
struct NumberOf<Brain> {
  using Type = float;
};
template <class T>
using Number = typename NumberOf<T>::Type;

template <class T>
HWY_INLINE T number(T x) {
  return x;
}
HWY_INLINE float number(Brain x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float f;
  __builtin_memcpy(&f, &bits, sizeof f);
  return f;
}
template <class T>
HWY_INLINE void put(Number<T> x, T* to) {
  if constexpr (hwy::IsSame<T, Brain>()) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    const auto even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to->bits = static_cast<std::uint16_t>(__builtin_isnan(x) ? bits >> 16 | 0x40 : even);
  } else {
    *to = x;
  }
}

template <class D, class T>
HWY_INLINE hn::Vec<D> load_numbers(D d, const T* p) {
  if constexpr (hwy::IsSame<T, Brain>()) {
    const hn::RebindToUnsigned<D> du;
    const auto half = hn::LoadU(hn::Rebind<std::uint16_t, D>(), &p->bits);
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, half)));
  } else {
    return hn::LoadU(d, p);
  }
}
/// Brains: rounded to nearest even.
template <class D, class T>
HWY_INLINE void store_numbers(hn::Vec<D> v, D d, T* p) {
  if constexpr (hwy::IsSame<T, Brain>()) {
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(di, v), one = hn::Set(di, 1);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), one);
    const auto even = hn::Add(bits, hn::Add(odd, hn::Set(di, 0x7fff)));
    const auto kept =
        hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(v)), hn::Or(bits, hn::Set(di, 0x400000)), even);
    const auto high = hn::And(hn::ShiftRight<16>(kept), hn::Set(di, 0xffff));
    hn::StoreU(hn::DemoteTo(hn::Rebind<std::uint16_t, D>(), high), hn::Rebind<std::uint16_t, D>(), &p->bits);
  } else {
    hn::StoreU(v, d, p);
  }
}

}  // namespace brain
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
