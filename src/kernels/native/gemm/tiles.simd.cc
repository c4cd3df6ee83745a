/// Micro-kernels of matrix products; see tiles.h.
///
/// Registers of a kernel of R rows and N vectors, at one k:
///
///              b[k]: N vectors
///     a[0][k]  sums[0][0..N)
///     ...      ...                 each a[m][k] is broadcast and multiplied with the N vectors
///     a[R][k]  sums[R][0..N)
///
/// so (R + N) loads feed R * N multiply-adds: 14 x 2 sums of 32 registers, 6 x 2 or 4 x 3 of 16. Four rows
/// share an address, so that all addresses stay in registers.
#include "kernels/native/gemm/tiles.h"

#include <cstring>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/tiles.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using gemm::Segment;
using gemm::Tile;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);
constexpr bool kManyRegisters = kLanes == 16;
constexpr gemm::TileShape kShape = gemm::tile_shape(static_cast<int>(kLanes));
/// k per turn of a kernel's loop: fewer instructions that are not multiply-adds, which count where two
/// threads share a core.
constexpr int kUnroll = HWY_TARGET <= HWY_AVX2 ? 4 : 1;

/// What is due after the last k, for all of a kernel's columns: `c` and `add` are where they begin. Only the
/// first `columns` are stored.
template <int R, int N>
HWY_INLINE void finish_rows(const Tile& t, V (&sums)[R][N], float* c, const float* add,
                            [[maybe_unused]] std::int64_t columns) {
  if (t.accumulate) {
    const float* from = c;
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m, from += t.c_step)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) sums[m][v] = hn::Add(sums[m][v], hn::LoadU(d, from + v * kLanes));
  }
  if (t.last) {
    if (t.add) {
#pragma GCC unroll 16
      for (int m = 0; m < R; ++m, add += t.add_step)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) sums[m][v] = hn::Add(sums[m][v], hn::LoadU(d, add + v * kLanes));
    }
    finish_each(d, t.finish, [&](const auto& apply) HWY_ATTR {
#pragma GCC unroll 16
      for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) sums[m][v] = apply(sums[m][v]);
    });
  }
#if HWY_TARGET <= HWY_AVX2
  if (columns < N * kLanes) {
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
      const auto left = columns - v * kLanes;
      const auto mask = hn::FirstN(d, static_cast<std::size_t>(left < 0 ? 0 : left > kLanes ? kLanes : left));
      float* to = c + v * kLanes;
#pragma GCC unroll 16
      for (int m = 0; m < R; ++m, to += t.c_step) hn::BlendedStore(sums[m][v], mask, d, to);
    }
    return;
  }
#endif
#pragma GCC unroll 16
  for (int m = 0; m < R; ++m, c += t.c_step)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) hn::StoreU(sums[m][v], d, c + v * kLanes);
}

/// The same from a buffer of `vectors` per row, touching no other columns.
HWY_NOINLINE void finish_some(const Tile& t, const float* sums, int rows, int vectors, float* c,
                              const float* add, std::int64_t columns) {
  for (int m = 0; m < rows; ++m, c += t.c_step, add += t.add ? t.add_step : 0)
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t left = columns - v * kLanes;
      if (left <= 0) break;
      V x = hn::LoadU(d, sums + (m * vectors + v) * kLanes);
      if (t.accumulate) x = hn::Add(x, load_some(d, c + v * kLanes, left));
      if (t.last && t.add) x = hn::Add(x, load_some(d, add + v * kLanes, left));
      if (t.last) x = finished(d, t.finish, x);
      store_some(x, d, c + v * kLanes, left);
    }
}

/// Where a kernel reads: rows 0, 4, 8, ... of A and how far the three behind each are, and a row of B.
template <int R>
struct Sources {
  static constexpr int kBases = (R + 3) / 4;
  const float* a[kBases];
  std::int64_t a1, a3;
  const float* b;
  std::int64_t b1, b3;  ///< one row of B further on, three

  /// Row m at k + u.
  HWY_INLINE const float* a_at(int m, int u) const {
    const float* base = a[m / 4] + u;
    return m % 4 == 0 ? base : m % 4 == 1 ? base + a1 : m % 4 == 2 ? base + 2 * a1 : base + a3;
  }
  HWY_INLINE const float* b_at(int u) const {
    return u == 0 ? b : u == 1 ? b + b1 : u == 2 ? b + 2 * b1 : b + b3;
  }
  /// On to k + U. Compilers would make an address of every row if they saw these additions.
  template <int U>
  HWY_INLINE void advance(std::int64_t b_bytes) {
    asm("add %1, %0" : "+r"(b) : "rm"(b_bytes) : "cc");
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) asm("add %1, %0" : "+r"(a[i]) : "i"(U * sizeof(float)) : "cc");
    asm("" : "+r"(a1), "+r"(a3), "+r"(b1), "+r"(b3));
  }
};

/// Into L2, where lines come in pairs.
HWY_INLINE void fetch(const char* from) {
#pragma GCC unroll 4
  for (int i = 0; i < (kManyRegisters ? 4 : 2); ++i) __builtin_prefetch(from + i * 128, 0, 2);
}

/// sum += x * y, in the register of `sum`: compilers would move sums about.
HWY_INLINE void multiply_add(V x, V y, V& sum) {
#if HWY_TARGET <= HWY_AVX2
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(y.raw));
#else
  sum = hn::MulAdd(x, y, sum);
#endif
}

/// U values of k: P panels of N vectors, `b_panel` floats apart.
template <int R, int N, int P, int U>
HWY_INLINE void multiply(const Sources<R>& from, std::int64_t b_panel, V (&sums)[R][N * P]) {
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) {
    V row[N * P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) row[p * N + v] = hn::LoadU(d, from.b_at(u) + p * b_panel + v * kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m) {
      const V x = hn::Set(d, *from.a_at(m, u));
#pragma GCC unroll 8
      for (int v = 0; v < N * P; ++v) multiply_add(x, row[v], sums[m][v]);
    }
  }
}

/// R rows by P panels of N vectors at once.
template <int R, int N, int P = 1>
void kernel(const Tile& t) {
  constexpr int kAll = N * P;
  const Segment *first = t.segments, *last = first + t.segment_count - 1;
  Sources<R> from;  // moved on from segment to segment and back
#pragma GCC unroll 4
  for (int i = 0; i < from.kBases; ++i) from.a[i] = t.a + first->a + 4 * i * t.a_step;
  from.a1 = t.a_step, from.a3 = 3 * t.a_step;
  from.b1 = t.b_row, from.b3 = 3 * t.b_row;
  const std::int64_t b_bytes = t.b_row * static_cast<std::int64_t>(sizeof(float)),
                     b_bytes4 = kUnroll * b_bytes;
  const char* ahead = reinterpret_cast<const char*>(t.ahead);
  for (std::int64_t set = 0; set < t.repeat; ++set) {
    for (std::int64_t step = 0; step < t.steps; ++step) {
      V sums[R][kAll];
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v) {
        const V bias = t.bias ? hn::LoadU(d, t.bias + (step * kAll + v) * kLanes) : hn::Zero(d);
#pragma GCC unroll 16
        for (int m = 0; m < R; ++m) sums[m][v] = bias;
      }
      const float* panel = t.b + step * P * t.b_panel;
      for (const Segment* s = first;; ++s) {
        from.b = panel + s->b * t.b_row;
        std::int64_t k = s->length;
        for (; k >= kUnroll; k -= kUnroll) {
          if (kUnroll > 1 && ahead) {
            fetch(ahead);
            ahead += t.ahead_move;
          }
          multiply<R, N, P, kUnroll>(from, t.b_panel, sums);
          from.template advance<kUnroll>(b_bytes4);
        }
        for (; k > 0; --k) {
          multiply<R, N, P, 1>(from, t.b_panel, sums);
          from.template advance<1>(b_bytes);
        }
        std::int64_t move = (s == last ? first : s + 1)->a - s->a - s->length;
        if (s == last && step + 1 == t.steps) move += t.a_move;
#pragma GCC unroll 4
        for (int i = 0; i < from.kBases; ++i) from.a[i] += move;
        if (s == last) break;
      }
      const std::int64_t column = step * kAll * kLanes, left = t.columns - column;
      float* c = t.c + column + set * t.c_move;
      const float* add = t.add ? t.add + column + set * t.add_move : nullptr;
      const bool masked = HWY_TARGET <= HWY_AVX2 && !t.accumulate && !t.add;
      if (left >= kAll * kLanes || masked) {
        finish_rows<R, kAll>(t, sums, c, add, left);
        continue;
      }
      float buffer[R * kAll * kLanes];
#pragma GCC unroll 16
      for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < kAll; ++v) hn::StoreU(sums[m][v], d, buffer + (m * kAll + v) * kLanes);
      finish_some(t, buffer, R, kAll, c, add, left);
    }
  }
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
    for (std::int64_t j = 0; j < kLanes; ++j)
      std::memcpy(to + k * to_row + j, from + j * from_row + k, sizeof(float));
}

void pack_transposed(const float* from, std::int64_t from_row, std::int64_t depth, std::int64_t columns,
                     float* to, std::int64_t to_row) {
  std::int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes)
    transpose_columns(from + j * from_row, from_row, depth, to + j, to_row);
  if (j == columns) return;
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t i = 0; i < kLanes; ++i)
      if (j + i < columns)
        std::memcpy(to + k * to_row + j + i, from + (j + i) * from_row + k, sizeof(float));
      else
        to[k * to_row + j + i] = 0;
}

template <int R, int N>
void fill(gemm::Tiles& t) {
  if constexpr (R > 0) {
    t.kernels[N][R] = kernel<R, N>;
    fill<R - 1, N>(t);
  }
}

template <int R>
void fill_wide(gemm::Tiles& t) {
  if constexpr (R > 0) {
    if constexpr (constexpr int kPanels = kShape.panels[R]; kPanels > 1) t.wide[R] = kernel<R, 2, kPanels>;
    fill_wide<R - 1>(t);
  }
}

}  // namespace

gemm::Tiles make_gemm_tiles() {
  gemm::Tiles t{};
  t.shape = kShape;
  fill<kShape.rows[1], 1>(t);
  fill<kShape.rows[2], 2>(t);
  fill<kShape.rows[3], 3>(t);
  fill_wide<gemm::kMostRows>(t);
  t.pack_transposed = pack_transposed;
  return t;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(gemm::Tiles, gemm::tiles, make_gemm_tiles)
}  // namespace lamina
#endif
