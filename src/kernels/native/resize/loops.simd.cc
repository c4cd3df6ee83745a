/// Interpolate in vector code; see loops.h.
#include "kernels/native/resize/loops.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/resize/loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);

/// Loads whole vectors or the first n lanes.
template <bool kWhole>
HWY_INLINE V load(const float* p, std::int64_t n) {
  if constexpr (kWhole) return hn::LoadU(d, p);
  return load_some(d, p, n);
}
template <bool kWhole>
HWY_INLINE void store(V v, float* p, std::int64_t n) {
  if constexpr (kWhole)
    hn::StoreU(v, d, p);
  else
    store_some(v, d, p, n);
}

/// kTaps 0: any number.
template <int kTaps, bool kWhole>
HWY_INLINE void blend(const float* const* rows, const float* weights, std::int64_t taps, float* out,
                      std::int64_t at, std::int64_t n) {
  V sum = hn::Mul(hn::Set(d, weights[0]), load<kWhole>(rows[0] + at, n));
  const std::int64_t end = kTaps ? kTaps : taps;
  for (std::int64_t k = 1; k < end; ++k)
    sum = hn::MulAdd(hn::Set(d, weights[k]), load<kWhole>(rows[k] + at, n), sum);
  store<kWhole>(sum, out + at, n);
}

template <int kTaps>
HWY_INLINE void rows_of(const float* const* rows, const float* weights, std::int64_t taps, float* out,
                        std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) blend<kTaps, true>(rows, weights, taps, out, i, kLanes);
  if (i < count) blend<kTaps, false>(rows, weights, taps, out, i, count - i);
}

void rows(const float* const* rows, const float* weights, std::int64_t taps, float* out, std::int64_t count) {
  if (taps == 2) return rows_of<2>(rows, weights, taps, out, count);
  if (taps == 4) return rows_of<4>(rows, weights, taps, out, count);
  rows_of<0>(rows, weights, taps, out, count);
}

/// A pixel is a blend of the pixels that it reads.
template <int kTaps>
HWY_INLINE void pixels_of(const float* in, const std::int32_t* index, const float* weights, float* out,
                          std::int64_t count, std::int64_t inner) {
  const float* from[kTaps];
  for (std::int64_t o = 0; o < count; ++o, index += kTaps, weights += kTaps, out += inner) {
    LAMINA_UNROLL
    for (int k = 0; k < kTaps; ++k) from[k] = in + index[k] * inner;
    rows_of<kTaps>(from, weights, kTaps, out, inner);
  }
}

/// One tap of weight 1 copies exactly.
void copy_pixels(const float* in, const std::int32_t* index, float* out, std::int64_t count,
                 std::int64_t inner) {
  for (std::int64_t o = 0; o < count; ++o, out += inner) {
    const float* from = in + index[o] * inner;
    std::int64_t i = 0;
    for (; i + kLanes <= inner; i += kLanes) hn::StoreU(hn::LoadU(d, from + i), d, out + i);
    if (i < inner) store_some(load_some(d, from + i, inner - i), d, out + i, inner - i);
  }
}

void pixels(const float* in, const std::int32_t* index, const float* weights, std::int64_t taps, float* out,
            std::int64_t count, std::int64_t inner) {
  if (!weights) return copy_pixels(in, index, out, count, inner);
  if (taps == 2) return pixels_of<2>(in, index, weights, out, count, inner);
  if (taps == 4) return pixels_of<4>(in, index, weights, out, count, inner);
  for (std::int64_t o = 0; o < count; ++o, index += taps, weights += taps, out += inner)
    for (std::int64_t i = 0; i < inner; i += kLanes) {
      const auto n = inner - i < kLanes ? inner - i : kLanes;
      V sum = hn::Mul(hn::Set(d, weights[0]), load_some(d, in + index[0] * inner + i, n));
      for (std::int64_t k = 1; k < taps; ++k)
        sum = hn::MulAdd(hn::Set(d, weights[k]), load_some(d, in + index[k] * inner + i, n), sum);
      store_some(sum, d, out + i, n);
    }
}

HWY_INLINE V element(const float* in, const std::int32_t* index, const float* weights, std::int64_t taps,
                     std::int64_t count, std::int64_t i) {
  const hn::RebindToSigned<D> di;
  V sum = hn::GatherIndex(d, in, hn::LoadU(di, index + i));
  if (weights) sum = hn::Mul(sum, hn::LoadU(d, weights + i));
  for (std::int64_t k = 1; k < taps; ++k)
    sum = hn::MulAdd(hn::LoadU(d, weights + k * count + i),
                     hn::GatherIndex(d, in, hn::LoadU(di, index + k * count + i)), sum);
  return sum;
}

void elements(const float* in, const std::int32_t* index, const float* weights, std::int64_t taps, float* out,
              std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(element(in, index, weights, taps, count, i), d, out + i);
  if (i == count) return;
  if (count >= kLanes) {  // the last vector overlaps the one before
    i = count - kLanes;
    return hn::StoreU(element(in, index, weights, taps, count, i), d, out + i);
  }
  for (; i < count; ++i) {
    float sum = weights ? weights[i] * in[index[i]] : in[index[i]];
    for (std::int64_t k = 1; k < taps; ++k) sum += weights[k * count + i] * in[index[k * count + i]];
    out[i] = sum;
  }
}

void doubled(const float* in, float* out, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V v = hn::LoadU(d, in + i);
    hn::StoreInterleaved2(v, v, d, out + 2 * i);
  }
  for (; i < count; ++i) out[2 * i] = out[2 * i + 1] = in[i];
}

void shuffled(const std::uint8_t* in, const std::int32_t* from, const std::uint8_t* places, std::uint8_t* out,
              std::int64_t bytes) {
  const hn::FixedTag<std::uint8_t, 16> d8;
  for (std::int64_t at = 0; at < bytes; at += 16, ++from, places += 16)
    hn::StoreU(hn::TableLookupBytes(hn::LoadU(d8, in + *from), hn::LoadU(d8, places)), d8,
               out + (at + 16 > bytes ? bytes - 16 : at));
}

ResizeLoops make_table() {
  ResizeLoops t;
  t.rows = rows;
  t.pixels = pixels;
  t.elements = elements;
  t.doubled = doubled;
  t.shuffled = shuffled;
  return t;
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(ResizeLoops, resize_loops, make_table)

}  // namespace lamina
#endif
