/// Copies rows of A in another order; see matched_order.h.
#include "kernels/native/gemm/matched_order.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/matched_order.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using gemm::MatchedOrder;
using gemm::MatchedRows;

HWY_INLINE void copy_window(const MatchedRows& r, const std::uint8_t* places, std::int64_t from,
                            std::int64_t to) {
  const auto order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(places));
  const auto* in = r.from + from;
  auto* out = r.to + to;
  for (std::int64_t i = 0; i < r.count; ++i, in += r.from_step, out += r.to_step)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)), order));
}

#if HWY_TARGET <= HWY_AVX2
/// Two that have the least words.
HWY_INLINE void copy_two_windows(const MatchedRows& r, const std::uint8_t* places, std::int64_t from,
                                 std::int64_t to) {
  const auto order = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places));
  const auto* in = r.from + from;
  auto* out = r.to + to;
  for (std::int64_t i = 0; i < r.count; ++i, in += r.from_step, out += r.to_step)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm256_shuffle_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)), order));
}
#endif

/// What a window writes too much, the next one overwrites. The first is one of a run.
void copy(const MatchedOrder& r, std::int64_t group, std::int64_t first, std::int64_t count,
          const MatchedRows& rows) {
  constexpr std::int64_t kWindow = MatchedOrder::kWindow, kLeast = MatchedOrder::kLeastWords;
  const auto* starts = r.starts_of(group) + first;
  const auto* places = r.places_of(group) + first * kWindow;
  const auto others = r.windows * kWindow;  // from the places of the first words on
  const auto words = [&](std::int64_t i) { return starts[i + 1] - starts[i]; };
  std::int64_t reaches_back = r.run - 1;  // the next window that does
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = i * kWindow, to = 4 * (starts[i] - starts[0]);
    const bool back = i == reaches_back && r.back != 0;
    if (i == reaches_back) reaches_back += r.run;
#if HWY_TARGET <= HWY_AVX2
    const bool next_back = i + 1 == reaches_back && r.back != 0;
    if (i + 1 < count && !back && !next_back && words(i) == kLeast && words(i + 1) == kLeast) {
      copy_two_windows(rows, places + at, at, to);
      if (++i == reaches_back) reaches_back += r.run;
      continue;
    }
#endif
    const auto from = back ? at - r.back : at;
    copy_window(rows, places + at, from, to);
    if (words(i) > kLeast) copy_window(rows, places + at + others, from, to + kWindow);
  }
}

}  // namespace

gemm::MatchedOrderLoops make_reorder_loops() { return {copy}; }

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(gemm::MatchedOrderLoops, gemm::matched_order_loops, make_reorder_loops)
}
#endif
