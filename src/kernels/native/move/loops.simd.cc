/// Transposes in vector code; see loops.h.
#include "kernels/native/move/loops.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/move/loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Word = std::uint32_t;
using Byte = std::uint8_t;

/// Four elements each of lines 0, 4, 8, ... in one vector.
template <class D>
HWY_INLINE hn::Vec<D> quarters(D d, const Word* src, std::int64_t line) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes == 4) {
    return hn::LoadU(d, src);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, quarters(half, src + kLanes / 2 * line, line), quarters(half, src, line));
  }
}

/// A square of as many lines as D has lanes: blocks of 4 x 4, in all 128-bit parts at once.
template <class D>
HWY_INLINE void square(D d, const Word* src, std::int64_t src_column, Word* dst, std::int64_t dst_row) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  using V = hn::Vec<D>;
  const hn::Repartition<std::uint64_t, D> d64;
  LAMINA_UNROLL
  for (int g = 0; g < kLanes; g += 4) {
    const V a = quarters(d, src + g, src_column), b = quarters(d, src + src_column + g, src_column);
    const V e = quarters(d, src + 2 * src_column + g, src_column),
            f = quarters(d, src + 3 * src_column + g, src_column);
    const auto ab_low = hn::BitCast(d64, hn::InterleaveLower(d, a, b)),
               ab_high = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
    const auto ef_low = hn::BitCast(d64, hn::InterleaveLower(d, e, f)),
               ef_high = hn::BitCast(d64, hn::InterleaveUpper(d, e, f));
    Word* to = dst + g * dst_row;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ef_low)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ef_low)), d, to + dst_row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ef_high)), d, to + 2 * dst_row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ef_high)), d, to + 3 * dst_row);
  }
}

/// 16 x 16 bytes: lines i and i + 8 are shuffled into each other, four times.
template <class D>
HWY_INLINE void square(D d, const Byte* src, std::int64_t src_column, Byte* dst, std::int64_t dst_row) {
  using V = hn::Vec<D>;
  V a[16], b[16];
  const auto shuffle = [&](const V(&from)[16], V(&to)[16]) HWY_ATTR {
    LAMINA_UNROLL
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = hn::InterleaveLower(d, from[i], from[i + 8]);
      to[2 * i + 1] = hn::InterleaveUpper(d, from[i], from[i + 8]);
    }
  };
  LAMINA_UNROLL
  for (int i = 0; i < 16; ++i) a[i] = hn::LoadU(d, src + i * src_column);
  shuffle(a, b);
  shuffle(b, a);
  shuffle(a, b);
  shuffle(b, a);
  LAMINA_UNROLL
  for (int i = 0; i < 16; ++i) hn::StoreU(a[i], d, dst + i * dst_row);
}

template <class T>
HWY_INLINE void one_by_one(const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row,
                           std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) dst[r * dst_row + c] = src[c * src_column + r];
}

/// In squares of D, or of half of it where a side is shorter; the last squares overlap those before.
template <class D, class T>
HWY_INLINE void squares(D d, const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row,
                        std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  if (rows < kLanes || columns < kLanes) {
    if constexpr (kLanes * sizeof(T) > 16)
      return squares(hn::Half<D>(), src, src_column, dst, dst_row, rows, columns);
    else
      return one_by_one(src, src_column, dst, dst_row, rows, columns);
  }
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    if (c + kLanes > columns) c = columns - kLanes;
    for (std::int64_t r = 0; r < rows; r += kLanes) {
      if (r + kLanes > rows) r = rows - kLanes;
      square(d, src + c * src_column + r, src_column, dst + r * dst_row + c, dst_row);
    }
  }
}

/// kLines lines of `count` elements become `count` groups of kLines neighbours.
template <int kLines, class T>
HWY_INLINE void interleave(const T* src, std::int64_t line, T* dst, std::int64_t count) {
  const hn::ScalableTag<T> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + n <= count; i += n) {
    const auto a = hn::LoadU(d, src + i), b = hn::LoadU(d, src + line + i);
    if constexpr (kLines == 2) hn::StoreInterleaved2(a, b, d, dst + 2 * i);
    if constexpr (kLines == 3) hn::StoreInterleaved3(a, b, hn::LoadU(d, src + 2 * line + i), d, dst + 3 * i);
    if constexpr (kLines == 4)
      hn::StoreInterleaved4(a, b, hn::LoadU(d, src + 2 * line + i), hn::LoadU(d, src + 3 * line + i), d,
                            dst + 4 * i);
  }
  one_by_one(src + i, line, dst + i * kLines, kLines, count - i, kLines);
}

template <int kLines, class T>
HWY_INLINE void deinterleave(const T* src, T* dst, std::int64_t line, std::int64_t count) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + n <= count; i += n) {
    V a, b, e, f;
    if constexpr (kLines == 2) hn::LoadInterleaved2(d, src + 2 * i, a, b);
    if constexpr (kLines == 3) hn::LoadInterleaved3(d, src + 3 * i, a, b, e);
    if constexpr (kLines == 4) hn::LoadInterleaved4(d, src + 4 * i, a, b, e, f);
    hn::StoreU(a, d, dst + i);
    hn::StoreU(b, d, dst + line + i);
    if constexpr (kLines > 2) hn::StoreU(e, d, dst + 2 * line + i);
    if constexpr (kLines > 3) hn::StoreU(f, d, dst + 3 * line + i);
  }
  one_by_one(src + i * kLines, kLines, dst + i, line, kLines, count - i);
}

template <class D, class T>
HWY_INLINE void transpose_any(D d, const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row,
                              std::int64_t rows, std::int64_t columns) {
  if (dst_row == columns) {
    if (columns == 2) return interleave<2>(src, src_column, dst, rows);
    if (columns == 3) return interleave<3>(src, src_column, dst, rows);
    if (columns == 4) return interleave<4>(src, src_column, dst, rows);
  }
  if (src_column == rows) {
    if (rows == 2) return deinterleave<2>(src, dst, dst_row, columns);
    if (rows == 3) return deinterleave<3>(src, dst, dst_row, columns);
    if (rows == 4) return deinterleave<4>(src, dst, dst_row, columns);
  }
  squares(d, src, src_column, dst, dst_row, rows, columns);
}

void transpose(const Word* src, std::int64_t src_column, Word* dst, std::int64_t dst_row, std::int64_t rows,
               std::int64_t columns) {
  transpose_any(hn::ScalableTag<Word>(), src, src_column, dst, dst_row, rows, columns);
}
void transpose_bytes(const Byte* src, std::int64_t src_column, Byte* dst, std::int64_t dst_row,
                     std::int64_t rows, std::int64_t columns) {
  transpose_any(hn::FixedTag<Byte, 16>(), src, src_column, dst, dst_row, rows, columns);
}

void fill(Word value, Word* dst, std::int64_t count) {
  const hn::ScalableTag<Word> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto v = hn::Set(d, value);
  std::int64_t i = 0;
  for (; i + n <= count; i += n) hn::StoreU(v, d, dst + i);
  for (; i < count; ++i) dst[i] = value;
}

CopyLoops make_table() {
  CopyLoops t;
  t.transpose = transpose;
  t.transpose_bytes = transpose_bytes;
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
