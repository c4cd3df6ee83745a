/// Micro-kernels of matrix products; see gemm_tiles.h.
///
/// Registers of a kernel of R rows and N vectors, at one k:
///
///              b[k]: N vectors
///     a[0][k]  sums[0][0..N)
///     ...      ...                 each a[m][k] is broadcast and multiplied with the N vectors
///     a[R][k]  sums[R][0..N)
///
/// so (R + N) loads feed R * N multiply-adds. 12 x 2 sums of 32 registers (more rows leave no register for
/// their addresses), 6 x 2 or 4 x 3 of 16.
#include "kernels/native/gemm_tiles.h"

#include "kernels/native/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm_tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using gemm::Finish;
using gemm::Segment;
using gemm::Tile;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);
constexpr bool kManyRegisters = kLanes == 16;

/// What is due after the last k, for all of a kernel's columns.
template <int R, int N>
HWY_INLINE void finish_rows(const Tile& t, V (&sums)[R][N]) {
  if (t.accumulate) {
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v)
        sums[m][v] = hn::Add(sums[m][v], hn::LoadU(d, t.c[m] + t.c_offset + v * kLanes));
  }
  if (t.last && t.add) {
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v)
        sums[m][v] = hn::Add(sums[m][v], hn::LoadU(d, t.add[m] + t.c_offset + v * kLanes));
  }
  if (t.last && t.finish.kind == Finish::Kind::clamp) {
    // On x86 the second operand is kept when one is NaN.
    const V low = hn::Set(d, t.finish.low), high = hn::Set(d, t.finish.high);
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) sums[m][v] = hn::Min(high, hn::Max(low, sums[m][v]));
  } else if (t.last && t.finish.kind == Finish::Kind::leaky) {
    const V slope = hn::Set(d, t.finish.slope), zero = hn::Zero(d);
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v)
        sums[m][v] = hn::IfThenElse(hn::Lt(sums[m][v], zero), hn::Mul(sums[m][v], slope), sums[m][v]);
  }
#pragma GCC unroll 16
  for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) hn::StoreU(sums[m][v], d, t.c[m] + t.c_offset + v * kLanes);
}

/// The same for the first columns only, from a buffer of `vectors` per row.
HWY_NOINLINE void finish_some(const Tile& t, const float* sums, int rows, int vectors) {
  for (int m = 0; m < rows; ++m)
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t at = t.c_offset + v * kLanes, left = t.columns - v * kLanes;
      if (left <= 0) break;
      V x = hn::Load(d, sums + (m * vectors + v) * kLanes);
      if (t.accumulate) x = hn::Add(x, load_some(d, t.c[m] + at, left));
      if (t.last && t.add) x = hn::Add(x, load_some(d, t.add[m] + at, left));
      if (t.last && t.finish.kind == Finish::Kind::clamp)
        x = hn::Min(hn::Set(d, t.finish.high), hn::Max(hn::Set(d, t.finish.low), x));
      if (t.last && t.finish.kind == Finish::Kind::leaky)
        x = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, t.finish.slope)), x);
      store_some(x, d, t.c[m] + at, left);
    }
}

/// R rows by P panels of N vectors.
template <int R, int N, int P = 1>
void kernel(const Tile& t) {
  constexpr int kAll = N * P;
  V sums[R][kAll];
#pragma GCC unroll 8
  for (int v = 0; v < kAll; ++v) {
    const V bias = t.bias ? hn::LoadU(d, t.bias + v * kLanes) : hn::Zero(d);
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m) sums[m][v] = bias;
  }
  const float* rows[R];
#pragma GCC unroll 16
  for (int m = 0; m < R; ++m) rows[m] = t.a[m] + t.a_offset;
  for (std::int64_t s = 0; s < t.segment_count; ++s) {
    const Segment segment = t.segments[s];
    const float* b = t.b + segment.b * t.b_row;
    const float* a[R];
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m) a[m] = rows[m] + segment.a;
    for (std::int64_t k = 0; k < segment.length; ++k) {
      V row[kAll];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) row[p * N + v] = hn::LoadU(d, b + p * t.b_panel + v * kLanes);
      b += t.b_row;
#pragma GCC unroll 16
      for (int m = 0; m < R; ++m) {
        const V x = hn::Set(d, a[m][k]);
#pragma GCC unroll 8
        for (int v = 0; v < kAll; ++v) sums[m][v] = hn::MulAdd(x, row[v], sums[m][v]);
      }
    }
  }
  if (t.columns == kAll * kLanes) return finish_rows<R, kAll>(t, sums);
  HWY_ALIGN float buffer[R * kAll * kLanes];
#pragma GCC unroll 16
  for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < kAll; ++v) hn::Store(sums[m][v], d, buffer + (m * kAll + v) * kLanes);
  finish_some(t, buffer, R, kAll);
}

/// Four lanes of each of as many rows as a vector has blocks: block i holds row 4 * i's.
HWY_INLINE V load_blocks(const float* from, std::int64_t from_row) {
  const hn::FixedTag<float, 4> d4;
#if HWY_TARGET == HWY_SSE4
  static_cast<void>(from_row);
  return hn::LoadU(d4, from);
#else
  const hn::FixedTag<float, 8> d8;
  const auto low = hn::Combine(d8, hn::LoadU(d4, from + 4 * from_row), hn::LoadU(d4, from));
#if HWY_TARGET == HWY_AVX2
  return low;
#else
  return hn::Combine(
      d, hn::Combine(d8, hn::LoadU(d4, from + 12 * from_row), hn::LoadU(d4, from + 8 * from_row)), low);
#endif
#endif
}

/// One vector of columns.
void transpose_columns(const float* from, std::int64_t from_row, std::int64_t depth, float* to,
                       std::int64_t to_row) {
  const hn::RepartitionToWide<D> wide;
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const V r0 = load_blocks(from + k, from_row), r1 = load_blocks(from + from_row + k, from_row),
            r2 = load_blocks(from + 2 * from_row + k, from_row),
            r3 = load_blocks(from + 3 * from_row + k, from_row);
    const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1)),
               low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3)),
               high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1)),
               high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, to + k * to_row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, to + (k + 1) * to_row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, to + (k + 2) * to_row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, to + (k + 3) * to_row);
  }
  for (; k < depth; ++k)
    for (std::int64_t j = 0; j < kLanes; ++j) to[k * to_row + j] = from[j * from_row + k];
}

void pack_transposed(const float* from, std::int64_t from_row, std::int64_t depth, std::int64_t columns,
                     float* to, std::int64_t to_row) {
  std::int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes)
    transpose_columns(from + j * from_row, from_row, depth, to + j, to_row);
  if (j == columns) return;
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t i = 0; i < kLanes; ++i)
      to[k * to_row + j + i] = j + i < columns ? from[(j + i) * from_row + k] : 0.0f;
}

template <int R, int N>
void fill(gemm::Tiles& t) {
  if constexpr (R > 0) {
    t.kernels[N][R] = kernel<R, N>;
    fill<R - 1, N>(t);
  }
}

}  // namespace

gemm::Tiles make_gemm_tiles() {
  gemm::Tiles t{};
  t.lanes = static_cast<int>(kLanes);
  constexpr int kOne = 12, kTwo = kManyRegisters ? 12 : 6, kThree = kManyRegisters ? 6 : 4;
  t.strip = kOne;
  t.rows[1] = kOne;
  t.rows[2] = kTwo;
  t.rows[3] = kThree;
  fill<kOne, 1>(t);
  fill<kTwo, 2>(t);
  fill<kThree, 3>(t);
  t.wide_rows = 3;
  t.wide[1] = kernel<1, 2, 4>;
  t.wide_panels[1] = 4;
  if constexpr (kManyRegisters) {
    t.wide[2] = kernel<2, 2, 4>;
    t.wide[3] = kernel<3, 2, 4>;
    t.wide_panels[2] = t.wide_panels[3] = 4;
  } else {
    t.wide[2] = kernel<2, 2, 2>;
    t.wide[3] = kernel<3, 2, 2>;
    t.wide_panels[2] = t.wide_panels[3] = 2;
  }
  t.pack_transposed = pack_transposed;
  return t;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
HWY_EXPORT(make_gemm_tiles);
const gemm::Tiles& gemm::tiles() {
  static const Tiles all = (use_effective_isa(), HWY_DYNAMIC_DISPATCH(make_gemm_tiles)());
  return all;
}
}  // namespace lamina
#endif
