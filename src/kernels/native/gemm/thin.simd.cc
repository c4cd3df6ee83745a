/// Products of few rows; see thin.h. B is read once, in the order in which it lies, several lists side by
/// side: memory decides how long that takes. Lines have a unit of their own (lines.simd.cc).
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
void multiply_lines(const gemm::ThinTile& t);  // lines.simd.cc

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

}  // namespace

gemm::Thin make_thin() { return {lists, multiply_lines}; }

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(gemm::Thin, gemm::thin, make_thin)
}  // namespace lamina
#endif
