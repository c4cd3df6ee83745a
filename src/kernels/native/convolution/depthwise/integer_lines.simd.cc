/// Lines of depthwise convolutions of integers; see integer_lines.h.
///
/// A tile of R x T outputs of a vector of channels is kept in registers, as in lines.simd.cc. A column of its
/// inputs is read once: rows of a group become words of a channel, which are multiplied with those of all
/// outputs that the column is part of. Zero points: a sum of x * w less zero_point * (sum of w) is one of
/// (x - zero_point) * w, if x is the zero point around the picture.
#include "kernels/native/convolution/depthwise/integer_lines.h"

#include "kernels/native/simd/per_isa.h"
#include "kernels/native/stages/sum_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/convolution/depthwise/integer_lines.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/convolution/depthwise/tiles-inl.h"
#include "kernels/native/simd/integer_finish-inl.h"
#include "kernels/native/simd/integer_packs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

void finish_rows(const IntegerFinish& finish, const SumRows& rows);  // stages/sum_rows.simd.cc

namespace {

namespace hn = hwy::HWY_NAMESPACE;
using depthwise::IntegerLines;
using integer_finish::Sums;
using integer_finish::Words;
using Place = TilePlace<IntegerLines>;

constexpr std::int64_t kLanes = hn::MaxLanes(Words());
constexpr int kRegisters = kLanes == 16 ? 32 : 16;

HWY_INLINE __m128i load_word(const std::uint8_t* p, [[maybe_unused]] std::int64_t bytes = 4) {
  std::int32_t word = 0;
  __builtin_memcpy(&word, p, static_cast<std::size_t>(bytes));
  return _mm_cvtsi32_si128(word);
}

/// Two rows, as 16 bits.
struct Pairs {
  static constexpr int kRows = 2;
  static constexpr std::int32_t splat(std::int32_t byte) { return byte * 0x00010001; }

  /// Numbers of `lanes` channels; of fewer in a part.
  template <bool kPart>
  static HWY_INLINE Sums words(const std::uint8_t* const* rows, std::uint32_t flip,
                               [[maybe_unused]] std::int64_t channels) {
    const auto flips = _mm_set1_epi32(static_cast<int>(flip));
#if HWY_TARGET == HWY_SSE4
    const auto n = kPart ? channels : 4;
    const auto bytes = _mm_unpacklo_epi8(load_word(rows[0], n), load_word(rows[1], n));
    return Sums{_mm_cvtepu8_epi16(_mm_xor_si128(bytes, flips))};
#elif HWY_TARGET == HWY_AVX2
    const auto load = [](const std::uint8_t* p)
                          HWY_ATTR { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); };
    const auto bytes = _mm_unpacklo_epi8(load(rows[0]), load(rows[1]));
    return Sums{_mm256_cvtepu8_epi16(_mm_xor_si128(bytes, flips))};
#else
    const auto a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[0]));
    const auto b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[1]));
    const auto low = _mm256_castsi128_si256(_mm_unpacklo_epi8(a, b));
    const auto bytes = _mm256_inserti128_si256(low, _mm_unpackhi_epi8(a, b), 1);
    return Sums{_mm512_cvtepu8_epi16(_mm256_xor_si256(bytes, _mm256_broadcastd_epi32(flips)))};
#endif
  }

  static HWY_INLINE void add(Sums x, const std::int32_t* weights, Sums& sum) {
    const auto w = hn::LoadU(Words(), weights);
#if HWY_TARGET == HWY_SSE4
    sum = hn::Add(sum, Sums{_mm_madd_epi16(x.raw, w.raw)});
#elif HWY_TARGET == HWY_AVX2
    sum = hn::Add(sum, Sums{_mm256_madd_epi16(x.raw, w.raw)});
#else
    sum = hn::Add(sum, Sums{_mm512_madd_epi16(x.raw, w.raw)});
#endif
  }
};

/// Outputs of a vector whose first channel is `at` channels from the first: with all that may be done.
HWY_NOINLINE void finish_all(const IntegerLines& s, const Place& p, std::int64_t at, std::int64_t lines,
                             std::int64_t points, const std::int32_t* sums, std::int64_t channels) {
  SumRows rows{
      sums,        kLanes, p.out + at * s.out_size, s.out_point, p.add ? p.add + at * s.add_size : nullptr,
      s.add_point, points, s.channel + at,          channels};
  for (std::int64_t r = 0; r < lines; ++r) {
    HWY_NAMESPACE::finish_rows(s.finish, rows);
    rows.sums += points * kLanes;
    rows.out += s.out_line;
    if (rows.added) rows.added += s.add_line;
  }
}

template <int R, int T, bool kPart>
HWY_INLINE void finish_tile(const IntegerLines& s, const Place& p, std::int64_t at, Sums (&sums)[R][T]) {
  if constexpr (!kPart && T >= 4) {
    if (s.finish.packs.bounds_last) {
      const integer_finish::PackedBytes bytes(s.finish);
      const integer_finish::Scaled scaled(s.finish, s.channel + at);
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int f = 0; f < T; f += 4) {
          const int t = f + 4 <= T ? f : T - 4;  // the last four overlap those before
          const integer_finish::V v[4] = {scaled(sums[r][t]), scaled(sums[r][t + 1]), scaled(sums[r][t + 2]),
                                          scaled(sums[r][t + 3])};
          integer_finish::store_quarters(bytes(v), p.out + at + r * s.out_line + t * s.out_point,
                                         {0, s.out_point, 2 * s.out_point, 3 * s.out_point});
        }
      return;
    }
  }
  if constexpr (!kPart && T < 4) {
    if (s.finish.stored == IntegerFinish::Stored::bytes && s.finish.simple()) {
      const integer_finish::Store<integer_finish::Kind::bytes> store(s.finish);
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 3
        for (int t = 0; t < T; ++t)
          store(sums[r][t], s.channel + at, p.out + at + r * s.out_line + t * s.out_point, nullptr, kLanes);
      return;
    }
  }
  HWY_ALIGN std::int32_t buffer[R * T * kLanes];
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) hn::Store(sums[r][t], Words(), buffer + (r * T + t) * kLanes);
  finish_all(s, p, at, R, T, buffer, kPart ? s.channels : kLanes);
}

/// The rows of a group: where they begin, and bytes from point to point, 0 outside of the picture.
template <class P>
struct Group {
  const std::uint8_t* at[P::kRows];
  std::int64_t step[P::kRows];

  /// `end`: some may lie outside. `rows`: those that taps have; what is read beyond has weights 0.
  HWY_INLINE Group(const IntegerLines& s, const Place& p, std::int64_t group, std::int64_t rows,
                   std::int64_t channel, bool end) {
#pragma GCC unroll 4
    for (int q = 0; q < P::kRows; ++q) {
      const auto i = HWY_MIN(group * P::kRows + q, rows - 1) * s.dilation_h;
      const bool inside = !end || (p.y + i >= 0 && p.y + i < s.in_height);
      at[q] = inside ? p.in + channel + i * s.in_line : s.outside;
      step[q] = inside ? s.in_point : 0;
    }
  }
  /// At point j, as words.
  template <bool kEnd, bool kPart>
  HWY_INLINE Sums words(const IntegerLines& s, std::int64_t j) const {
    const std::uint8_t* from[P::kRows];
#pragma GCC unroll 4
    for (int q = 0; q < P::kRows; ++q) from[q] = at[q] + j * (kEnd ? step[q] : s.in_point);
    return P::template words<kPart>(from, s.flip, s.channels);
  }
};

template <int R, int T>
HWY_INLINE void start(const IntegerLines& s, std::int64_t vector, Sums (&sums)[R][T]) {
  const Sums of_weights = hn::LoadU(Words(), s.weight_sums + vector * kLanes);
  const Sums first = hn::Mul(of_weights, hn::Set(Words(), -s.zero_point));
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sums[r][t] = first;
}

/// K taps along the line with stride S; R lines of outputs at once, weights for L.
template <class P, int K, int S, int L, int R, int T, bool kEnd>
void tile(const IntegerLines& s, std::int64_t line, std::int64_t x) {
  const Place p(s, line, x);
  const std::int64_t rows = s.kernel_h + R - 1, groups = (s.kernel_h + L - 1 + P::kRows - 1) / P::kRows;
  const Sums blank = hn::Set(Words(), P::splat(s.zero_point));
  for (std::int64_t n = 0; n < s.vectors; ++n) {
    const std::int64_t at = n + 1 < s.vectors ? n * kLanes : s.last;
    Sums sums[R][T];
    start(s, n, sums);
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int32_t* weights = s.weights + (n * groups + g) * L * K * kLanes;
      const Group<P> from(s, p, g, rows, at, kEnd);
#pragma GCC unroll 32
      for (int j = 0; j < (T - 1) * S + K; ++j) {
        const bool inside = !kEnd || (p.x + j >= 0 && p.x + j < s.in_width);
        const Sums v = inside ? from.template words<kEnd, false>(s, j) : blank;
#pragma GCC unroll 2
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
          for (int k = 0; k < K; ++k)
            if (j >= k && (j - k) % S == 0 && (j - k) / S < T)
              P::add(v, weights + (r * K + k) * kLanes, sums[r][(j - k) / S]);
      }
    }
    finish_tile<R, T, false>(s, p, at, sums);
  }
}

/// T outputs of a line, any window.
template <class P, int T, bool kPart, bool kEnd>
void tile_of_any(const IntegerLines& s, std::int64_t line, std::int64_t x) {
  const Place p(s, line, x);
  const std::int64_t groups = (s.kernel_h + P::kRows - 1) / P::kRows;
  const Sums blank = hn::Set(Words(), P::splat(s.zero_point));
  const std::int32_t* weights = s.weights;
  for (std::int64_t n = 0; n < s.vectors; ++n) {
    const std::int64_t at = n + 1 < s.vectors ? n * kLanes : s.last;
    Sums sums[1][T];
    start(s, n, sums);
    for (std::int64_t g = 0; g < groups; ++g) {
      const Group<P> from(s, p, g, s.kernel_h, at, kEnd);
      for (std::int64_t k = 0; k < s.kernel_w; ++k, weights += kLanes)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const std::int64_t j = t * s.stride_w + k * s.dilation_w;
          const bool inside = !kEnd || (p.x + j >= 0 && p.x + j < s.in_width);
          P::add(inside ? from.template words<kEnd, kPart>(s, j) : blank, weights, sums[0][t]);
        }
    }
    finish_tile<1, T, kPart>(s, p, at, sums);
  }
}

/// In tiles of the size whose outputs exceed the line least.
template <class Window>
struct Widths {
  static constexpr int kLeastInside = 2;
  template <int R>
  static HWY_INLINE void run_line(const IntegerLines& s, std::int64_t line) {
    const std::int64_t width = s.out_width;
    if (width < 4) return run_tiles<Window, R, 1>(s, line);
    if constexpr (kRegisters == 32) {
      const auto beyond = [&](std::int64_t t) { return (width + t - 1) / t * t - width; };
      if (width >= 8 && beyond(8) <= beyond(7)) return run_tiles<Window, R, 8>(s, line);
      if (width >= 7) return run_tiles<Window, R, 7>(s, line);
    }
    run_tiles<Window, R, 4>(s, line);
  }
};

// The tiles of windows (tiles-inl.h).
template <class P, int K, int S, int L>
struct Taps : Widths<Taps<P, K, S, L>> {
  static constexpr int kLines = L;
  template <int R, int T, bool kEnd>
  static void run(const IntegerLines& s, std::int64_t line, std::int64_t x) {
    tile<P, K, S, L, R, T, kEnd>(s, line, x);
  }
};
template <class P, bool kPart>
struct Any : Widths<Any<P, kPart>> {
  static constexpr int kLines = 1;
  template <int R, int T, bool kEnd>
  static void run(const IntegerLines& s, std::int64_t line, std::int64_t x) {
    tile_of_any<P, T, kPart, kEnd>(s, line, x);
  }
};

template <class Window>
void run_lines(const IntegerLines& s) {
  run_all_lines<Window>(s);
}

template <class P>
constexpr depthwise::IntegerKernels kernels_of(const char* name, depthwise::IntegerKernels::Run part) {
  constexpr int L = depthwise::kLinesAtOnce;
  return {name,
          kLanes,
          P::kRows,
          run_lines<Any<P, false>>,
          part,
          run_lines<Taps<P, 3, 1, L>>,
          run_lines<Taps<P, 5, 1, L>>,
          run_lines<Taps<P, 3, 2, 1>>,
          run_lines<Taps<P, 5, 2, 1>>};
}

}  // namespace

#if HWY_TARGET == HWY_SSE4
constexpr auto kIntegerDepthwise = kernels_of<Pairs>("sse41", run_lines<Any<Pairs, true>>);
#elif HWY_TARGET == HWY_AVX2
constexpr auto kIntegerDepthwise = kernels_of<Pairs>("avx2", nullptr);
#else
constexpr auto kIntegerDepthwise = kernels_of<Pairs>("avx512", nullptr);

namespace N_VNNI {

/// Four rows, as 8 bits. vpdpbusd is a feature of its own: only its table leads here.
struct Quads {
  static constexpr int kRows = 4;
  static constexpr std::int32_t splat(std::int32_t byte) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(byte) * 0x01010101u);
  }

  template <bool kPart>
  static HWY_INLINE Sums words(const std::uint8_t* const* rows, std::uint32_t flip, std::int64_t) {
    const auto load = [](const std::uint8_t* p)
                          HWY_ATTR { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
    auto v = _mm512_castsi128_si512(load(rows[0]));
    v = _mm512_inserti32x4(v, load(rows[1]), 1);
    v = _mm512_inserti32x4(v, load(rows[2]), 2);
    v = _mm512_inserti32x4(v, load(rows[3]), 3);
    // Four channels of all rows to each 16 bytes, then row by row of a channel.
    const auto fours = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const auto turn =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    v = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, v), turn);
    return Sums{_mm512_xor_si512(v, _mm512_set1_epi32(static_cast<int>(flip)))};
  }

  static HWY_INLINE void add(Sums x, const std::int32_t* weights, Sums& sum) {
    const auto w = hn::LoadU(Words(), weights);
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(w.raw));
  }
};

constexpr auto kIntegerDepthwise = kernels_of<Quads>("vnni", nullptr);

}  // namespace N_VNNI
#endif

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kKernels = LAMINA_CONSTANT_PER_ISA(kIntegerDepthwise);

const depthwise::IntegerKernels& depthwise::integer_kernels_for(const Machine& machine, std::int64_t channels,
                                                                bool bytes) {
  // Narrow pictures take the vectors of a lesser instruction set, which they fill.
  auto isa = machine.isa();
  while (isa != Isa::sse41 && channels < kKernels.at(isa).lanes) isa = Isa(static_cast<int>(isa) - 1);
  if (isa == Isa::avx512 && bytes && machine.features.has(Feature::avx512_vnni))
    return N_AVX3::N_VNNI::kIntegerDepthwise;
  return kKernels.at(isa);
}
}  // namespace lamina
#endif
