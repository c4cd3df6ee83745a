/// Products of few rows; see thin.h. Both kinds read B once, in the order in which it lies, several lists or
/// lines side by side: memory decides how long that takes.
#include "kernels/native/gemm/thin.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/thin.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/add_lanes-inl.h"
#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using gemm::ThinTile;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using D4 = hn::FixedTag<float, 4>;
constexpr D d;
constexpr D4 d4;
constexpr std::int64_t kLanes = hn::MaxLanes(d);
/// Lists that are read side by side.
constexpr std::int64_t kLists = 8;
/// How many of them R rows take at once, so that all sums stay in registers.
template <int R>
constexpr int kAtOnce = R > 1 && kLanes == 16 ? 8 : 4;

/// R rows from `m` on by kAtOnce<R> columns from `n` on, of which some may be behind the last.
template <int R>
HWY_INLINE void multiply_lists(const ThinTile& t, std::int64_t m, std::int64_t n) {
  constexpr int kC = kAtOnce<R>;
  V sums[R][kC];
  const float* b[kC];
#pragma GCC unroll 8
  for (int c = 0; c < kC; ++c) {
    b[c] = t.b + HWY_MIN(n + c, t.columns - 1) * t.b_step;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sums[r][c] = hn::Zero(d);
  }
  const float* a = t.a + m * t.a_step;
  std::int64_t k = 0;
  if constexpr (R == 1) {  // twice as many sums as lists: additions do not wait for each other
    V more[kC];
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) more[c] = hn::Zero(d);
    for (; k + 2 * kLanes <= t.depth; k += 2 * kLanes) {
      const V x = hn::LoadU(d, a + k), y = hn::LoadU(d, a + k + kLanes);
#pragma GCC unroll 8
      for (int c = 0; c < kC; ++c) {
        sums[0][c] = hn::MulAdd(x, hn::LoadU(d, b[c] + k), sums[0][c]);
        more[c] = hn::MulAdd(y, hn::LoadU(d, b[c] + k + kLanes), more[c]);
      }
    }
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) sums[0][c] = hn::Add(sums[0][c], more[c]);
  }
  for (; k + kLanes <= t.depth; k += kLanes) {
    V row[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) row[r] = hn::LoadU(d, a + r * t.a_step + k);
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) {
      const V x = hn::LoadU(d, b[c] + k);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r][c] = hn::MulAdd(x, row[r], sums[r][c]);
    }
  }
  if (const auto left = t.depth - k; left > 0) {
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) {
      const V x = load_some(d, b[c] + k, left);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        sums[r][c] = hn::MulAdd(x, load_some(d, a + r * t.a_step + k, left), sums[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int c = 0; c < kC; c += 4) {
      const auto at = n + c, left = HWY_MIN(t.columns - at, 4);
      if (left <= 0) break;
      auto x = add_lanes(sums[r][c], sums[r][c + 1], sums[r][c + 2], sums[r][c + 3]);
      if (t.bias) x = hn::Add(x, load_some(d4, t.bias + at, left));
      if (t.add) x = hn::Add(x, load_some(d4, t.add + (m + r) * t.add_step + at, left));
      x = finished(d4, t.finish, x);
      store_some(x, d4, t.c + (m + r) * t.c_step + at, left);
    }
}

template <int R>
void some_lists(const ThinTile& t, std::int64_t m, std::int64_t first, std::int64_t last) {
  for (auto n = first; n < last; n += kAtOnce<R>) multiply_lists<R>(t, m, n);
}

/// All rows for some lists before the next ones: these stay in L1.
void lists(const ThinTile& t) {
  for (std::int64_t n = 0; n < t.columns; n += kLists) {
    const auto end = HWY_MIN(n + kLists, t.columns);
    for (std::int64_t m = 0; m < t.rows;) {
      const auto left = t.rows - m;
      if (left >= 3 && left != 4) {
        some_lists<3>(t, m, n, end), m += 3;
      } else if (left >= 2) {
        some_lists<2>(t, m, n, end), m += 2;
      } else {
        some_lists<1>(t, m, n, end), m += 1;
      }
    }
  }
}

/// Vectors of columns that are summed at once.
constexpr std::int64_t kVectors = 8;
/// Lines that are on their way meanwhile.
constexpr std::int64_t kAhead = 6;

/// `columns` of a row, at most N vectors of them; more than N - 1.
template <int N>
HWY_INLINE void multiply_lines(const ThinTile& t, std::int64_t m, std::int64_t n, std::int64_t columns) {
  V sums[N];
  const auto rest = columns - (N - 1) * kLanes;
  const auto load = [&](const float* p, int v) HWY_ATTR {
    return v + 1 < N || rest == kLanes ? hn::LoadU(d, p + v * kLanes) : load_some(d, p + v * kLanes, rest);
  };
#pragma GCC unroll 16
  for (int v = 0; v < N; ++v) sums[v] = t.bias ? load(t.bias + n, v) : hn::Zero(d);
  const float* a = t.a + m * t.a_step;
  const float* b = t.b + n;
  const auto all = [&](const auto& load_b) HWY_ATTR {
    for (std::int64_t k = 0; k < t.depth; ++k, b += t.b_step) {
      const V x = hn::Set(d, a[k]);
#pragma GCC unroll 16
      for (int v = 0; v < N; ++v) {
        if (v * kLanes % 16 == 0) __builtin_prefetch(b + kAhead * t.b_step + v * kLanes);
        sums[v] = hn::MulAdd(x, load_b(v), sums[v]);
      }
    }
  };
  if (rest == kLanes)
    all([&](int v) HWY_ATTR { return hn::LoadU(d, b + v * kLanes); });
  else
    all([&](int v) HWY_ATTR { return load(b, v); });
#pragma GCC unroll 16
  for (int v = 0; v < N; ++v) {
    const auto at = n + v * kLanes, left = v + 1 < N ? kLanes : rest;
    if (t.add) sums[v] = hn::Add(sums[v], load(t.add + m * t.add_step + n, v));
    store_some(finished(d, t.finish, sums[v]), d, t.c + m * t.c_step + at, left);
  }
}

template <int N>
void rest_of_lines(const ThinTile& t, std::int64_t m, std::int64_t n) {
  if constexpr (N > 0) {
    const auto columns = t.columns - n;
    if (columns > (N - 1) * kLanes) return multiply_lines<N>(t, m, n, columns);
    rest_of_lines<N - 1>(t, m, n);
  }
}

void lines(const ThinTile& t) {
  constexpr auto kWidth = kVectors * kLanes;
  for (std::int64_t m = 0; m < t.rows; ++m) {
    std::int64_t n = 0;
    for (; n + kWidth <= t.columns; n += kWidth) multiply_lines<kVectors>(t, m, n, kWidth);
    rest_of_lines<kVectors>(t, m, n);
  }
}

}  // namespace

gemm::Thin make_thin() { return {lists, lines}; }

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(gemm::Thin, gemm::thin, make_thin)
}  // namespace lamina
#endif
