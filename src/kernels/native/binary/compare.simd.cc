#include <cstring>

#include "kernels/native/binary/compare.h"
#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/binary/compare.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using bits::Line;

using DF = hn::ScalableTag<float>;
constexpr DF df;
constexpr int kFloats = hn::MaxLanes(df);

HWY_INLINE std::uint32_t number_of(hn::Mask<DF> mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(df, mask, bytes);
  std::uint32_t number = bytes[0];
  if constexpr (kFloats == 16) number |= std::uint32_t{bytes[1]} << 8;
  return number;
}

void compare_line(const Line& s) {
  auto* out = s.out;
  for (std::int64_t i = 0; i < s.count; ++i) {
    const float* in = s.in + i * s.in_step;
    for (std::int64_t c = 0; c < s.channels; c += 32, out += 4) {
      const auto left = s.channels - c;
      std::uint32_t word = 0;
      LAMINA_UNROLL
      for (int k = 0; k < 32; k += kFloats) {
        if (k >= left) break;
        const auto x = left - k >= kFloats ? hn::LoadU(df, in + c + k) : load_some(df, in + c + k, left - k);
        word |= number_of(hn::Gt(x, hn::LoadU(df, s.limits + c + k))) << k;
      }
      std::memcpy(out, &word, sizeof word);
    }
  }
}

}  // namespace

bits::Compare make_compare_line() { return compare_line; }

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina::bits {

constexpr auto kMakeCompareLine = LAMINA_PER_ISA(make_compare_line);

Compare compare() {
  static const Compare best = kMakeCompareLine.best()();
  return best;
}

}  // namespace lamina::bits
#endif
