// The micro-kernel of matrix products for any arithmetic; see tiles.h. Include inside Highway units only,
// after hwy/highway.h.
//
// Registers of a kernel of R rows and N vectors, at one k:
//
//              b[k]: N vectors
//     a[0][k]  sums[0][0..N)
//     ...      ...                 each a[m][k] is broadcast and multiplied with the N vectors
//     a[R][k]  sums[R][0..N)
//
// so (R + N) loads feed R * N multiply-adds: 14 x 2 sums of 32 registers, 6 x 2 or 4 x 3 of 16. Four rows
// share an address, so that all addresses stay in registers.
//
// An arithmetic W has
//     kUnits, kIntegers            bytes of operands (Units); sums are i32
//     T, D, V                      sums, the tag of their vectors, and these
//     X broadcast(const std::byte*), Row load(const std::byte*)     a k of a row of A, of a vector of columns
//     multiply_add(X, Row, V& sum)
//     kProductsApart               they take a register before they are added
//     Sums                         the same of all arithmetics with such sums: T, D and finish()
//     finish(Tile, each)           what is done in registers with finished sums: each(function of a vector)
#if defined(LAMINA_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_TILES_INL
#undef LAMINA_TILES_INL
#else
#define LAMINA_TILES_INL
#endif

#include <hwy/highway.h>

#include "kernels/native/gemm/micro_kernel-inl.h"
#include "kernels/native/gemm/tiles.h"
#include "kernels/native/simd/vector_part-inl.h"
#include "kernels/native/stages/sum_rows.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

void finish_rows(const IntegerFinish& finish, const SumRows& rows);  // stages/sum_rows.simd.cc

namespace {

using gemm::Segment;
using gemm::Tile;

constexpr std::int64_t kLanes = hwy::HWY_NAMESPACE::MaxLanes(hwy::HWY_NAMESPACE::ScalableTag<float>());
constexpr bool kManyRegisters = kLanes == 16;
constexpr gemm::TileShape kShape = gemm::tile_shape(static_cast<int>(kLanes));
constexpr std::int64_t kWord = gemm::kWordBytes;

template <class T>
HWY_INLINE T* moved(T* p, std::int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(p) + bytes);
}

/// What is due after the last k, for all of a kernel's columns: `c` and `add` are where they begin. Only the
/// first `columns` are stored.
template <class W, int R, int N>
HWY_INLINE void store_rows(const Tile& t, typename W::V (&sums)[R][N], typename W::T* c,
                           const typename W::T* add, [[maybe_unused]] std::int64_t columns) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr typename W::D d;
  if (t.accumulate) {
    const typename W::T* from = c;
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m, from = moved(from, t.c_step))
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) sums[m][v] = hn::Add(sums[m][v], hn::LoadU(d, from + v * kLanes));
  }
  if (t.last) {
    if (t.add) {
#pragma GCC unroll 16
      for (int m = 0; m < R; ++m, add = moved(add, t.add_step))
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) sums[m][v] = hn::Add(sums[m][v], hn::LoadU(d, add + v * kLanes));
    }
    W::finish(t, [&](const auto& apply) HWY_ATTR {
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
      auto* to = c + v * kLanes;
#pragma GCC unroll 16
      for (int m = 0; m < R; ++m, to = moved(to, t.c_step)) hn::BlendedStore(sums[m][v], mask, d, to);
    }
    return;
  }
#endif
#pragma GCC unroll 16
  for (int m = 0; m < R; ++m, c = moved(c, t.c_step))
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) hn::StoreU(sums[m][v], d, c + v * kLanes);
}

/// Stores rows of sums from a buffer of `vectors` per row, touching no other columns. A template, so that the
/// code of one instruction set is not merged with that of another.
template <class W>
HWY_NOINLINE void store_some_rows(const Tile& t, const typename W::T* sums, int rows, int vectors,
                                  typename W::T* c, const typename W::T* add, std::int64_t columns) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr typename W::D d;
  for (int m = 0; m < rows; ++m, c = moved(c, t.c_step), add = t.add ? moved(add, t.add_step) : add)
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t left = columns - v * kLanes;
      if (left <= 0) break;
      auto x = hn::LoadU(d, sums + (m * vectors + v) * kLanes);
      if (t.accumulate) x = hn::Add(x, load_some(d, c + v * kLanes, left));
      if (t.last && t.add) x = hn::Add(x, load_some(d, add + v * kLanes, left));
      if (t.last) W::finish(t, [&](const auto& apply) HWY_ATTR { x = apply(x); });
      store_some(x, d, c + v * kLanes, left);
    }
}

/// All rows of a tile of a set; see store_rows.
template <class W, int R, int N>
HWY_INLINE void store(const Tile& t, typename W::V (&sums)[R][N], std::int64_t set, std::int64_t step) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = typename W::T;
  const std::int64_t column = step * N * kLanes, left = t.columns - column;
  auto* c = reinterpret_cast<T*>(t.c + set * t.c_move) + column;
  const auto* add = t.add ? reinterpret_cast<const T*>(t.add + set * t.add_move) + column : nullptr;
  const bool masked = HWY_TARGET <= HWY_AVX2 && !t.accumulate && !t.add;
  if (left >= N * kLanes || masked) return store_rows<W, R, N>(t, sums, c, add, left);
  HWY_ALIGN T buffer[R * N * kLanes];
#pragma GCC unroll 16
  for (int m = 0; m < R; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) hn::Store(sums[m][v], typename W::D(), buffer + (m * N + v) * kLanes);
  store_some_rows<typename W::Sums>(t, buffer, R, N, c, add, left);
}

/// Integers are finished and stored from a buffer: there are many kinds of that, and many kernels. So many
/// points, from those of a set on.
HWY_NOINLINE HWY_MAYBE_UNUSED void finish_tiles(const Tile& t, const std::int32_t* sums, std::int64_t points,
                                                std::int64_t sums_step, std::int64_t set, std::int64_t column,
                                                std::int64_t columns) {
  const auto out = t.integers.stored_bytes(), added = t.integers.added_bytes();
  HWY_NAMESPACE::finish_rows(t.integers,
                             {sums, sums_step, t.c + set * t.c_move + column * out, t.c_step,
                              t.add ? t.add + set * t.add_move + column * added : nullptr, t.add_step, points,
                              t.channel + column, HWY_MIN(columns, t.columns - column)});
}

/// That buffer. Tiles beside each other, then those below, are finished together where there is room: what
/// begins and ends such a call counts as much as a tile.
template <int R, int kWidth>
class HeldSums {
 public:
  HWY_INLINE explicit HeldSums(const Tile& t)
      : steps_(HWY_MIN(t.steps, kTiles)),
        sets_(steps_ == t.steps && joined(t) ? HWY_MIN(t.repeat, kTiles / steps_) : 1),
        row_(steps_ * kWidth) {}

  /// Buffer of the next tile, row_step() from row to row.
  HWY_INLINE std::int32_t* next() { return buffer_ + set_ * R * row_ + step_ * kWidth; }
  HWY_INLINE std::int64_t row_step() const { return row_; }
  /// Finishes the sums of a tile that are in the buffer.
  HWY_INLINE void put(const Tile& t, std::int64_t set, std::int64_t step) {
    if (++step_ < steps_ && step + 1 < t.steps) return;
    if (++set_ == sets_ || set + 1 == t.repeat) {
      finish_tiles(t, buffer_, R * set_, row_, set + 1 - set_, (step + 1 - step_) * kWidth, step_ * kWidth);
      set_ = 0;
    }
    step_ = 0;
  }

 private:
  static constexpr std::int64_t kTiles = HWY_MAX(1, gemm::kHeldSums / (R * kWidth));
  /// Sets follow each other as rows do.
  static HWY_INLINE bool joined(const Tile& t) {
    return t.c_move == R * t.c_step && (!t.add || t.add_move == R * t.add_step);
  }

  std::int64_t steps_, sets_, row_;  ///< tiles beside each other, below each other; sums of a row
  std::int64_t step_ = 0, set_ = 0;  ///< of the next tile
  HWY_ALIGN std::int32_t buffer_[kTiles * R * kWidth];
};

/// Where a kernel reads, in bytes: rows 0, 4, 8, ... of A and how far the three behind each are, and a row of
/// B.
template <int R>
struct Sources {
  static constexpr int kBases = (R + 3) / 4;
  const std::byte* a[kBases];
  std::int64_t a1, a3;
  const std::byte* b;
  std::int64_t b1, b3;  ///< one row of B further on, three

  /// Row m at k + u.
  HWY_INLINE const std::byte* a_at(int m, int u) const {
    const auto* base = a[m / 4] + u * kWord;
    return m % 4 == 0 ? base : m % 4 == 1 ? base + a1 : m % 4 == 2 ? base + 2 * a1 : base + a3;
  }
  HWY_INLINE const std::byte* b_at(int u) const {
    return u == 0 ? b : u == 1 ? b + b1 : u == 2 ? b + 2 * b1 : b + b3;
  }
  /// On to k + U. Compilers would make an address of every row if they saw these additions.
  template <int U>
  HWY_INLINE void advance(std::int64_t b_bytes) {
    asm("add %1, %0" : "+r"(b) : "rm"(b_bytes) : "cc");
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) asm("add %1, %0" : "+r"(a[i]) : "i"(U * kWord) : "cc");
    asm("" : "+r"(a1), "+r"(a3), "+r"(b1), "+r"(b3));
  }
};

/// Into L2, where lines come in pairs.
HWY_INLINE void fetch(const std::byte* from) {
#pragma GCC unroll 4
  for (int i = 0; i < (kManyRegisters ? 4 : 2); ++i) __builtin_prefetch(from + i * 128, 0, 2);
}

/// U values of k: P panels of N vectors, `b_panel` bytes apart.
template <class W, int R, int N, int P, int U>
HWY_INLINE void multiply(const Sources<R>& from, std::int64_t b_panel, typename W::V (&sums)[R][N * P]) {
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) {
    typename W::Row row[N * P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v)
        row[p * N + v] = W::load(from.b_at(u) + p * b_panel + v * kLanes * W::kUnits.cell);
#pragma GCC unroll 16
    for (int m = 0; m < R; ++m) {
      const auto x = W::broadcast(from.a_at(m, u));
#pragma GCC unroll 8
      for (int v = 0; v < N * P; ++v) W::multiply_add(x, row[v], sums[m][v]);
    }
  }
}

/// R rows by P panels of N vectors at once.
template <class W, int R, int N, int P = 1>
void kernel(const Tile& t) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = typename W::T;
  constexpr typename W::D d;
  constexpr int kAll = N * P;
  const auto* biases = static_cast<const T*>(t.bias);
  const Segment *first = t.segments, *last = first + t.segment_count - 1;
  Sources<R> from;  // moved on from segment to segment and back
#pragma GCC unroll 4
  for (int i = 0; i < from.kBases; ++i) from.a[i] = t.a + first->a * W::kUnits.element + 4 * i * t.a_step;
  from.a1 = t.a_step, from.a3 = 3 * t.a_step;
  from.b1 = t.b_row, from.b3 = 3 * t.b_row;
  const std::int64_t b_bytes = t.b_row, b_bytes4 = kUnroll * b_bytes;
  const auto* ahead = t.ahead;
  [[maybe_unused]] const bool finished = t.last && t.integers.stored != IntegerFinish::Stored::sums;
  [[maybe_unused]] HeldSums<R, kAll * kLanes> held(t);
  for (std::int64_t set = 0; set < t.repeat; ++set) {
    for (std::int64_t step = 0; step < t.steps; ++step) {
      typename W::V sums[R][kAll];
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v) {
        const auto bias = biases ? hn::LoadU(d, biases + (step * kAll + v) * kLanes) : hn::Zero(d);
#pragma GCC unroll 16
        for (int m = 0; m < R; ++m) sums[m][v] = bias;
      }
      const auto* panel = t.b + step * P * t.b_panel;
      for (const Segment* s = first;; ++s) {
        from.b = panel + s->b * t.b_row;
        std::int64_t k = s->length;
        for (; k >= kUnroll; k -= kUnroll) {
          if (kUnroll > 1 && ahead) {
            fetch(ahead);
            ahead += t.ahead_move;
          }
          multiply<W, R, N, P, kUnroll>(from, t.b_panel, sums);
          from.template advance<kUnroll>(b_bytes4);
        }
        for (; k > 0; --k) {
          multiply<W, R, N, P, 1>(from, t.b_panel, sums);
          from.template advance<1>(b_bytes);
        }
        std::int64_t move = ((s == last ? first : s + 1)->a - s->a) * W::kUnits.element - s->length * kWord;
        if (s == last && step + 1 == t.steps) move += t.a_move;
#pragma GCC unroll 4
        for (int i = 0; i < from.kBases; ++i) from.a[i] += move;
        if (s == last) break;
      }
      if constexpr (W::kIntegers) {
        if (finished) {
          auto* to = held.next();
#pragma GCC unroll 16
          for (int m = 0; m < R; ++m, to += held.row_step())
#pragma GCC unroll 8
            for (int v = 0; v < kAll; ++v) hn::Store(sums[m][v], d, to + v * kLanes);
          held.put(t, set, step);
          continue;
        }
      }
      store<W, R, kAll>(t, sums, set, step);
    }
  }
}

template <class W, int R, int N>
void fill(gemm::Tiles& t) {
  if constexpr (R > 0) {
    t.kernels[N][R] = kernel<W, R, N>;
    fill<W, R - 1, N>(t);
  }
}

template <class W, int R>
void fill_wide(gemm::Tiles& t) {
  if constexpr (R > 0) {
    if constexpr (constexpr int kPanels = kShape.panels[R]; kPanels > 1) t.wide[R] = kernel<W, R, 2, kPanels>;
    fill_wide<W, R - 1>(t);
  }
}

/// All kernels of an arithmetic.
template <class W>
gemm::Tiles all_tiles() {
  gemm::Tiles t{};
  t.shape = kShape;
  // Twelve sums, three vectors, a number of A and its products would be one too many for 16 registers.
  if (W::kProductsApart && !kManyRegisters) t.shape.rows[3] = 3;
  fill<W, kShape.rows[1], 1>(t);
  fill<W, kShape.rows[2], 2>(t);
  fill<W, kShape.rows[3], 3>(t);
  fill_wide<W, gemm::kMostRows>(t);
  return t;
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
