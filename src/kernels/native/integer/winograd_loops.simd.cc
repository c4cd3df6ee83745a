/// Winograd's transforms; see winograd_loops.h.
#include "kernels/native/integer/winograd_loops.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/integer/winograd_loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using integers::kWinogradInputs;
using integers::kWinogradOutputs;

/// Six inputs along a side.
template <class V>
HWY_INLINE void transform_inputs(const V (&d)[kWinogradInputs], V (&to)[kWinogradInputs]) {
  const V a = hn::Sub(hn::ShiftLeft<2>(d[2]), d[4]), b = hn::Sub(hn::ShiftLeft<2>(d[1]), d[3]);
  const V c = hn::Sub(d[4], d[2]), e = hn::Sub(d[3], d[1]), twice = hn::Add(e, e);
  to[0] = hn::Add(hn::ShiftLeft<2>(hn::Sub(d[0], d[2])), c);
  to[1] = hn::Add(a, b);
  to[2] = hn::Sub(a, b);
  to[3] = hn::Add(c, twice);
  to[4] = hn::Sub(c, twice);
  to[5] = hn::Sub(hn::Sub(d[5], d[3]), hn::Add(twice, twice));
}

/// Six sums along a side as four outputs, 24 times as large.
template <class V>
HWY_INLINE void transform_sums(const V (&m)[kWinogradInputs], V (&to)[kWinogradOutputs]) {
  const V p = hn::Add(m[1], m[2]), q = hn::Sub(m[1], m[2]);
  const V r = hn::Add(m[3], m[4]), s = hn::Sub(m[3], m[4]), twice = hn::Add(s, s);
  to[0] = hn::Add(hn::Add(m[0], p), r);
  to[1] = hn::Add(q, twice);
  to[2] = hn::Add(p, hn::ShiftLeft<2>(r));
  to[3] = hn::Add(hn::Add(q, hn::ShiftLeft<2>(twice)), hn::Add(m[5], m[5]));
}

/// The first `count` bytes, of more than there may be no memory.
template <class D>
HWY_INLINE auto load_bytes(D d, const hn::TFromD<D>* from, std::int64_t count) {
#if HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, from);
#else
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)] = {};
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = from[i];
  return hn::Load(d, buffer);
#endif
}

/// A vector of channels, or `count` of them.
template <class T, bool kPart>
HWY_INLINE void inputs_of_vector(const std::uint8_t* const* points, std::int64_t channel,
                                 [[maybe_unused]] std::int64_t count, std::int32_t zero, std::int16_t* to,
                                 std::int64_t plane) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<T, decltype(d16)> d8;
  using V = hn::Vec<decltype(d16)>;
  const V less = hn::Set(d16, static_cast<std::int16_t>(zero));
  V half[kWinogradInputs][kWinogradInputs];
  LAMINA_UNROLL
  for (int x = 0; x < kWinogradInputs; ++x) {
    V column[kWinogradInputs], done[kWinogradInputs];
    LAMINA_UNROLL
    for (int y = 0; y < kWinogradInputs; ++y) {
      const auto* from = reinterpret_cast<const T*>(points[y * kWinogradInputs + x]) + channel;
      if constexpr (kPart) {
        const auto some = hn::Sub(hn::PromoteTo(d16, load_bytes(d8, from, count)), less);
        column[y] = hn::IfThenElseZero(hn::FirstN(d16, static_cast<std::size_t>(count)), some);
      } else {
        column[y] = hn::Sub(hn::PromoteTo(d16, hn::LoadU(d8, from)), less);
      }
    }
    transform_inputs(column, done);
    LAMINA_UNROLL
    for (int y = 0; y < kWinogradInputs; ++y) half[y][x] = done[y];
  }
  LAMINA_UNROLL
  for (int y = 0; y < kWinogradInputs; ++y) {
    V done[kWinogradInputs];
    transform_inputs(half[y], done);
    LAMINA_UNROLL
    for (int x = 0; x < kWinogradInputs; ++x)
      hn::StoreU(done[x], d16, to + (y * kWinogradInputs + x) * plane + channel);
  }
}

template <class T>
void inputs(const std::uint8_t* const* points, std::int64_t channels, std::int32_t zero, std::int16_t* to,
            std::int64_t plane) {
  constexpr std::int64_t kStep = hn::MaxLanes(hn::ScalableTag<std::int16_t>());
  std::int64_t c = 0;
  for (; c + kStep <= channels; c += kStep) inputs_of_vector<T, false>(points, c, kStep, zero, to, plane);
  if (c < channels) inputs_of_vector<T, true>(points, c, channels - c, zero, to, plane);
}

void outputs(const std::int32_t* from, std::int64_t plane, std::int64_t vectors, std::int32_t* to,
             std::int64_t line) {
  const hn::ScalableTag<std::int32_t> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  // 24 * 24 is 9 << 6, and this is 1 / 9 modulo 2^32.
  const V ninth = hn::Set(d, 0x38E38E39);
  for (std::int64_t v = 0; v < vectors; ++v, from += kLanes, to += kLanes) {
    V half[kWinogradOutputs][kWinogradInputs];
    LAMINA_UNROLL
    for (int x = 0; x < kWinogradInputs; ++x) {
      V column[kWinogradInputs], done[kWinogradOutputs];
      LAMINA_UNROLL
      for (int y = 0; y < kWinogradInputs; ++y)
        column[y] = hn::LoadU(d, from + (y * kWinogradInputs + x) * plane);
      transform_sums(column, done);
      LAMINA_UNROLL
      for (int y = 0; y < kWinogradOutputs; ++y) half[y][x] = done[y];
    }
    LAMINA_UNROLL
    for (int y = 0; y < kWinogradOutputs; ++y) {
      V done[kWinogradOutputs];
      transform_sums(half[y], done);
      LAMINA_UNROLL
      for (int x = 0; x < kWinogradOutputs; ++x)
        hn::StoreU(hn::ShiftRight<6>(hn::Mul(done[x], ninth)), d, to + y * line + x * vectors * kLanes);
    }
  }
}

}  // namespace

integers::WinogradLoops make_winograd_loops() {
  return {{inputs<std::uint8_t>, inputs<std::int8_t>}, outputs};
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(integers::WinogradLoops, integers::winograd_loops, make_winograd_loops)
}
#endif
