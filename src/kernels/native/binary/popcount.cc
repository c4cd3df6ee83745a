/// Binary convolution that counts the bits of words: AVX-512 with VPOPCNTDQ, which is no instruction set of
/// its own in Highway's list of ours; see lines.h.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "base/machine.h"
#include "kernels/native/binary/lines.h"
#include "kernels/native/simd/per_isa.h"

#define LAMINA_POPCNT __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")))
#define LAMINA_POPCNT_INLINE LAMINA_POPCNT inline __attribute__((always_inline))

namespace lamina::binary {
namespace N_VPOPCNTDQ {  // named as Highway names its own: only tables lead into such namespaces
namespace {

constexpr int kLanes = 16;

/// The first n lanes.
LAMINA_POPCNT_INLINE __mmask16 some(std::int64_t n) {
  return static_cast<__mmask16>((1u << std::min<std::int64_t>(n, kLanes)) - 1);
}

LAMINA_POPCNT_INLINE __m512 finished(const Finish& f, __m512 v) {
  if (f.kind == Finish::Kind::clamp)  // NaN passes: it is the second operand
    return _mm512_min_ps(_mm512_set1_ps(f.high), _mm512_max_ps(_mm512_set1_ps(f.low), v));
  if (f.kind == Finish::Kind::leaky)
    return _mm512_mask_mul_ps(v, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), v,
                              _mm512_set1_ps(f.slope));
  return v;
}

LAMINA_POPCNT_INLINE void store_level(const Tile& t, int point, std::int64_t at, __m512 v, __mmask16 mask) {
  const auto& f = *t.byte_finish;
  v = _mm512_mul_ps(v, _mm512_loadu_ps(f.scale + t.first + at));
  v = _mm512_add_ps(v, _mm512_loadu_ps(f.shift + t.first + at));
  v = _mm512_min_ps(_mm512_set1_ps(f.high), _mm512_max_ps(_mm512_set1_ps(f.low), v));
  const auto level = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(f.zero_point));
  _mm512_mask_cvtepi32_storeu_epi8(t.bytes + point * t.out_step + at, mask, level);
}

LAMINA_POPCNT_INLINE void store(const Tile& t, int point, std::int64_t at, __m512i counts) {
  const auto mask = some(t.channels - at);
  const auto start = _mm512_loadu_ps(t.start[point] + t.start_add + at);
  auto v = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(counts), _mm512_set1_ps(2), start);
  if (t.signs) {
    const auto above = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm_mask_storeu_epi8(t.signs + point * t.out_step + at, mask, _mm_maskz_set1_epi8(above, 1));
  }
  if (t.bytes) return store_level(t, point, at, v, mask);
  if (t.add) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, t.add + point * t.add_step + at));
  _mm512_mask_storeu_ps(t.out + point * t.out_step + at, mask, finished(t.finish, v));
}

/// The signs of a point's outputs as bits.
template <int V>
LAMINA_POPCNT_INLINE void store_bits(const Tile& t, int point, const __m512i (&counts)[V]) {
  const float* start = t.start[point] + t.start_add;
  std::uint64_t bits = 0;
  LAMINA_UNROLL
  for (int v = 0; v < V; ++v) {
    const auto x = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(counts[v]), _mm512_set1_ps(2),
                                    _mm512_loadu_ps(start + v * kLanes));
    const std::uint64_t above = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    bits |= above << (v * kLanes);
  }
  auto* out = t.signs + point * t.out_step;
  if (t.channels >= V * kLanes) {
    std::memcpy(out, &bits, V * kLanes / 8);
    return;
  }
  bits &= (std::uint64_t{1} << t.channels) - 1;
  for (std::int64_t c = 0; c < t.channels; c += 8) *out++ = static_cast<std::uint8_t>(bits >> c);
}

/// P points by V vectors of outputs.
template <int P, int V>
LAMINA_POPCNT void tile(const Tile& t) {
  __m512i counts[P][V];
  LAMINA_UNROLL
  for (int p = 0; p < P; ++p) {
    LAMINA_UNROLL
    for (int v = 0; v < V; ++v) counts[p][v] = _mm512_setzero_si512();
  }
  const std::uint8_t* w = t.w;
  for (const Segment *s = t.segments, *end = s + t.segment_count; s != end; ++s) {
    const std::uint8_t* x[P];
    LAMINA_UNROLL
    for (int p = 0; p < P; ++p) x[p] = t.x[p] + t.x_add + s->offset;
    const std::int64_t bytes = s->units * 4;
    for (std::int64_t k = 0; k < bytes; k += 4, w += 64) {
      __m512i weights[V];
      LAMINA_UNROLL
      for (int v = 0; v < V; ++v) weights[v] = _mm512_load_si512(w + v * t.w_vector);
      LAMINA_UNROLL
      for (int p = 0; p < P; ++p) {
        int word;
        std::memcpy(&word, x[p] + k, sizeof word);
        const auto signs = _mm512_set1_epi32(word);
        LAMINA_UNROLL
        for (int v = 0; v < V; ++v) {
          const auto differences = _mm512_xor_si512(weights[v], signs);
          counts[p][v] = _mm512_add_epi32(counts[p][v], _mm512_popcnt_epi32(differences));
        }
      }
    }
  }
  if (t.bits) {
    LAMINA_UNROLL
    for (int p = 0; p < P; ++p) store_bits<V>(t, p, counts[p]);
    return;
  }
  LAMINA_UNROLL
  for (int p = 0; p < P; ++p) {
    LAMINA_UNROLL
    for (int v = 0; v < V; ++v)
      if (v * kLanes < t.channels) store(t, p, v * kLanes, counts[p][v]);
  }
}

LAMINA_POPCNT_INLINE std::uint32_t word_of(const float* in, std::int64_t left) {
  const auto zero = _mm512_setzero_ps();
  std::uint32_t word = _mm512_cmp_ps_mask(_mm512_maskz_loadu_ps(some(left), in), zero, _CMP_GT_OQ);
  if (left > 16) {
    const auto high = _mm512_maskz_loadu_ps(some(left - 16), in + 16);
    word |= static_cast<std::uint32_t>(_mm512_cmp_ps_mask(high, zero, _CMP_GT_OQ)) << 16;
  }
  return word;
}

LAMINA_POPCNT_INLINE std::uint32_t word_of(const std::uint8_t* in, std::int64_t left) {
  const auto mask = left >= 32 ? 0xffffffffu : (1u << left) - 1;
  const auto v = _mm256_maskz_loadu_epi8(mask, in);
  return _mm256_test_epi8_mask(v, v);
}

/// Bits of 32 channels each in a word.
template <class T>
LAMINA_POPCNT void pack_words(const Points& s) {
  for (std::int64_t i = 0; i < s.count; ++i) {
    const T* in = static_cast<const T*>(s.in) + i * s.step;
    std::uint8_t* out = s.out + i * s.out_step;
    for (std::int64_t g = 0; g < s.groups; ++g, in += s.channels)
      for (std::int64_t c = 0; c < s.channels; c += 32, out += 4) {
        const auto word = word_of(in + c, s.channels - c);
        std::memcpy(out, &word, sizeof word);
      }
  }
}

LAMINA_POPCNT void pack(const Points& s) {
  if (s.bits)  // the same words
    std::memcpy(s.out, s.in, static_cast<std::size_t>(s.count * s.out_step));
  else
    s.booleans ? pack_words<std::uint8_t>(s) : pack_words<float>(s);
}

#define LAMINA_TILES(v) \
  { nullptr, tile<1, v>, tile<2, v>, tile<3, v>, tile<4, v>, tile<5, v>, tile<6, v> }

constexpr Kernels kKernels{"vpopcntdq",
                           kLanes,
                           kLanes,
                           32,
                           4,
                           0,
                           4,
                           6,
                           390,
                           {{}, LAMINA_TILES(1), LAMINA_TILES(2), LAMINA_TILES(3), LAMINA_TILES(4)},
                           LAMINA_TILES(1),
                           pack};

}  // namespace
}  // namespace N_VPOPCNTDQ

const Kernels* popcount_kernels(const Machine& machine) {
  const bool known = machine.isa() == Isa::avx512 && machine.features.has(Feature::avx512_vpopcntdq);
  return known ? &N_VPOPCNTDQ::kKernels : nullptr;
}

}  // namespace lamina::binary
