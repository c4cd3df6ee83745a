/// Means of integers of 8 bits in vector code; see loops.h.
#include "kernels/native/pooling/loops.h"

#include <type_traits>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/pooling/byte_means.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kMostIn16Bits = 257;  ///< numbers of 8 bits, of which 16 hold the sum

/// A window as offsets from its first position: a line's positions each, or lines of many.
struct Window {
  static constexpr std::int64_t kList = 64;
  std::int64_t offsets[kList];
  std::int64_t listed = 0;  ///< 0: as below
  std::int64_t rows_z = 0, rows_y = 0, count = 0;
  std::int64_t z_step = 0, y_step = 0, x_step = 0;  ///< bytes
  std::int32_t unbiased = 0;  ///< what is taken from sums of signed numbers that were read as unsigned ones
  float divisor = 1;

  HWY_INLINE Window(const PoolRow& r, const PoolRange& x, bool is_signed)
      : rows_z(r.z.count),
        rows_y(r.y.count),
        count(x.count),
        z_step(r.z.step * r.z_stride),
        y_step(r.y.step * r.y_stride),
        x_step(x.step * r.channels) {
    const auto size = rows_z * rows_y * count;
    const auto n = r.exclude_pad ? size : static_cast<std::int64_t>(r.z.framed) * r.y.framed * x.framed;
    if (n > 0) divisor = static_cast<float>(n);
    if (is_signed) unbiased = static_cast<std::int32_t>(128 * size);
    if (size > kList) return;
    for (std::int64_t z = 0; z < rows_z; ++z)
      for (std::int64_t y = 0; y < rows_y; ++y)
        for (std::int64_t i = 0; i < count; ++i) offsets[listed++] = z * z_step + y * y_step + i * x_step;
  }
};

/// sums / divisor, rounded once where there is an instruction for a product and a sum.
template <class V>
HWY_INLINE V quotient(V sums, V divisor, [[maybe_unused]] V inverse) {
#if HWY_TARGET == HWY_SSE4
  return hn::Div(sums, divisor);
#else
  const auto near = hn::Mul(sums, inverse);
  return hn::MulAdd(hn::NegMulAdd(near, divisor, sums), inverse, near);
#endif
}

/// `pixels` windows that are the same but for their place.
struct Same {
  std::int64_t in_step, out_step;
};

/// What lies at `at`, signed numbers as unsigned ones, to kVectors sums of each window.
template <bool kSigned, int kVectors, int kParts, class D>
HWY_INLINE void add_to(D d16, hn::Vec<D> (&part)[kParts], const Same& same, const std::uint8_t* at) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  const hn::Rebind<std::uint8_t, D> d8;
  LAMINA_UNROLL
  for (int k = 0; k < kParts; ++k) {
    auto v = hn::LoadU(d8, at + k / kVectors * same.in_step + k % kVectors * kLanes);
    if constexpr (kSigned) v = hn::Xor(v, hn::Set(d8, 0x80));
    part[k] = hn::Add(part[k], hn::PromoteTo(d16, v));
  }
}

/// As many channels of kPixels windows as kVectors vectors of 16 bits have lanes.
template <bool kSigned, int kPixels, int kVectors, class D>
HWY_INLINE void channels_of(D d16, const Window& w, const Same& same, const std::uint8_t* in, float* out) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  constexpr int kParts = kPixels * kVectors;
  const hn::Half<D> half;
  const hn::Repartition<std::int32_t, D> d32;
  const hn::Rebind<float, decltype(d32)> df;
  hn::Vec<D> part[kParts];
  for (auto& p : part) p = hn::Zero(d16);
  const auto add = [&](const std::uint8_t* at) HWY_ATTR { add_to<kSigned, kVectors>(d16, part, same, at); };
  const auto low = [&](int k) HWY_ATTR { return hn::PromoteTo(d32, hn::LowerHalf(half, part[k])); };
  const auto high = [&](int k) HWY_ATTR { return hn::PromoteTo(d32, hn::UpperHalf(half, part[k])); };
  const auto divisor = hn::Set(df, w.divisor), inverse = hn::Set(df, 1.0f / w.divisor);
  const auto store = [&](hn::Vec<decltype(d32)> sums, float* to) HWY_ATTR {
    if constexpr (kSigned) sums = hn::Sub(sums, hn::Set(d32, w.unbiased));
    hn::StoreU(quotient(hn::ConvertTo(df, sums), divisor, inverse), df, to);
  };
  const auto to = [&](int k) { return out + k / kVectors * same.out_step + k % kVectors * kLanes; };
  if (w.listed > 0) {
    for (std::int64_t i = 0; i < w.listed; ++i) add(in + w.offsets[i]);
    LAMINA_UNROLL
    for (int k = 0; k < kParts; ++k) {
      store(low(k), to(k));
      store(high(k), to(k) + kLanes / 2);
    }
    return;
  }
  hn::Vec<decltype(d32)> sums[2 * kParts];
  for (auto& s : sums) s = hn::Zero(d32);
  auto room = kMostIn16Bits;
  const auto empty_parts = [&]() HWY_ATTR {
    LAMINA_UNROLL
    for (int k = 0; k < kParts; ++k) {
      sums[2 * k] = hn::Add(sums[2 * k], low(k));
      sums[2 * k + 1] = hn::Add(sums[2 * k + 1], high(k));
      part[k] = hn::Zero(d16);
    }
    room = kMostIn16Bits;
  };
  for (std::int64_t z = 0; z < w.rows_z; ++z)
    for (std::int64_t y = 0; y < w.rows_y; ++y) {
      const auto* at = in + z * w.z_step + y * w.y_step;
      for (std::int64_t x = 0; x < w.count; ++x, at += w.x_step) {
        add(at);
        if (--room == 0) empty_parts();
      }
    }
  empty_parts();
  LAMINA_UNROLL
  for (int k = 0; k < kParts; ++k) {
    store(sums[2 * k], to(k));
    store(sums[2 * k + 1], to(k) + kLanes / 2);
  }
}

template <bool kSigned>
float mean_of(const Window& w, const std::uint8_t* in) {
  using T = std::conditional_t<kSigned, std::int8_t, std::uint8_t>;
  std::int64_t sum = 0;
  for (std::int64_t z = 0; z < w.rows_z; ++z)
    for (std::int64_t y = 0; y < w.rows_y; ++y)
      for (std::int64_t x = 0; x < w.count; ++x)
        sum += static_cast<T>(in[z * w.z_step + y * w.y_step + x * w.x_step]);
  return static_cast<float>(sum) / w.divisor;
}

/// All channels of kPixels windows, in vectors of D or, when there are fewer, of half of it. The last vector
/// overlaps the one before.
template <bool kSigned, int kPixels, class D>
HWY_INLINE void windows(D d, const Window& w, const Same& same, std::int64_t channels, const std::uint8_t* in,
                        float* out) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  std::int64_t c = 0;
  if (channels < kLanes) {
    if constexpr (kLanes > 8) {
      windows<kSigned, kPixels>(hn::Half<D>(), w, same, channels, in, out);
    } else {
      for (int p = 0; p < kPixels; ++p)
        for (c = 0; c < channels; ++c)
          out[p * same.out_step + c] = mean_of<kSigned>(w, in + p * same.in_step + c);
    }
    return;
  }
  if constexpr (kPixels == 1)
    for (; c + 4 * kLanes <= channels; c += 4 * kLanes)
      channels_of<kSigned, 1, 4>(d, w, same, in + c, out + c);
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes)
    channels_of<kSigned, kPixels, 2>(d, w, same, in + c, out + c);
  for (; c + kLanes <= channels; c += kLanes) channels_of<kSigned, kPixels, 1>(d, w, same, in + c, out + c);
  if (c < channels) {
    c = channels - kLanes;
    channels_of<kSigned, kPixels, 1>(d, w, same, in + c, out + c);
  }
}

template <bool kSigned>
void pixels(const PoolRow& r) {
  constexpr std::int64_t kPixels = 4;
  const hn::ScalableTag<std::uint16_t> d;
  const auto* picture =
      static_cast<const std::uint8_t*>(r.in) + r.z.begin * r.z_stride + r.y.begin * r.y_stride;
  auto* out = static_cast<float*>(r.out);
  const Same same{r.stride * r.channels, r.channels};
  for (std::int64_t o = 0; o < r.count;) {
    const Window w(r, r.x[o], kSigned);
    const auto end = o >= r.whole_begin && o < r.whole_end ? r.whole_end : o + 1;  // they are the same
    const auto* in = picture + r.x[o].begin * r.channels;
    for (; o + kPixels <= end && w.listed > 0; o += kPixels, in += kPixels * same.in_step)
      windows<kSigned, kPixels>(d, w, same, r.channels, in, out + o * r.channels);
    for (; o < end; ++o, in += same.in_step)
      windows<kSigned, 1>(d, w, same, r.channels, in, out + o * r.channels);
  }
}

constexpr ByteMeans kByteMeans{.u8 = pixels<false>, .i8 = pixels<true>};

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
const ByteMeans& byte_means(Isa isa) { return LAMINA_CONSTANT_PER_ISA(kByteMeans).at(isa); }

}  // namespace lamina
#endif
