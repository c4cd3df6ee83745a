/// Products with few columns; see dots.h.
///
/// Sums of R rows and N columns, one vector each: (R + N) loads feed R * N multiply-adds. At the end, four
/// sums at a time become four numbers.
#include "kernels/native/gemm/dots.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/dots.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/add_lanes-inl.h"
#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using gemm::DotTile;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using D4 = hn::FixedTag<float, 4>;
using V4 = hn::Vec<D4>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);
constexpr gemm::DotShape kShape = gemm::dot_shape(static_cast<int>(kLanes));

template <int R, int N>
void kernel(const DotTile& t) {
  constexpr int kBases = (R + 3) / 4;
  V sums[R * N];
#pragma GCC unroll 32
  for (int i = 0; i < R * N; ++i) sums[i] = hn::Zero(d);
  const std::int64_t step1 = t.a_step, step3 = 3 * t.a_step;
  for (std::int64_t s = 0; s < t.segment_count; ++s) {
    const auto segment = t.segments[s];
    const float* a[kBases];  // rows 0, 4, 8
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) a[i] = t.a + segment.a + 4 * i * t.a_step;
    const float* b = t.b + segment.b;
    std::int64_t left = segment.length;
    for (; left >= kLanes; left -= kLanes, b += kLanes) {
      V column[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) column[n] = hn::LoadU(d, b + n * t.depth);
#pragma GCC unroll 32
      for (int m = 0; m < R; ++m) {
        const V x = hn::LoadU(d, a[m / 4] + (m % 4 == 3 ? step3 : m % 4 * step1));
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) sums[m * N + n] = hn::MulAdd(x, column[n], sums[m * N + n]);
      }
      // Compilers would make an address of every row if they saw these additions.
#pragma GCC unroll 4
      for (int i = 0; i < kBases; ++i) asm("add %1, %0" : "+r"(a[i]) : "i"(kLanes * 4) : "cc");
    }
    if (left > 0) {
      V column[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) column[n] = load_some(d, b + n * t.depth, left);
#pragma GCC unroll 32
      for (int m = 0; m < R; ++m) {
        const V x = load_some(d, a[m / 4] + (m % 4 == 3 ? step3 : m % 4 * step1), left);
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) sums[m * N + n] = hn::MulAdd(x, column[n], sums[m * N + n]);
      }
    }
  }
  constexpr int kPadded = (R * N + 3) / 4 * 4;
  HWY_ALIGN float numbers[kPadded];
  const D4 d4;
  const V zero = hn::Zero(d);
#pragma GCC unroll 8
  for (int i = 0; i < kPadded; i += 4) {
    V4 x = add_lanes(sums[i], i + 1 < R * N ? sums[i + 1] : zero, i + 2 < R * N ? sums[i + 2] : zero,
                     i + 3 < R * N ? sums[i + 3] : zero);
    if (t.bias) x = hn::Add(x, hn::LoadU(d4, t.bias + i));
    hn::Store(x, d4, numbers + i);
  }
  if (t.add)
    for (int m = 0; m < R; ++m)
      for (int n = 0; n < N; ++n) numbers[m * N + n] += t.add[m * t.add_step + n];
  const bool whole = kPadded == R * N && t.c_step == N;  // rows without gaps
  float* to = whole ? t.c : numbers;
#pragma GCC unroll 8
  for (int i = 0; i < kPadded; i += 4)
    hn::StoreU(finished(d4, t.finish, hn::Load(d4, numbers + i)), d4, to + i);
  if (whole) return;
  for (int m = 0; m < R; ++m)
    for (int n = 0; n < N; ++n) t.c[m * t.c_step + n] = numbers[m * N + n];
}

template <int N>
void fill(gemm::Dots& all) {
  if constexpr (N > 0) {
    all.kernels[N] = kernel<kShape.rows[N], N>;
    all.few[N] = kernel<gemm::kFewDotRows, N>;
    all.one[N] = kernel<1, N>;
    fill<N - 1>(all);
  }
}

}  // namespace

gemm::Dots make_dots() {
  gemm::Dots all{};
  all.shape = kShape;
  fill<kShape.columns>(all);
  return all;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(gemm::Dots, gemm::dots, make_dots)
}  // namespace lamina
#endif
