/// Micro-kernels of products of f32; see tiles.h.
#include "kernels/native/gemm/tiles.h"

#include <cstring>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/tiles.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/gemm/tiles-inl.h"
#include "kernels/native/simd/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;

struct Floats {
  static constexpr gemm::Units kUnits = gemm::units_of(gemm::Arithmetic::floats);
  static constexpr bool kIntegers = false, kProductsApart = false;
  using Sums = Floats;
  using T = float;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Row = V;

  static HWY_INLINE V broadcast(const std::byte* a) { return hn::Set(d, *reinterpret_cast<const float*>(a)); }
  static HWY_INLINE V load(const std::byte* b) { return hn::LoadU(d, reinterpret_cast<const float*>(b)); }
  static HWY_INLINE void multiply_add(V x, V y, V& sum) { multiply_add_floats(x, y, sum); }
  template <class Each>
  static HWY_INLINE void finish(const gemm::Tile& t, const Each& each) {
    finish_each(d, t.finish, each);
  }
};

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

}  // namespace

gemm::Tiles make_gemm_tiles() {
  auto t = all_tiles<Floats>();
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
