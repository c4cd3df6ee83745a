/// Transposes in vector code; see loops.h.
#include "kernels/native/move/loops.h"

#include <algorithm>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/move/loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// As many neighbours as a part of 128 bits has, or D if that is less: of lines 0, kBlock, 2 kBlock, ... in
/// one vector.
template <int kBlock, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> parts(D d, const T* src, std::int64_t line) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes == kBlock) {
    return hn::LoadU(d, src);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, parts<kBlock>(half, src + kLanes / 2 * line, line), parts<kBlock>(half, src, line));
  }
}

/// Side of the squares that are transposed within parts of 128 bits, or D if that is less.
template <class D>
inline constexpr int kSide = std::min<int>(hn::MaxLanes(D()), 16 / sizeof(hn::TFromD<D>));

/// As many lines as D has lanes, of which kSide neighbours each are read: each round of shuffles puts the
/// lines of one half between those of the other.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void block(D d, const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row) {
  constexpr int kBlock = kSide<D>;
  hn::Vec<D> a[kBlock], b[kBlock];
  LAMINA_UNROLL
  for (int i = 0; i < kBlock; ++i) a[i] = parts<kBlock>(d, src + i * src_column, src_column);
  LAMINA_UNROLL
  for (int round = 1; round < kBlock; round *= 2) {
    LAMINA_UNROLL
    for (int i = 0; i < kBlock / 2; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + kBlock / 2]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + kBlock / 2]);
    }
    LAMINA_UNROLL
    for (int i = 0; i < kBlock; ++i) a[i] = b[i];
  }
  LAMINA_UNROLL
  for (int i = 0; i < kBlock; ++i) hn::StoreU(a[i], d, dst + i * dst_row);
}

template <class T>
HWY_INLINE void one_by_one(const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row,
                           std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) dst[r * dst_row + c] = src[c * src_column + r];
}

/// In blocks of D, or of half of it where a side is shorter; the last blocks overlap those before.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void blocks(D d, const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row,
                       std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D()), kBlock = kSide<D>;
  if (rows < kBlock || columns < kLanes) {
    if constexpr (kLanes > 4)
      return blocks(hn::Half<D>(), src, src_column, dst, dst_row, rows, columns);
    else
      return one_by_one(src, src_column, dst, dst_row, rows, columns);
  }
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    if (c + kLanes > columns) c = columns - kLanes;
    for (std::int64_t r = 0; r < rows; r += kBlock) {
      if (r + kBlock > rows) r = rows - kBlock;
      block(d, src + c * src_column + r, src_column, dst + r * dst_row + c, dst_row);
    }
  }
}

/// kLines lines of `count` elements become `count` groups of kLines neighbours; in vectors of D, or of half
/// of it where there are fewer. The last vector overlaps the one before.
template <int kLines, class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave(D d, const T* src, std::int64_t line, T* dst, std::int64_t count) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  if (count < kLanes) {
    if constexpr (kLanes > 4)
      return interleave<kLines>(hn::Half<D>(), src, line, dst, count);
    else
      return one_by_one(src, line, dst, kLines, count, kLines);
  }
  for (std::int64_t i = 0; i < count; i += kLanes) {
    if (i + kLanes > count) i = count - kLanes;
    const auto a = hn::LoadU(d, src + i), b = hn::LoadU(d, src + line + i);
    if constexpr (kLines == 2) hn::StoreInterleaved2(a, b, d, dst + 2 * i);
    if constexpr (kLines == 3) hn::StoreInterleaved3(a, b, hn::LoadU(d, src + 2 * line + i), d, dst + 3 * i);
    if constexpr (kLines == 4)
      hn::StoreInterleaved4(a, b, hn::LoadU(d, src + 2 * line + i), hn::LoadU(d, src + 3 * line + i), d,
                            dst + 4 * i);
  }
}

template <int kLines, class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave(D d, const T* src, T* dst, std::int64_t line, std::int64_t count) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  if (count < kLanes) {
    if constexpr (kLanes > 4)
      return deinterleave<kLines>(hn::Half<D>(), src, dst, line, count);
    else
      return one_by_one(src, kLines, dst, line, kLines, count);
  }
  for (std::int64_t i = 0; i < count; i += kLanes) {
    if (i + kLanes > count) i = count - kLanes;
    hn::Vec<D> a, b, e, f;
    if constexpr (kLines == 2) hn::LoadInterleaved2(d, src + 2 * i, a, b);
    if constexpr (kLines == 3) hn::LoadInterleaved3(d, src + 3 * i, a, b, e);
    if constexpr (kLines == 4) hn::LoadInterleaved4(d, src + 4 * i, a, b, e, f);
    hn::StoreU(a, d, dst + i);
    hn::StoreU(b, d, dst + line + i);
    if constexpr (kLines > 2) hn::StoreU(e, d, dst + 2 * line + i);
    if constexpr (kLines > 3) hn::StoreU(f, d, dst + 3 * line + i);
  }
}

template <class T>
void transpose(const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row, std::int64_t rows,
               std::int64_t columns) {
  const hn::ScalableTag<T> d;
  if (dst_row == columns) {
    if (columns == 2) return interleave<2>(d, src, src_column, dst, rows);
    if (columns == 3) return interleave<3>(d, src, src_column, dst, rows);
    if (columns == 4) return interleave<4>(d, src, src_column, dst, rows);
  }
  if (src_column == rows) {
    if (rows == 2) return deinterleave<2>(d, src, dst, dst_row, columns);
    if (rows == 3) return deinterleave<3>(d, src, dst, dst_row, columns);
    if (rows == 4) return deinterleave<4>(d, src, dst, dst_row, columns);
  }
  blocks(d, src, src_column, dst, dst_row, rows, columns);
}

void fill(std::uint32_t value, std::uint32_t* dst, std::int64_t count) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto v = hn::Set(d, value);
  std::int64_t i = 0;
  for (; i + n <= count; i += n) hn::StoreU(v, d, dst + i);
  for (; i < count; ++i) dst[i] = value;
}

CopyLoops make_table() {
  CopyLoops t;
  t.transpose_bytes = transpose<std::uint8_t>;
  t.transpose_halves = transpose<std::uint16_t>;
  t.transpose_words = transpose<std::uint32_t>;
  t.fill = fill;
  return t;
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(CopyLoops, copy_loops, make_table)

}  // namespace lamina
#endif
