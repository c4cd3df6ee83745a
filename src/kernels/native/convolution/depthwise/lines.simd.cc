/// Lines of depthwise convolutions; see lines.h.
///
/// A tile of R x T outputs of a vector of channels is kept in registers. Each input vector is read once and
/// multiplied with the taps of all outputs that it is part of; then comes the next vector of channels, so
/// that memory is walked line by line. 3 x 3 taps, 2 x 4 outputs:
///
///     . . . . . .      input i, j is part of outputs (i - 2 .. i, j - 2 .. j)
///     . i i i i .
///     . i i i i .
///     . . . . . .
///
/// Tiles at the picture's borders leave out what lies outside.
#include "kernels/native/convolution/depthwise/lines.h"

#include "base/cpu.h"
#include "base/work_partition.h"
#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/convolution/depthwise/lines.simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/convolution/depthwise/tiles-inl.h"
#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using depthwise::Lines;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d), kCacheLine = 64;
constexpr bool kWholeLines = kLanes * sizeof(float) == kCacheLine;
using Place = TilePlace<Lines>;

template <bool kPart>
HWY_INLINE V load(const float* p, [[maybe_unused]] std::int64_t channels) {
  if constexpr (kPart) return load_some(d, p, channels);
  return hn::LoadU(d, p);
}

/// R x T outputs of one vector of channels, which is `at` floats from the first.
template <int R, int T, bool kPart>
HWY_INLINE void finish_tile(const Lines& s, const Place& p, std::int64_t at, V (&sums)[R][T]) {
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      V& v = sums[r][t];
      if (p.add) v = hn::Add(v, load<kPart>(p.add + at + r * s.add_line + t * s.add_point, s.channels));
      v = finished(d, s.finish, v);
    }
  const auto store = [&](auto put) HWY_ATTR {
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) put(sums[r][t], p.out + at + r * s.out_line + t * s.out_point);
  };
  if constexpr (kPart)
    store([&](V v, float* to) HWY_ATTR { store_some(v, d, to, s.channels); });
  else if (kWholeLines && s.stream)
    store([](V v, float* to) HWY_ATTR { hn::Stream(v, d, to); });
  else
    store([](V v, float* to) HWY_ATTR { hn::StoreU(v, d, to); });
}

inline void fetch(depthwise::Ahead& a) {
  for (std::int64_t i = 0; i < a.each && a.count > 0; ++i) {
    __builtin_prefetch(a.from + a.at, 0, 2);
    if ((a.at += kCacheLine) >= a.bytes) a.at = 0, --a.count, a.from += a.stride;
  }
}

/// A line of a tile's inputs, `i` taps below its first, multiplied with the taps of all outputs that it is
/// part of: R lines of K taps with stride S.
template <int K, int S, int R, int T, bool kEnd>
HWY_INLINE void add_line(const Lines& s, const Place& p, std::int64_t y, const float* in,
                         const float* weights, int i, V (&sums)[R][T]) {
  if (kEnd && (y < 0 || y >= s.in_height)) return;
  V w[R][K];
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
      if (R == 1 || (i >= r && i - r < K)) w[r][k] = hn::LoadU(d, weights + ((i - r) * K + k) * kLanes);
#pragma GCC unroll 32
  for (int j = 0; j < (T - 1) * S + K; ++j) {
    if (kEnd && (p.x + j < 0 || p.x + j >= s.in_width)) continue;
    const V v = hn::LoadU(d, in + j * s.in_point);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k)
        if ((R == 1 || (i >= r && i - r < K)) && j >= k && (j - k) % S == 0 && (j - k) / S < T)
          sums[r][(j - k) / S] = hn::MulAdd(v, w[r][k], sums[r][(j - k) / S]);
  }
}

/// K taps along the line with stride S, any height of the window; two lines of outputs at once (R = 2) only
/// for K x K taps with stride 1. kEnd: the window may reach over the borders.
template <int K, int S, int R, int T, bool kEnd>
void tile(const Lines& s, std::int64_t line, std::int64_t x) {
  const Place p(s, line, x);
  const float* weights = s.weights;
  for (std::int64_t n = 0; n < s.vectors; ++n, weights += s.kernel_h * K * kLanes) {
    const std::int64_t at = n + 1 < s.vectors ? n * kLanes : s.last;
    V sums[R][T];
    const V start = s.bias ? hn::LoadU(d, s.bias + n * kLanes) : hn::Zero(d);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sums[r][t] = start;
    const float* in = p.in + at;
    if (s.ahead) fetch(*s.ahead);
    const auto add = [&](int i, std::int64_t step) HWY_ATTR {
      add_line<K, S, R, T, kEnd>(s, p, p.y + i * step, in + i * step * s.in_line, weights, i, sums);
    };
    if constexpr (R > 1) {
#pragma GCC unroll 8
      for (int i = 0; i < R - 1 + K; ++i) add(i, 1);
    } else if (K == 3 && kLanes > 4 && s.kernel_h == 3) {
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) add(i, s.dilation_h);
    } else {
#pragma GCC unroll 1
      for (int i = 0; i < s.kernel_h; ++i) add(i, s.dilation_h);
    }
    finish_tile<R, T, false>(s, p, at, sums);
  }
}

/// T outputs of a line, any window.
template <int T, bool kPart, bool kEnd>
void tile_of_any(const Lines& s, std::int64_t line, std::int64_t x) {
  const Place p(s, line, x);
  const float* weights = s.weights;
  for (std::int64_t n = 0; n < s.vectors; ++n) {
    const std::int64_t at = n + 1 < s.vectors ? n * kLanes : s.last;
    V sums[1][T];
    const V start = s.bias ? hn::LoadU(d, s.bias + n * kLanes) : hn::Zero(d);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sums[0][t] = start;
    for (std::int64_t i = 0; i < s.kernel_h; ++i) {
      const std::int64_t y = i * s.dilation_h;
      const bool outside = kEnd && (p.y + y < 0 || p.y + y >= s.in_height);
      for (std::int64_t k = 0; k < s.kernel_w; ++k, weights += kLanes) {
        if (outside) continue;
        const V w = hn::LoadU(d, weights);
        const float* in = p.in + at + y * s.in_line + k * s.dilation_w * s.in_point;
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const std::int64_t j = t * s.stride_w;
          if (kEnd && (p.x + k * s.dilation_w + j < 0 || p.x + k * s.dilation_w + j >= s.in_width)) continue;
          sums[0][t] = hn::MulAdd(load<kPart>(in + j * s.in_point, s.channels), w, sums[0][t]);
        }
      }
    }
    finish_tile<1, T, kPart>(s, p, at, sums);
  }
}

/// In tiles of the size whose outputs exceed the line least.
template <class Window>
struct Widths {
  static constexpr int kLeastInside = 5;
  template <int R>
  static HWY_INLINE void run_line(const Lines& s, std::int64_t line) {
    const std::int64_t width = s.out_width;
    if (width < 4) return run_tiles<Window, R, 1>(s, line);
    if (width == 4 || (kLanes == 4 && width < 8)) return run_tiles<Window, R, 4>(s, line);
    if constexpr (kLanes > 4) {
      const auto cost = [&](std::int64_t t) { return width < t ? 1 << 20 : ceil_div(width, t) * (t + 1); };
      const auto eight = cost(8), seven = cost(7), five = cost(5);
      if (seven < eight && seven <= five) return run_tiles<Window, R, 7>(s, line);
      if (five < eight) return run_tiles<Window, R, 5>(s, line);
    }
    run_tiles<Window, R, 8>(s, line);
  }
};

// The tiles of windows (tiles-inl.h).
template <int K, int S, int kLinesAtOnce>
struct Taps : Widths<Taps<K, S, kLinesAtOnce>> {
  static constexpr int kLines = kLinesAtOnce;
  template <int R, int T, bool kEnd>
  static void run(const Lines& s, std::int64_t line, std::int64_t x) {
    tile<K, S, R, T, kEnd>(s, line, x);
  }
};
template <bool kPart>
struct Any : Widths<Any<kPart>> {
  static constexpr int kLines = 1;
  template <int R, int T, bool kEnd>
  static void run(const Lines& s, std::int64_t line, std::int64_t x) {
    tile_of_any<T, kPart, kEnd>(s, line, x);
  }
};

template <class Window>
void run_lines(const Lines& s) {
  run_all_lines<Window>(s);
  if (kWholeLines && s.stream) hwy::FlushStream();
}

}  // namespace

constexpr depthwise::Kernels kDepthwiseKernels{
    kLanes, run_lines<Any<false>>, run_lines<Any<true>>,
    // Two lines at once want 16 sums and the weights of two lines of taps in registers.
    run_lines<Taps<3, 1, kLanes == 16 ? 2 : 1>>, run_lines<Taps<3, 1, 1>>, run_lines<Taps<3, 2, 1>>,
    run_lines<Taps<5, 1, 1>>, run_lines<Taps<5, 2, 1>>};

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kKernels = LAMINA_CONSTANT_PER_ISA(kDepthwiseKernels);

const depthwise::Kernels& depthwise::kernels_for(Isa isa, std::int64_t channels) {
  // Narrow pictures take the vectors of a lesser instruction set, which they fill.
  while (isa != Isa::sse41 && channels < kKernels.at(isa).lanes) isa = Isa(static_cast<int>(isa) - 1);
  return kKernels.at(isa);
}
}  // namespace lamina
#endif
