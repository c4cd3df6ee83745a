/// Lines of a picture as bits for depthwise binary convolutions; see depthwise_lines.h.
#include <type_traits>

#include "base/work_partition.h"
#include "kernels/native/binary/depthwise_lines.h"
#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/binary/depthwise_packing.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/vector_part-inl.h"

#ifndef LAMINA_BINARY_BITS
#define LAMINA_BINARY_BITS
namespace lamina::binary {
constexpr struct Bits32 {
  std::uint32_t of[32];
  constexpr Bits32() : of{} {
    for (int i = 0; i < 32; ++i) of[i] = 1u << i;
  }
  constexpr const std::uint32_t& operator[](std::int64_t i) const { return of[i]; }
} kBits;
}  // namespace lamina::binary
#endif

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using binary::DepthwiseLine;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
constexpr DF df;
[[maybe_unused]] constexpr DI di;
constexpr DU du;
using VU = hn::Vec<DU>;
constexpr int kFloats = hn::MaxLanes(df), kBytes = 4 * kFloats;

HWY_INLINE std::uint32_t* words(std::uint8_t* p) { return reinterpret_cast<std::uint32_t*>(p); }

/// What is more than 0, of four vectors, as bits of numbers.
HWY_INLINE VU four_signs(const float* in) {
  const auto above = [&](int i) HWY_ATTR { return hn::Gt(hn::LoadU(df, in + i * kFloats), hn::Zero(df)); };
#if HWY_TARGET <= HWY_AVX3
  const auto bit = [&](int i) HWY_ATTR {
    return hn::IfThenElseZero(hn::RebindMask(du, above(i)), hn::Set(du, 1u << i));
  };
  return hn::Or(hn::Or(bit(0), bit(1)), hn::Or(bit(2), bit(3)));
#else
  const auto less = [&](int i) HWY_ATTR { return hn::BitCast(di, hn::VecFromMask(df, above(i))); };  // 0, -1
  const auto high = hn::Add(hn::ShiftLeft<1>(less(3)), less(2)),
             low = hn::Add(hn::ShiftLeft<1>(less(1)), less(0));
  return hn::BitCast(du, hn::Neg(hn::Add(hn::ShiftLeft<2>(high), low)));
#endif
}

/// The signs of a point's channels, the last one's first.
HWY_INLINE VU signs(const float* in, std::int64_t channels, std::int64_t bits) {
  auto found = hn::Zero(du);
  const auto add = [&](hn::Vec<DF> v) HWY_ATTR {
    const auto above = hn::RebindMask(du, hn::Gt(v, hn::Zero(df)));
    found = hn::Or(hn::Add(found, found), hn::IfThenElseZero(above, hn::Set(du, 1)));
  };
  std::int64_t bit = bits - 1;
  if (bits * kFloats > channels) {
    add(load_some(df, in + bit * kFloats, channels - bit * kFloats));
    --bit;
  }
  for (; bit % 4 != 3 && bit >= 0; --bit) add(hn::LoadU(df, in + bit * kFloats));
  for (; bit >= 0; bit -= 4) found = hn::Or(hn::ShiftLeft<4>(found), four_signs(in + (bit - 3) * kFloats));
  return found;
}

/// Signs of bytes that are 0 or not.
HWY_INLINE VU signs(const std::uint8_t* in, std::int64_t channels, std::int64_t bits) {
  constexpr hn::Rebind<std::uint8_t, DU> narrow;
  auto found = hn::Zero(du);
  const auto add = [&](const std::uint8_t* from) HWY_ATTR {
    const auto above = hn::Min(hn::PromoteTo(du, hn::LoadU(narrow, from)), hn::Set(du, 1));
    found = hn::Or(hn::Add(found, found), above);
  };
  std::int64_t at = (bits - 1) * kFloats;
  if (at + kFloats > channels) {
    HWY_ALIGN std::uint8_t some[kFloats] = {};
    for (std::int64_t i = at; i < channels; ++i) some[i - at] = in[i];
    add(some);
    at -= kFloats;
  }
  for (; at >= 0; at -= kFloats) add(in + at);
  return found;
}

/// Booleans in Layout::channels_last_bits.
struct Bits {};

HWY_INLINE VU signs_of_bits(const std::uint8_t* in, std::int64_t bits) {
  auto found = hn::Zero(du);
  for (std::int64_t bit = bits - 1; bit >= 0; --bit) {
    std::uint8_t some[8] = {};  // as wide as they are read
    if constexpr (kFloats == 16) {
      some[0] = in[2 * bit];
      some[1] = in[2 * bit + 1];
    } else if constexpr (kFloats == 8) {
      some[0] = in[bit];
    } else {
      some[0] = static_cast<std::uint8_t>(in[bit / 2] >> (bit % 2 * 4));
    }
    found = hn::Or(hn::Add(found, found), hn::IfThenElseZero(hn::LoadMaskBits(du, some), hn::Set(du, 1)));
  }
  return found;
}

/// The signs of a point of that type.
template <class T>
HWY_INLINE VU point_signs(const DepthwiseLine& s, std::int64_t point) {
  if constexpr (std::is_same_v<T, Bits>)
    return signs_of_bits(static_cast<const std::uint8_t*>(s.in) + point * s.in_step / 8, s.block.bits);
  else
    return signs(static_cast<const T*>(s.in) + point * s.in_step, s.block.channels, s.block.bits);
}

/// From the right to the left: a vector has what its neighbour has, a slot further.
template <class T>
HWY_INLINE void pack_points(const DepthwiseLine& s) {
  const auto shift = static_cast<int>(s.block.bits);
  for (std::int64_t i = s.points - 1; i >= 0; --i) {
    auto* to = words(s.out + i * kBytes);
    const auto point = i - s.left;
    auto v = hn::Zero(du);
    if (point >= 0 && point < s.count) v = point_signs<T>(s, point);
    if (s.block.slots > 1 && i + s.stride < s.points)
      v = hn::Or(v, hn::ShiftLeftSame(hn::Load(du, to + s.stride * kFloats), shift));
    hn::Store(v, du, to);
  }
}

/// The signs of a vector of channels.
HWY_INLINE hn::Mask<DU> mask_of(const float* in) {
  return hn::RebindMask(du, hn::Gt(hn::LoadU(df, in), hn::Zero(df)));
}
HWY_INLINE hn::Mask<DU> mask_of(const std::uint8_t* in) {
  constexpr hn::Rebind<std::uint8_t, DU> narrow;
  return hn::Ne(hn::PromoteTo(du, hn::LoadU(narrow, in)), hn::Zero(du));
}

/// Mask of the `left` last numbers.
HWY_INLINE hn::Mask<DU> mask_of(const float* in, std::int64_t left) {
  return hn::RebindMask(du, hn::Gt(load_some(df, in, left), hn::Zero(df)));
}
HWY_INLINE hn::Mask<DU> mask_of(const std::uint8_t* in, std::int64_t left) {
  HWY_ALIGN std::uint8_t some[kFloats] = {};
  for (std::int64_t i = 0; i < left; ++i) some[i] = in[i];
  return mask_of(some);
}

HWY_INLINE VU with_bit(VU v, hn::Mask<DU> mask, std::int64_t bit) {
  const auto one = hn::Set(du, binary::kBits[bit]);
#if HWY_TARGET <= HWY_AVX3
  return hn::IfThenElse(mask, hn::Or(v, one), v);
#else
  return hn::Or(v, hn::And(hn::VecFromMask(du, mask), one));
#endif
}

/// Adds the signs of a point at the bits from `bit` on. kVectors: of its channels, which fill them; or 0.
template <class T, int kVectors>
HWY_INLINE VU with_point(VU v, const DepthwiseLine& s, std::int64_t point, std::int64_t bit) {
  if (point < 0 || point >= s.count) return v;
  if constexpr (std::is_same_v<T, Bits>) {
    const auto* in = static_cast<const std::uint8_t*>(s.in) + point * s.in_step / 8;
    return hn::Or(v, hn::ShiftLeftSame(signs_of_bits(in, s.block.bits), static_cast<int>(bit)));
  } else {
    const T* in = static_cast<const T*>(s.in) + point * s.in_step;
#if HWY_TARGET > HWY_AVX3
    if constexpr (std::is_same_v<T, float> && kVectors % 4 == 0 && kVectors > 0) {
      auto found = four_signs(in);
      if (kVectors == 8) found = hn::Or(found, hn::ShiftLeft<4>(four_signs(in + 4 * kFloats)));
      return hn::Or(v, hn::ShiftLeftSame(found, static_cast<int>(bit)));
    }
#endif
    if constexpr (kVectors > 0) {
      LAMINA_UNROLL
      for (int i = 0; i < kVectors; ++i) v = with_bit(v, mask_of(in + i * kFloats), bit + i);
    } else {
      const auto whole = s.block.channels / kFloats, left = s.block.channels % kFloats;
      for (std::int64_t i = 0; i < whole; ++i) v = with_bit(v, mask_of(in + i * kFloats), bit + i);
      if (left != 0) v = with_bit(v, mask_of(in + whole * kFloats, left), bit + whole);
    }
    return v;
  }
}

/// For each tap of a line, the vectors of all outputs. What a tap reads, the one a stride before has read for
/// the next slot, but for the last.
template <class T, int kVectors>
void pack_taps(const DepthwiseLine& s) {
  const auto& b = s.block;
  auto* to = words(s.out);
  for (std::int64_t first = 0; first < s.outputs; first += b.slots) {
    const auto last = (b.slots < s.outputs - first ? b.slots : s.outputs - first) - 1;
    for (std::int64_t tap = 0; tap < s.taps; ++tap, to += kFloats) {
      const auto point = first * s.stride + tap * s.dilation - s.left;
      auto v = hn::Zero(du);
      if (s.dilation == 1 && tap >= s.stride)
        v = hn::ShiftRightSame(hn::Load(du, to - s.stride * kFloats), static_cast<int>(b.bits));
      else
        for (std::int64_t slot = 0; slot < last; ++slot)
          v = with_point<T, kVectors>(v, s, point + slot * s.stride, slot * b.bits);
      hn::Store(with_point<T, kVectors>(v, s, point + last * s.stride, last * b.bits), du, to);
    }
  }
}

template <class T>
void pack_taps_of(const DepthwiseLine& s) {
  const auto vectors = s.block.channels % kFloats == 0 ? s.block.bits : 0;
  if (vectors == 1) return pack_taps<T, 1>(s);
  if (vectors == 2) return pack_taps<T, 2>(s);
  if (vectors == 4) return pack_taps<T, 4>(s);
  if (vectors == 8) return pack_taps<T, 8>(s);
  return pack_taps<T, 0>(s);
}

}  // namespace

void pack_binary_depthwise(const DepthwiseLine& s) {
  if (s.taps != 0) {
    if (!s.in) {
      const auto vectors = ceil_div(s.outputs, s.block.slots) * s.taps;
      for (std::int64_t i = 0; i < vectors; ++i) hn::Store(hn::Zero(du), du, words(s.out + i * kBytes));
      return;
    }
    if (s.bits) return pack_taps<Bits, 0>(s);
    return s.booleans ? pack_taps_of<std::uint8_t>(s) : pack_taps_of<float>(s);
  }
  if (s.in && s.bits) return pack_points<Bits>(s);
  if (s.in) return s.booleans ? pack_points<std::uint8_t>(s) : pack_points<float>(s);
  for (std::int64_t i = 0; i < s.points; ++i) hn::Store(hn::Zero(du), du, words(s.out + i * kBytes));
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
