// Sums of the lanes of f32 vectors, four vectors at a time. Include inside Highway units only, after
// hwy/highway.h.
#if defined(LAMINA_ADD_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_ADD_LANES_INL
#undef LAMINA_ADD_LANES_INL
#else
#define LAMINA_ADD_LANES_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

/// The sum of a vector's blocks of four lanes.
template <class V>
HWY_INLINE auto add_blocks(V v) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SSE4
  return v;
#else
  const hn::FixedTag<float, 4> d4;
  const hn::FixedTag<float, 8> d8;
#if HWY_TARGET == HWY_AVX2
  const auto half = v;
#else
  const auto half = hn::Add(hn::LowerHalf(d8, v), hn::UpperHalf(d8, v));
#endif
  return hn::Add(hn::LowerHalf(d4, half), hn::UpperHalf(d4, half));
#endif
}

/// Four sums of lanes.
template <class V>
HWY_INLINE auto add_lanes(V v0, V v1, V v2, V v3) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const hn::RepartitionToWide<hn::ScalableTag<float>> wide;
  const auto v01 = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, v0, v1), hn::InterleaveUpper(d, v0, v1))),
             v23 = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, v2, v3), hn::InterleaveUpper(d, v2, v3)));
  return add_blocks(hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, v01, v23)),
                            hn::BitCast(d, hn::InterleaveUpper(wide, v01, v23))));
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
