#include "kernels/native/binary/depthwise_lines.h"

#include "base/cpu.h"
#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/binary/depthwise_lines.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

#ifndef LAMINA_BINARY_NUMBERS
#define LAMINA_BINARY_NUMBERS
namespace lamina::binary {
/// Masks of four-bit numbers in the lower half of a word, and of eight-bit numbers.
constexpr std::uint32_t kMasks4[] = {0xf, 0xf0, 0xf00, 0xf000},
                        kMasks8[] = {0xff, 0xff00, 0xff0000, 0xff000000};
constexpr float kScales4[] = {-2, -2.F / 16, -2.F / 256, -2.F / 4096},
                kScales8[] = {-2, -2.F / 256, -2.F / 65536, -2.F / 16777216};
}  // namespace lamina::binary
#endif

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

void pack_binary_depthwise(const binary::DepthwiseLine& line);  // depthwise_packing.simd.cc

namespace {

namespace hn = hwy::HWY_NAMESPACE;
using binary::DepthwiseRow;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
constexpr DF df;
constexpr DI di;
constexpr DU du;
using VU = hn::Vec<DU>;
constexpr int kFloats = hn::MaxLanes(df), kBytes = 4 * kFloats;

HWY_INLINE const std::uint32_t* words(const std::uint8_t* p) {
  return reinterpret_cast<const std::uint32_t*>(p);
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
      hn::StoreU(finished(df, r.finish, v), df, out + at);
    } else {
      if (add) v = hn::Add(v, load_some(df, add + at, left));
      store_some(finished(df, r.finish, v), df, out + at, left);
    }
  }
}

/// A line without a second tensor or a finish whose channels fill vectors, kVectors of which (1, 2 or 4) have
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

/// A line whose results are booleans: true above 0.
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

constexpr int kIsa = HWY_TARGET == HWY_AVX3 ? 2 : HWY_TARGET == HWY_AVX2 ? 1 : 0;
constexpr const char* kNames[] = {"depthwise_sse41", "depthwise_avx2", "depthwise_avx512"};
constexpr double kSpeeds[] = {100, 200, 300};
constexpr binary::DepthwiseKernels kBinaryDepthwiseKernels{kNames[kIsa], kFloats, kSpeeds[kIsa],
                                                           pack_binary_depthwise, any_row};

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina::binary {

constexpr auto kKernels = LAMINA_CONSTANT_PER_ISA(kBinaryDepthwiseKernels);

const DepthwiseKernels& depthwise_kernels(Isa isa, std::int64_t channels) {
  // Narrower vectors where channels leave most of the wide ones' words empty.
  while (isa != Isa::sse41 && channels <= kKernels.at(isa).floats / 2) isa = Isa(static_cast<int>(isa) - 1);
  return kKernels.at(isa);
}

}  // namespace lamina::binary
#endif
