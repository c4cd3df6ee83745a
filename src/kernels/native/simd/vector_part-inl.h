// Loads and stores of the first n lanes of vectors that touch nothing behind them. Include inside Highway
// units only, after hwy/highway.h.
#if defined(LAMINA_VECTOR_PART_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_VECTOR_PART_INL
#undef LAMINA_VECTOR_PART_INL
#else
#define LAMINA_VECTOR_PART_INL
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

#if HWY_TARGET > HWY_AVX2
/// Four lanes of 32 bits: halves and single lanes, without a detour through memory, which would have to wait
/// for what was written there piece by piece.
template <class D>
constexpr bool kFourWords = sizeof(hwy::HWY_NAMESPACE::TFromD<D>) == 4 && hwy::HWY_NAMESPACE::MaxLanes(D()) ==
                                                                              4;

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_some_words(D d, const hwy::HWY_NAMESPACE::TFromD<D>* p,
                                                      std::int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Half<D> half;
  const hn::Half<decltype(half)> one;
  if (n >= 4) return hn::LoadU(d, p);
  if (n == 3) return hn::Combine(d, hn::ZeroExtendVector(half, hn::LoadU(one, p + 2)), hn::LoadU(half, p));
  if (n == 2) return hn::ZeroExtendVector(d, hn::LoadU(half, p));
  if (n == 1) return hn::ZeroExtendVector(d, hn::ZeroExtendVector(half, hn::LoadU(one, p)));
  return hn::Zero(d);
}

template <class D, class V>
HWY_INLINE void store_some_words(V v, D d, hwy::HWY_NAMESPACE::TFromD<D>* p, std::int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Half<D> half;
  const hn::Half<decltype(half)> one;
  if (n >= 4) return hn::StoreU(v, d, p);
  if (n >= 2) hn::StoreU(hn::LowerHalf(half, v), half, p);
  if (n == 3) hn::StoreU(hn::LowerHalf(one, hn::UpperHalf(half, v)), one, p + 2);
  if (n == 1) hn::StoreU(hn::LowerHalf(one, hn::LowerHalf(half, v)), one, p);
}
#endif

/// The first n elements (at most a vector) and zeros.
template <class D>
HWY_INLINE auto load_some(D d, const hwy::HWY_NAMESPACE::TFromD<D>* p, std::int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#else
  if constexpr (kFourWords<D>) {
    return load_some_words(d, p, n);
  } else {
    if (n >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, p);
    HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)] = {};
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = p[i];
    return hn::Load(d, buffer);
  }
#endif
}

template <class D, class V>
HWY_INLINE void store_some(V v, D d, hwy::HWY_NAMESPACE::TFromD<D>* p, std::int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#else
  if constexpr (kFourWords<D>) return store_some_words(v, d, p, n);
  if (n >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, p);
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)];
  hn::Store(v, d, buffer);
  for (std::int64_t i = 0; i < n; ++i) p[i] = buffer[i];
#endif
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
