/// Copies rows of A in another order; see reorder.h.
#include "kernels/native/gemm/reorder.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/reorder.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using gemm::Reorder;

HWY_INLINE void copy_window(const std::uint8_t* from, const std::uint8_t* places, std::uint8_t* to) {
  const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const auto order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(places));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(bytes, order));
}

void copy(const Reorder& r, std::int64_t group, std::int64_t first, std::int64_t count, const std::byte* from,
          std::byte* to) {
  constexpr std::int64_t kWindow = Reorder::kWindow;
  const auto* starts = r.starts_of(group) + first;
  const auto* places = r.places_of(group) + first * kWindow;
  const auto* in = reinterpret_cast<const std::uint8_t*>(from);
  auto* out = reinterpret_cast<std::uint8_t*>(to);
  std::int64_t i = 0;
  if (starts[count] - starts[0] == count * Reorder::kLeastWords) {
#if HWY_TARGET <= HWY_AVX2
    for (; i + 2 <= count; i += 2, in += 2 * kWindow, places += 2 * kWindow, out += 2 * kWindow) {
      const auto bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
      const auto order = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_shuffle_epi8(bytes, order));
    }
#endif
    for (; i < count; ++i, in += kWindow, places += kWindow, out += kWindow) copy_window(in, places, out);
    return;
  }
  const auto others = r.windows * kWindow;  // from the places of the first words on
  for (; i < count; ++i, in += kWindow, places += kWindow) {
    const auto words = starts[i + 1] - starts[i];
    copy_window(in, places, out);
    if (words > Reorder::kLeastWords) copy_window(in, places + others, out + kWindow);
    out += words * 4;
  }
}

}  // namespace

gemm::ReorderLoops make_reorder_loops() { return {copy}; }

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(gemm::ReorderLoops, gemm::reorder_loops, make_reorder_loops)
}
#endif
