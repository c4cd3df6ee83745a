/// Products of few rows by lines of B; see thin.h.
///
/// B is read once, so the order in which it is read decides how long the product takes. Its lines may be far
/// apart: a few columns of all lines lie on as many pages as there are lines, and share few sets of the
/// caches. Therefore a product is cut into pieces of a few lines by many columns, which are read along the
/// lines, while the next piece is prefetched. Between pieces sums are kept in a buffer on the stack.
#include "kernels/native/gemm/thin.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/lines.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/gemm/micro_kernel-inl.h"
#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using gemm::ThinTile;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);

/// Fewer columns than a vector has lanes.
void multiply_narrow(const ThinTile& t) {
  const auto load = [&](const float* p) HWY_ATTR { return load_some(d, p, t.columns); };
  for (std::int64_t m = 0; m < t.rows; ++m) {
    V sum = t.bias ? load(t.bias) : hn::Zero(d);
    for (std::int64_t k = 0; k < t.depth; ++k)
      sum = hn::MulAdd(hn::Set(d, t.a[m * t.a_step + k]), load(t.b + k * t.b_step), sum);
    if (t.add) sum = hn::Add(sum, load(t.add + m * t.add_step));
    store_some(finished(d, t.finish, sum), d, t.c + m * t.c_step, t.columns);
  }
}

/// Rows of a tile at most.
constexpr std::int64_t kMostRows = 6;
/// Vectors of columns of a tile of R rows: its sums, vectors of B and numbers of A fill the registers.
template <int R>
constexpr int kVectors = R == 1         ? 8
                         : kLanes == 16 ? (R <= 3 ? 8 : 4)
                         : R == 2       ? 4
                         : R == 3       ? (kLanes == 8 ? 4 : 3)
                         : R == 4       ? (kLanes == 8 ? 3 : 2)
                                        : 2;
constexpr std::int64_t kHeldSums = gemm::kMostLineRows * gemm::kLineColumns;
/// Floats of B in a piece, which stay in L1 for all tiles of rows; least lines of it.
constexpr std::int64_t kPieceFloats = 4096, kLeastLines = 8;

/// Some lines of B by some columns and some rows of A.
struct Piece {
  const float *a, *b;  ///< at its first line; b: at its first column, too
  std::int64_t depth, columns;
  std::int64_t ahead;  ///< bytes from a line to the one that is fetched meanwhile
  bool first, last;    ///< of k
  float* c;
  const float *add, *bias;
  float* held;  ///< sums between pieces, tile by tile
};

using Bytes = const std::byte*;

HWY_INLINE const float* floats(Bytes p) { return reinterpret_cast<const float*>(p); }
/// Row or line `i` (0 to 3) from `first` on, which are `one` bytes apart.
HWY_INLINE const float* at(Bytes first, int i, std::int64_t one, std::int64_t three) {
  return floats(i == 0 ? first : i == 1 ? first + one : i == 2 ? first + 2 * one : first + three);
}

/// How far rows of A and lines of B are apart, in bytes, and three of them.
struct Steps {
  std::int64_t a1, a3, b1, b3;
};

/// U values of k of R rows by N vectors. `a4`: row 4; `next`: the line that is fetched meanwhile.
template <int R, int N, int U>
HWY_INLINE void multiply(Bytes a, Bytes a4, Bytes b_first, Bytes next, const Steps s, V (&sums)[R][N]) {
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) {
    const float *b = at(b_first, u, s.b1, s.b3), *ahead = at(next, u, s.b1, s.b3);
    const auto number = [=](int m) HWY_ATTR { return hn::Set(d, at(m < 4 ? a : a4, m % 4, s.a1, s.a3)[u]); };
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v)
      if (v * kLanes % 16 == 0) __builtin_prefetch(ahead + v * kLanes);
    if constexpr (R < N) {
      V numbers[R];
#pragma GCC unroll 8
      for (int m = 0; m < R; ++m) numbers[m] = number(m);
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) {
        const V x = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 8
        for (int m = 0; m < R; ++m)
          if constexpr (R == 1)  // x is used once: compilers multiply by the operand in memory
            sums[m][v] = hn::MulAdd(x, numbers[m], sums[m][v]);
          else
            multiply_add_floats(x, numbers[m], sums[m][v]);
      }
    } else {
      V columns[N];
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) columns[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 8
      for (int m = 0; m < R; ++m) {
        const V x = number(m);
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) multiply_add_floats(x, columns[v], sums[m][v]);
      }
    }
  }
}

/// Finishes the sums of a tile whose columns begin at `n` and stores them, but for the first `skip` columns.
template <int R, int N>
HWY_INLINE void store(const ThinTile& t, const Piece& p, std::int64_t n, std::int64_t skip, V (&sums)[R][N]) {
  if (p.add) {
#pragma GCC unroll 8
    for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v)
        sums[m][v] = hn::Add(sums[m][v], hn::LoadU(d, p.add + m * t.add_step + n + v * kLanes));
  }
  finish_each(d, t.finish, [&](const auto& apply) HWY_ATTR {
#pragma GCC unroll 8
    for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) sums[m][v] = apply(sums[m][v]);
  });
#pragma GCC unroll 8
  for (int m = 0; m < R; ++m) {
    float* c = p.c + m * t.c_step + n;
    if (skip == 0) {
      hn::StoreU(sums[m][0], d, c);
    } else {
      HWY_ALIGN float lanes[kLanes];
      hn::Store(sums[m][0], d, lanes);
      for (auto i = skip; i < kLanes; ++i) c[i] = lanes[i];
    }
#pragma GCC unroll 8
    for (int v = 1; v < N; ++v) hn::StoreU(sums[m][v], d, c + v * kLanes);
  }
}

/// `count` tiles of R rows by N vectors beside each other, the first from column `n` on. Of its results the
/// first `skip` are there already.
template <int R, int N>
HWY_NOINLINE void run_tiles(const ThinTile& t, const Piece& p, std::int64_t n, std::int64_t count,
                            std::int64_t skip, float* held) {
  const std::int64_t b_bytes = 4 * t.b_step;
  Steps steps{4 * t.a_step, 12 * t.a_step, 4 * t.b_step, 12 * t.b_step};
  for (std::int64_t i = 0; i < count; ++i, n += N * kLanes, held += R * N * kLanes) {
    V sums[R][N];
    if (p.first) {
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) {
        const V bias = p.bias ? hn::LoadU(d, p.bias + n + v * kLanes) : hn::Zero(d);
#pragma GCC unroll 8
        for (int m = 0; m < R; ++m) sums[m][v] = bias;
      }
    } else {
#pragma GCC unroll 8
      for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) sums[m][v] = hn::Load(d, held + (m * N + v) * kLanes);
    }
    auto a = reinterpret_cast<Bytes>(p.a), a4 = a + 4 * steps.a1;
    auto b = reinterpret_cast<Bytes>(p.b + n), next = b + p.ahead;
    // Moves the pointers to other k. In asm, since compilers would compute an address for every row instead.
    const auto advance = [&](std::int64_t a_bytes, std::int64_t b_bytes) HWY_ATTR {
      asm("add %1, %0" : "+r"(a) : "ri"(a_bytes) : "cc");
      if constexpr (R > 4) asm("add %1, %0" : "+r"(a4) : "ri"(a_bytes) : "cc");
      asm("add %1, %0" : "+r"(b) : "rm"(b_bytes) : "cc");
      asm("add %1, %0" : "+r"(next) : "rm"(b_bytes) : "cc");
      asm("" : "+r"(steps.a1), "+r"(steps.a3), "+r"(steps.b1), "+r"(steps.b3));
    };
    std::int64_t k = p.depth;
    for (; k >= kUnroll; k -= kUnroll) {
      multiply<R, N, kUnroll>(a, a4, b, next, steps, sums);
      advance(4 * kUnroll, kUnroll * b_bytes);
    }
    for (; k > 0; --k) {
      multiply<R, N, 1>(a, a4, b, next, steps, sums);
      advance(4, b_bytes);
    }
    if (p.last) {
      store<R, N>(t, p, n, i == 0 ? skip : 0, sums);
    } else {
#pragma GCC unroll 8
      for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) hn::Store(sums[m][v], d, held + (m * N + v) * kLanes);
    }
  }
}

/// The columns from `n` on, at most N vectors of them. Where the last vector would end behind the last
/// column, a tile begins before `n`.
template <int R, int N>
void run_rest(const ThinTile& t, const Piece& p, std::int64_t n, float* held) {
  if constexpr (N > 0) {
    const auto left = p.columns - n;
    if (left <= (N - 1) * kLanes) return run_rest<R, N - 1>(t, p, n, held);
    const auto first = p.columns - N * kLanes;
    if (first >= 0) return run_tiles<R, N>(t, p, first, 1, n - first, held);
    if constexpr (N > 1) {  // hence n is 0
      run_tiles<R, N - 1>(t, p, n, 1, 0, held);
      run_tiles<R, 1>(t, p, p.columns - kLanes, 1, N * kLanes - p.columns, held + R * (N - 1) * kLanes);
    }
  }
}

/// R rows by all columns of a piece.
template <int R>
void run_rows(const ThinTile& t, const Piece& p) {
  constexpr int N = kVectors<R>;
  constexpr std::int64_t kWidth = N * kLanes;
  auto tiles = p.columns / kWidth;
  // A tile of one vector would have too few sums: then the last ones share their columns.
  const auto left = p.columns - tiles * kWidth;
  const bool share = N > 2 && tiles > 0 && left > 0 && left <= kLanes;
  if (share) --tiles;
  auto n = tiles * kWidth;
  float* held = p.held + R * n;
  if (tiles > 0) run_tiles<R, N>(t, p, 0, tiles, 0, p.held);
  if (share) {
    run_tiles<R, 2>(t, p, n, 1, 0, held);
    n += 2 * kLanes;
    held += R * 2 * kLanes;
  }
  run_rest<R, N>(t, p, n, held);
}

/// Rows of a part: 1 to kMostRows.
void run_rows(const ThinTile& t, const Piece& p, std::int64_t rows) {
  switch (rows) {
    case 1:
      return run_rows<1>(t, p);
    case 2:
      return run_rows<2>(t, p);
    case 3:
      return run_rows<3>(t, p);
    case 4:
      return run_rows<4>(t, p);
    case 5:
      return run_rows<5>(t, p);
    default:
      return run_rows<6>(t, p);
  }
}

/// At most kMostLineRows rows from `m` on, by at most kLineColumns columns from `n` on: lines block by block.
void run_columns(const ThinTile& t, std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t columns) {
  HWY_ALIGN float held[kHeldSums];
  // The same columns of wide lines share few sets of L1, so pieces have as few lines as if all columns
  // counted.
  const auto width = HWY_MAX(columns, HWY_MIN(t.b_step, gemm::kLineColumns));
  const auto most = HWY_MAX(kLeastLines, kPieceFloats / width);
  const auto pieces = (t.depth + most - 1) / most;
  const auto lines = pieces > 1 ? ((t.depth + pieces - 1) / pieces + 3) / 4 * 4 : HWY_MAX(1, t.depth);
  const auto parts = (rows + kMostRows - 1) / kMostRows;
  Piece p;
  p.columns = columns;
  p.ahead = 4 * lines * t.b_step;
  p.bias = t.bias ? t.bias + n : nullptr;
  for (std::int64_t k = 0; k == 0 || k < t.depth; k += lines) {
    p.b = t.b + k * t.b_step + n;
    p.depth = HWY_MIN(lines, t.depth - k);
    p.first = k == 0, p.last = k + p.depth == t.depth;
    p.held = held;
    for (std::int64_t part = 0, first = m; part < parts; ++part) {
      const auto count = (m + rows - first) / (parts - part);
      p.a = t.a + first * t.a_step + k;
      p.c = t.c + first * t.c_step + n;
      p.add = t.add ? t.add + first * t.add_step + n : nullptr;
      run_rows(t, p, count);
      p.held += count * ((columns + kLanes - 1) / kLanes * kLanes);
      first += count;
    }
  }
}

}  // namespace

void multiply_lines(const ThinTile& t) {
  if (t.columns < kLanes) return multiply_narrow(t);
  const auto groups = (t.rows + gemm::kMostLineRows - 1) / gemm::kMostLineRows;
  for (std::int64_t group = 0, m = 0; group < groups; ++group) {
    const auto rows = (t.rows - m) / (groups - group);
    for (std::int64_t n = 0; n < t.columns;) {
      // The last two blocks are about equal: none is narrower than a vector.
      const auto left = t.columns - n;
      const auto columns = left <= gemm::kLineColumns       ? left
                           : left >= 2 * gemm::kLineColumns ? gemm::kLineColumns
                                                            : (left / 2 + 63) / 64 * 64;
      run_columns(t, m, rows, n, columns);
      n += columns;
    }
    m += rows;
  }
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
