#include "kernels/native/binary_depthwise_lines.h"

#include <type_traits>

#include "base/cpu.h"
#include "kernels/native/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/binary_depthwise_lines.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/vector_part-inl.h"

#ifndef LAMINA_BINARY_NUMBERS
#define LAMINA_BINARY_NUMBERS
namespace lamina::binary {
constexpr struct Bits32 {
  std::uint32_t of[32];
  constexpr Bits32() : of{} {
    for (int i = 0; i < 32; ++i) of[i] = 1u << i;
  }
  constexpr const std::uint32_t& operator[](std::int64_t i) const { return of[i]; }
} kBits;
/// Of numbers of four bits in the lower half of a word, and of eight bits.
constexpr std::uint32_t kMasks4[] = {0xf, 0xf0, 0xf00, 0xf000},
                        kMasks8[] = {0xff, 0xff00, 0xff0000, 0xff000000};
constexpr float kScales4[] = {-2, -2.F / 16, -2.F / 256, -2.F / 4096},
                kScales8[] = {-2, -2.F / 256, -2.F / 65536, -2.F / 16777216};
}  // namespace lamina::binary
#endif

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using binary::DepthwiseLine;
using binary::DepthwiseRow;
using gemm::Finish;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
constexpr DF df;
constexpr DI di;
constexpr DU du;
using VU = hn::Vec<DU>;
constexpr int kFloats = hn::MaxLanes(df), kBytes = 4 * kFloats;

HWY_INLINE std::uint32_t* words(std::uint8_t* p) { return reinterpret_cast<std::uint32_t*>(p); }
HWY_INLINE const std::uint32_t* words(const std::uint8_t* p) {
  return reinterpret_cast<const std::uint32_t*>(p);
}

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

/// The same of bytes, 0 or not.
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

/// The same of those that are left.
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

void pack(const DepthwiseLine& s) {
  if (s.taps != 0) {
    if (!s.in) {
      const auto vectors = (s.outputs + s.block.slots - 1) / s.block.slots * s.taps;
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

/// The sum of three bits stays in the first; the other bit of it is returned.
HWY_INLINE VU add_three(VU& a, VU b, VU c) {
  const auto differ = hn::Xor(a, b);
  const auto carry = hn::OrAnd(hn::And(a, b), differ, c);
  a = hn::Xor(differ, c);
  return carry;
}

/// Adds a bit to the planes from number `first` on.
template <int kPlanes>
HWY_INLINE void add_bit(VU (&planes)[8], int first, VU bit) {
  LAMINA_UNROLL
  for (int k = 0; k < kPlanes; ++k) {
    if (k < first) continue;
    const auto carry = hn::And(planes[k], bit);
    planes[k] = hn::Xor(planes[k], bit);
    bit = carry;
  }
}

/// How many taps differ, as bit planes. kTaps: 1 and a multiple of 8, or 0 for as many as the row says.
template <int kTaps, int kPlanes>
HWY_INLINE void count(const DepthwiseRow& r, const std::uint8_t* x, VU (&planes)[8]) {
  const auto bit = [&](std::int64_t tap) HWY_ATTR {
    return hn::Xor(hn::Load(du, words(r.w + tap * kBytes)), hn::Load(du, words(x + r.taps[tap])));
  };
  const std::int64_t taps = kTaps == 0 ? r.tap_count : kTaps;
  LAMINA_UNROLL
  for (int k = 0; k < 8; ++k) planes[k] = hn::Zero(du);
  planes[0] = bit(0);
  std::int64_t tap = 1;
  for (; tap + 8 <= taps; tap += 8) {
    const auto a = add_three(planes[0], bit(tap), bit(tap + 1)),
               b = add_three(planes[0], bit(tap + 2), bit(tap + 3)), c = add_three(planes[1], a, b),
               d = add_three(planes[0], bit(tap + 4), bit(tap + 5)),
               e = add_three(planes[0], bit(tap + 6), bit(tap + 7)), f = add_three(planes[1], d, e);
    add_bit<kPlanes>(planes, 3, add_three(planes[2], c, f));
  }
  if constexpr (kTaps == 0)
    for (; tap < taps; ++tap) add_bit<kPlanes>(planes, 0, bit(tap));
}

template <int kShift>
HWY_INLINE void swap_bits(VU& a, VU& b, std::uint32_t mask) {
  const auto t = hn::And(hn::Xor(hn::ShiftRight<kShift>(a), b), hn::Set(du, mask));
  b = hn::Xor(b, t);
  a = hn::Xor(a, hn::ShiftLeft<kShift>(t));
}

/// Planes as numbers of kBits bits: number k of word j of vector i has the bits `kBits * k + i`. To `to` go
/// these vectors; of those of four bits also without their first four numbers, lest the last be a sign.
template <int kBits>
HWY_INLINE void to_numbers(VU (&planes)[8], std::uint32_t* to) {
  LAMINA_UNROLL
  for (int i = 0; i < kBits; i += 2) swap_bits<1>(planes[i], planes[i + 1], 0x55555555);
  LAMINA_UNROLL
  for (int i = 0; i < kBits; i += 4) {
    swap_bits<2>(planes[i], planes[i + 2], 0x33333333);
    swap_bits<2>(planes[i + 1], planes[i + 3], 0x33333333);
  }
  if constexpr (kBits == 8) {
    LAMINA_UNROLL
    for (int i = 0; i < 4; ++i) swap_bits<4>(planes[i], planes[i + 4], 0x0f0f0f0f);
  }
  LAMINA_UNROLL
  for (int i = 0; i < kBits; ++i) {
    hn::Store(planes[i], du, to + i * kFloats);
    if constexpr (kBits == 4) hn::Store(hn::ShiftRight<16>(planes[i]), du, to + (4 + i) * kFloats);
  }
}

/// The numbers of a bit: where they are, the mask of them, and what makes them whole, times -2.
struct Place {
  std::uint64_t at;
  std::uint32_t mask;
  float scale;
};
template <int kBits>
HWY_INLINE Place place_of(std::uint64_t bit) {
  if constexpr (kBits == 4) {
    const auto number = bit / 4 % 4;
    return {(bit / 16 * 4 + bit % 4) * kFloats, binary::kMasks4[number], binary::kScales4[number]};
  } else {
    const auto number = bit / 8;
    return {bit % 8 * kFloats, binary::kMasks8[number], binary::kScales8[number]};
  }
}

HWY_INLINE hn::Vec<DF> sum(const std::uint32_t* numbers, VU mask, hn::Vec<DF> scale, const float* start) {
  const auto counted = hn::BitCast(di, hn::And(hn::Load(du, numbers), mask));
  return hn::MulAdd(hn::ConvertTo(df, counted), scale, hn::LoadU(df, start));
}

HWY_INLINE hn::Vec<DF> finished(const Finish& f, hn::Vec<DF> v) {
  if (f.kind == Finish::Kind::clamp)  // NaN passes: it is the second operand
    return hn::Min(hn::Set(df, f.high), hn::Max(hn::Set(df, f.low), v));
  if (f.kind == Finish::Kind::leaky)
    return hn::IfThenElse(hn::Lt(v, hn::Zero(df)), hn::Mul(v, hn::Set(df, f.slope)), v);
  return v;
}

/// Output `x`, whose numbers begin at `bit`.
template <int kBits>
HWY_INLINE void put(const DepthwiseRow& r, std::int64_t x, std::uint64_t bit, const std::uint32_t* numbers) {
  const float* start = r.start + r.kinds[x];
  float* out = r.out + x * r.out_step;
  const float* add = r.add ? r.add + x * r.add_step : nullptr;
  for (std::int64_t at = 0; at < r.block.channels; at += kFloats, ++bit) {
    const auto place = place_of<kBits>(bit);
    auto v = sum(numbers + place.at, hn::Set(du, place.mask), hn::Set(df, place.scale), start + at);
    const auto left = r.block.channels - at;
    if (left >= kFloats) {
      if (add) v = hn::Add(v, hn::LoadU(df, add + at));
      hn::StoreU(finished(r.finish, v), df, out + at);
    } else {
      if (add) v = hn::Add(v, load_some(df, add + at, left));
      store_some(finished(r.finish, v), df, out + at, left);
    }
  }
}

/// The same where nothing is added or finished and channels fill vectors, kVectors of which (1, 2 or 4) have
/// the same mask.
template <int kBits, int kVectors>
HWY_INLINE void put_plain(const DepthwiseRow& r, std::int64_t x, std::uint64_t bit,
                          const std::uint32_t* numbers) {
  const float* start = r.start + r.kinds[x];
  float* out = r.out + x * r.out_step;
  for (std::int64_t at = 0; at < r.block.channels; at += kVectors * kFloats, bit += kVectors) {
    const auto place = place_of<kBits>(bit);
    const auto mask = hn::Set(du, place.mask);
    const auto scale = hn::Set(df, place.scale);
    LAMINA_UNROLL
    for (int i = 0; i < kVectors * kFloats; i += kFloats)
      hn::StoreU(sum(numbers + place.at + i, mask, scale, start + at + i), df, out + at + i);
  }
}

/// A mask of a vector of channels, of which `left` are there, as bits behind those of `at` channels.
HWY_INLINE void put_bits(hn::Mask<DF> mask, std::int64_t left, std::int64_t at, std::uint8_t* out) {
  std::uint8_t bytes[8] = {};  // as wide as they are written
  hn::StoreMaskBits(df, mask, bytes);
  std::uint32_t bits = bytes[0];
  if constexpr (kFloats == 16) bits |= std::uint32_t{bytes[1]} << 8;
  if (left < kFloats) bits &= (1u << left) - 1;
  out += at / 8;
  if (at % 8 != 0)  // vectors of four
    *out = static_cast<std::uint8_t>(*out | bits << 4);
  else
    *out = static_cast<std::uint8_t>(bits);
  if (kFloats == 16 && left > 8) out[1] = static_cast<std::uint8_t>(bits >> 8);
}

/// The same as booleans, what is above 0.
template <int kBits>
HWY_INLINE void put_signs(const DepthwiseRow& r, std::int64_t x, std::uint64_t bit,
                          const std::uint32_t* numbers) {
  constexpr hn::Rebind<std::uint8_t, DI> narrow;
  const float* start = r.start + r.kinds[x];
  auto* out = r.signs + x * r.out_step;
  for (std::int64_t at = 0; at < r.block.channels; at += kFloats, ++bit) {
    const auto place = place_of<kBits>(bit);
    const auto v = sum(numbers + place.at, hn::Set(du, place.mask), hn::Set(df, place.scale), start + at);
    const auto left = r.block.channels - at;
    if (r.bits) {
      put_bits(hn::Gt(v, hn::Zero(df)), left, at, out);
      continue;
    }
    const auto above = hn::IfThenElseZero(hn::RebindMask(di, hn::Gt(v, hn::Zero(df))), hn::Set(di, 1));
    const auto bytes = hn::DemoteTo(narrow, above);
    if (left >= kFloats) {
      hn::StoreU(bytes, narrow, out + at);
    } else {
      HWY_ALIGN std::uint8_t some[kFloats];
      hn::Store(bytes, narrow, some);
      for (std::int64_t i = 0; i < left; ++i) out[at + i] = some[i];
    }
  }
}

template <int kTaps, int kPlanes>
void row(const DepthwiseRow& r) {
  constexpr int kBits = kPlanes > 4 ? 8 : 4;
  const auto& b = r.block;
  const bool plain = b.channels == b.bits * kFloats && !r.add && r.finish.kind == Finish::Kind::none,
             fours = plain && b.bits % 4 == 0, twos = plain && b.bits == 2, ones = plain && b.bits == 1;
  const std::uint8_t* from = r.x;
  for (std::int64_t x = 0; x < r.count; x += b.slots, from += r.x_step) {
    HWY_ALIGN std::uint32_t numbers[8 * kFloats];
    VU planes[8];
    count<kTaps, kPlanes>(r, from, planes);
    to_numbers<kBits>(planes, numbers);
    const auto end = b.slots < r.count - x ? b.slots : r.count - x;
    for (std::int64_t s = 0; s < end; ++s) {
      const auto bit = static_cast<std::uint64_t>(s * b.bits);
      if (r.signs)
        put_signs<kBits>(r, x + s, bit, numbers);
      else if (fours)
        put_plain<kBits, 4>(r, x + s, bit, numbers);
      else if (twos)
        put_plain<kBits, 2>(r, x + s, bit, numbers);
      else if (ones)
        put_plain<kBits, 1>(r, x + s, bit, numbers);
      else
        put<kBits>(r, x + s, bit, numbers);
    }
  }
}

void any_row(const DepthwiseRow& r) {
  if (r.tap_count == 9) return row<9, 4>(r);
  if (r.tap_count == 25) return row<25, 5>(r);
  if (r.tap_count < 16) return row<0, 4>(r);
  return row<0, 7>(r);
}

}  // namespace

binary::DepthwiseKernels make_binary_depthwise_kernels(const char* name, double speed) {
  return {name, kFloats, speed, pack, any_row};
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina::binary {

const DepthwiseKernels& depthwise_kernels(std::int64_t channels) {
  static const DepthwiseKernels list[] = {N_SSE4::make_binary_depthwise_kernels("depthwise_sse41", 100),
                                          N_AVX2::make_binary_depthwise_kernels("depthwise_avx2", 200),
                                          N_AVX3::make_binary_depthwise_kernels("depthwise_avx512", 300)};
  // Narrower vectors where channels leave most of the wide ones' words empty.
  const DepthwiseKernels* found = list;
  for (int i = 1; i <= static_cast<int>(effective_isa()); ++i)
    if (channels > list[i].floats / 2) found = list + i;
  return *found;
}

}  // namespace lamina::binary
#endif
