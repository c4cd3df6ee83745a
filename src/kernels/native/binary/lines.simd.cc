/// Binary convolution by table lookup; see lines.h.
///
/// The lookup: 4 signs of a point choose a table of 16 bytes, which is spread over a vector; 4 signs of each
/// output's weights choose a byte of it. One shuffle and one addition count 4 channels of as many outputs as
/// a vector has bytes.
#include "kernels/native/binary/lines.h"

#include <cstring>

#include "base/cpu.h"
#include "base/work_partition.h"
#include "kernels/native/binary/tables.h"
#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/binary/lines.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/integer_finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using binary::Points;
using binary::Segment;
using binary::Tile;

using D8 = hn::ScalableTag<std::uint8_t>;
using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
constexpr D8 d8;
constexpr DF df;
constexpr DI di;
constexpr DU du;
using V8 = hn::Vec<D8>;
constexpr int kLanes = hn::MaxLanes(d8), kFloats = hn::MaxLanes(df);

/// Where the outputs of a point go.
struct Outputs {
  const float *start, *add;
  float* out = nullptr;
  std::uint8_t* bytes = nullptr;
  Outputs(const Tile& t, int point)
      : start(t.start[point] + t.start_add), add(t.add ? t.add + point * t.add_step : nullptr) {
    if (t.bytes)
      bytes = t.bytes + point * t.out_step;
    else
      out = t.out + point * t.out_step;
  }
};

HWY_INLINE void put_level(const Tile& t, const Outputs& o, std::int64_t at, hn::Vec<DF> v,
                          std::int64_t left) {
  const auto& f = *t.byte_finish;
  const auto channel = t.first + at;
  v = hn::Add(hn::Mul(v, hn::LoadU(df, f.scale + channel)), hn::LoadU(df, f.shift + channel));
  v = hn::Min(hn::Set(df, f.high), hn::Max(hn::Set(df, f.low), v));
  const auto level = hn::Add(integer_finish::nearest(v), hn::Set(di, f.zero_point));
  integer_finish::store_bytes(integer_finish::low_bytes(level), o.bytes + at, left);
}

/// Counts of differences times -1/2 of `scale`, `at` outputs behind the panel's first: what a plain tile
/// needs.
HWY_INLINE hn::Vec<DF> sums_of(const Outputs& o, std::int64_t at, hn::Vec<DU> counts, float scale) {
  const auto numbers = hn::ConvertTo(df, hn::BitCast(di, counts));
  return hn::MulAdd(numbers, hn::Set(df, scale), hn::LoadU(df, o.start + at));
}

/// Nothing is added or finished, and there are as many outputs as the panel has.
HWY_INLINE bool plain(const Tile& t, int vectors) {
  return !t.signs && !t.bytes && !t.add && t.finish.kind == Finish::Kind::none &&
         t.channels >= vectors * kLanes;
}

/// With all that may be done.
HWY_INLINE void put(const Tile& t, const Outputs& o, std::int64_t at, hn::Vec<DU> counts) {
  auto v = sums_of(o, at, counts, -2);
  const std::int64_t left = t.channels - at;
  if (left <= 0) return;
  if (t.bytes) return put_level(t, o, at, v, left);
  if (left >= kFloats) {
    if (o.add) v = hn::Add(v, hn::LoadU(df, o.add + at));
    hn::StoreU(finished(df, t.finish, v), df, o.out + at);
  } else {
    if (o.add) v = hn::Add(v, load_some(df, o.add + at, left));
    store_some(finished(df, t.finish, v), df, o.out + at, left);
  }
}

/// Bytes that count, of a plain tile: the numbers of each mask are scaled where they lie.
HWY_INLINE void put_bytes(const Outputs& o, std::int64_t at, V8 bytes) {
  const auto v = hn::BitCast(du, bytes);
  const auto put_masked = [&](std::int64_t i, hn::Vec<DU> counts, float scale) HWY_ATTR {
    hn::StoreU(sums_of(o, at + i * kFloats, counts, scale), df, o.out + at + i * kFloats);
  };
  put_masked(0, hn::And(v, hn::Set(du, 0xff)), -2);
  put_masked(1, hn::And(v, hn::Set(du, 0xff00)), -2.F / 256);
  put_masked(2, hn::And(v, hn::Set(du, 0xff0000)), -2.F / 65536);
  put_masked(3, hn::ShiftRight<24>(v), -2);
}

/// A mask of a vector of outputs, of which `left` are there.
HWY_INLINE void put_bits(hn::Mask<D8> mask, std::int64_t left, std::uint8_t* out) {
  std::uint8_t bytes[8];  // as wide as they are written
  hn::StoreMaskBits(d8, mask, bytes);
  if (left >= kLanes)
    std::memcpy(out, bytes, kLanes / 8);
  else
    for (std::int64_t i = 0; 8 * i < left; ++i) out[i] = bytes[i];
}

/// Booleans of a vector of outputs, from words of the counts of even bytes, then of odd ones.
HWY_INLINE void put_signs(const Tile& t, int point, std::int64_t at, const std::uint16_t* sums) {
  constexpr hn::Repartition<std::uint16_t, D8> d;
  const std::uint16_t* limit = t.limit[point] + t.start_add + at;
  const auto even = hn::Load(d, sums), odd = hn::Load(d, sums + kLanes / 2), one = hn::Set(d, 1);
  const auto low = hn::Min(hn::SaturatedSub(hn::LoadU(d, limit), even), one),
             high = hn::Min(hn::SaturatedSub(hn::LoadU(d, limit + kLanes / 2), odd), one);
  auto v = hn::BitCast(d8, hn::Or(low, hn::ShiftLeft<8>(high)));
  v = hn::TableLookupBytes(v, hn::LoadDup128(d8, binary::kBytesInOrder));
  const auto words = hn::SetTableIndices(du, binary::kWordsInOrder<kFloats>.from);
  v = hn::BitCast(d8, hn::TableLookupLanes(hn::BitCast(du, v), words));
  auto* out = t.signs + point * t.out_step + (t.bits ? at / 8 : at);
  const std::int64_t left = t.channels - at;
  if (t.bits) return put_bits(hn::Ne(v, hn::Zero(d8)), left, out);
  if (left >= kLanes) return hn::StoreU(v, d8, out);
  HWY_ALIGN std::uint8_t bytes[kLanes];
  hn::Store(v, d8, bytes);
  for (std::int64_t i = 0; i < left; ++i) out[i] = bytes[i];
}

/// Wider sums of the bytes of a vector: words of the even and of the odd ones.
HWY_INLINE void flush(V8 counted, bool first, std::uint16_t* sums) {
  constexpr hn::Repartition<std::uint16_t, D8> d;
  const auto v = hn::BitCast(d, counted);
  auto even = hn::And(v, hn::Set(d, 0xff)), odd = hn::ShiftRight<8>(v);
  if (!first) {
    even = hn::Add(even, hn::Load(d, sums));
    odd = hn::Add(odd, hn::Load(d, sums + kLanes / 2));
  }
  hn::Store(even, d, sums);
  hn::Store(odd, d, sums + kLanes / 2);
}

/// Never asked for: such sums are not compared with limits.
HWY_INLINE void put_signs(const Tile&, int, std::int64_t, const std::uint32_t*) {}

HWY_INLINE void put_sums(const Tile& t, const Outputs& o, std::int64_t at, const std::uint16_t* sums) {
  constexpr hn::Repartition<std::uint16_t, D8> d;
  const auto even = hn::BitCast(du, hn::Load(d, sums)), odd = hn::BitCast(du, hn::Load(d, sums + kLanes / 2));
  const auto mask = hn::Set(du, 0xffff);
  put(t, o, at, hn::And(even, mask));
  put(t, o, at + kFloats, hn::And(odd, mask));
  put(t, o, at + 2 * kFloats, hn::ShiftRight<16>(even));
  put(t, o, at + 3 * kFloats, hn::ShiftRight<16>(odd));
}

/// ... and numbers of 32 bits.
HWY_INLINE void flush(V8 counted, bool first, std::uint32_t* sums) {
  const auto v = hn::BitCast(du, counted), mask = hn::Set(du, 0xff);
  const hn::Vec<DU> parts[4] = {hn::And(v, mask), hn::And(hn::ShiftRight<8>(v), mask),
                                hn::And(hn::ShiftRight<16>(v), mask), hn::ShiftRight<24>(v)};
  LAMINA_UNROLL
  for (int k = 0; k < 4; ++k) {
    auto* to = sums + k * kFloats;
    hn::Store(first ? parts[k] : hn::Add(parts[k], hn::Load(du, to)), du, to);
  }
}

HWY_INLINE void put_sums(const Tile& t, const Outputs& o, std::int64_t at, const std::uint32_t* sums) {
  for (int k = 0; k < 4 * kFloats; k += kFloats) put(t, o, at + k, hn::Load(du, sums + k));
}

/// Counters of a plain tile that were never full.
template <int P, int V>
HWY_INLINE void put_all(const Tile& t, const V8 (&counts)[P][V]) {
  LAMINA_UNROLL
  for (int p = 0; p < P; ++p) {
    const Outputs o(t, p);
    LAMINA_UNROLL
    for (int v = 0; v < V; ++v) put_bytes(o, v * kLanes, counts[p][v]);
  }
}

/// All others lie in memory, point after point: what may be done to them would make each kernel several times
/// as long.
template <class S>
HWY_NOINLINE void put_held(const Tile& t, const S* sums, int points, int vectors) {
  for (int p = 0; p < points; ++p, sums += vectors * kLanes) {
    if (t.signs) {
      for (int v = 0; v < vectors; ++v) put_signs(t, p, v * kLanes, sums + v * kLanes);
    } else {
      const Outputs o(t, p);
      for (int v = 0; v < vectors; ++v) put_sums(t, o, v * kLanes, sums + v * kLanes);
    }
  }
}

/// P points by V vectors of outputs.
template <int P, int V, class S>
void lookup_tile(const Tile& t) {
  HWY_ALIGN S sums[P * V * kLanes];
  const std::uint8_t* w = t.w;
  const Segment *s = t.segments, *const end = s + t.segment_count;
  for (bool first = true; s != end; first = false) {
    V8 counts[P][V];
    LAMINA_UNROLL
    for (int p = 0; p < P; ++p) {
      LAMINA_UNROLL
      for (int v = 0; v < V; ++v) counts[p][v] = hn::Zero(d8);
    }
    for (bool more = true; more; ++s) {
      const std::uint8_t* x[P];
      LAMINA_UNROLL
      for (int p = 0; p < P; ++p) x[p] = t.x[p] + t.x_add + s->offset;
      const std::int64_t units = s->units;
      more = !s->flush;
      for (std::int64_t k = 0; k < units; ++k, w += kLanes) {
        V8 weights[V];
        LAMINA_UNROLL
        for (int v = 0; v < V; ++v) weights[v] = hn::Load(d8, w + v * t.w_vector);
        LAMINA_UNROLL
        for (int p = 0; p < P; ++p) {
          const V8 table = hn::LoadDup128(d8, binary::kTables.counts + x[p][k]);
          LAMINA_UNROLL
          for (int v = 0; v < V; ++v)
            counts[p][v] = hn::Add(counts[p][v], hn::TableLookupBytes(table, weights[v]));
        }
      }
    }
    if (first && s == end && plain(t, V)) return put_all<P, V>(t, counts);
    LAMINA_UNROLL
    for (int p = 0; p < P; ++p) {
      LAMINA_UNROLL
      for (int v = 0; v < V; ++v) flush(counts[p][v], first, sums + (p * V + v) * kLanes);
    }
  }
  put_held(t, sums, P, V);
}

/// Bits of 4 channels each, times 16, in a byte.
void pack_floats(const float* in, std::int64_t channels, std::uint8_t* out) {
  const auto bytes_of = [](hn::Vec<DF> v) HWY_ATTR {
    std::uint8_t bits[kFloats == 16 ? 2 : 1];  // read as wide as they are written
    hn::StoreMaskBits(df, hn::Gt(v, hn::Zero(df)), bits);
    std::uint32_t b = bits[0];
    if constexpr (kFloats == 16) b |= std::uint32_t{bits[1]} << 8;
    b = (b | b << 8) & 0x00ff00ffu;
    b = (b | b << 4) & 0x0f0f0f0fu;
    return b << 4;
  };
  std::int64_t c = 0;
  for (; c + kFloats <= channels; c += kFloats, out += kFloats / 4) {
    const auto b = bytes_of(hn::LoadU(df, in + c));
    std::memcpy(out, &b, kFloats / 4);
  }
  if (c == channels) return;
  for (auto b = bytes_of(load_some(df, in + c, channels - c)); c < channels; c += 4, b >>= 8)
    *out++ = static_cast<std::uint8_t>(b);
}

/// Packs bytes that are 0 or not.
void pack_booleans(const std::uint8_t* in, std::int64_t channels, std::uint8_t* out) {
  constexpr hn::Rebind<std::uint8_t, DI> narrow;
  const auto bytes_of = [&](const std::uint8_t* from) HWY_ATTR {
    const auto v = hn::BitCast(du, hn::Min(hn::LoadU(d8, from), hn::Set(d8, 1)));
    const auto low = hn::Or(v, hn::ShiftRight<7>(v));  // of the bytes' bits two are neighbours now
    const auto all = hn::And(hn::Or(low, hn::ShiftRight<14>(low)), hn::Set(du, 15));
    return hn::DemoteTo(narrow, hn::BitCast(di, hn::ShiftLeft<4>(all)));
  };
  for (; channels >= kLanes; channels -= kLanes, in += kLanes, out += kFloats)
    hn::StoreU(bytes_of(in), narrow, out);
  if (channels == 0) return;
  HWY_ALIGN std::uint8_t some[kLanes] = {}, bytes[kFloats];
  std::memcpy(some, in, static_cast<std::size_t>(channels));
  hn::StoreU(bytes_of(some), narrow, bytes);
  std::memcpy(out, bytes, static_cast<std::size_t>((channels + 3) / 4));
}

/// Packs bits in bytes; an odd last byte has one half.
void pack_bits(const std::uint8_t* in, std::int64_t units, std::uint8_t* out) {
  constexpr hn::Repartition<std::uint16_t, D8> d;
  constexpr hn::Rebind<std::uint8_t, decltype(d)> narrow;
  const auto halves = [&](hn::Vec<decltype(d)> v) HWY_ATTR {
    const auto low = hn::And(v, hn::Set(d, 0x0f)), high = hn::And(v, hn::Set(d, 0xf0));
    return hn::Or(hn::ShiftLeft<4>(low), hn::ShiftLeft<8>(high));
  };
  for (; units >= kLanes; units -= kLanes, in += kLanes / 2, out += kLanes)
    hn::StoreU(hn::BitCast(d8, halves(hn::PromoteTo(d, hn::LoadU(narrow, in)))), d8, out);
  for (; units >= 2; units -= 2, ++in, out += 2) {
    out[0] = static_cast<std::uint8_t>(*in << 4);
    out[1] = *in & 0xf0;
  }
  if (units > 0) *out = static_cast<std::uint8_t>(*in << 4);
}

void pack_lookup(const Points& s) {
  const std::int64_t units = (s.channels + 3) / 4;
  if (s.bits) {
    const auto* in = static_cast<const std::uint8_t*>(s.in);
    if (s.groups * s.channels == s.step && s.out_step == s.step / 4)  // whole words
      return pack_bits(in, s.count * s.out_step, s.out);
    for (std::int64_t i = 0; i < s.count; ++i)
      for (std::int64_t g = 0; g < s.groups; ++g)
        pack_bits(in + (i * s.step + g * s.channels) / 8, units, s.out + i * s.out_step + g * units);
    return;
  }
  for (std::int64_t i = 0; i < s.count; ++i)
    for (std::int64_t g = 0; g < s.groups; ++g) {
      const std::int64_t at = i * s.step + g * s.channels;
      std::uint8_t* out = s.out + i * s.out_step + g * units;
      if (s.booleans)
        pack_booleans(static_cast<const std::uint8_t*>(s.in) + at, s.channels, out);
      else
        pack_floats(static_cast<const float*>(s.in) + at, s.channels, out);
    }
}

}  // namespace

using T = std::uint16_t;
constexpr int kIsa = HWY_TARGET == HWY_AVX3 ? 2 : HWY_TARGET == HWY_AVX2 ? 1 : 0;
constexpr const char* kNames[] = {"sse41", "avx2", "avx512"};
constexpr double kSpeeds[] = {80, 180, 220};
constexpr binary::Kernels kLookupKernels{
    kNames[kIsa],
    kLanes,
    kFloats,
    4,
    1,
    63,
    2,
    6,
    kSpeeds[kIsa],
    {{},
     {nullptr, lookup_tile<1, 1, T>, lookup_tile<2, 1, T>, lookup_tile<3, 1, T>, lookup_tile<4, 1, T>,
      lookup_tile<5, 1, T>, lookup_tile<6, 1, T>},
     {nullptr, lookup_tile<1, 2, T>, lookup_tile<2, 2, T>, lookup_tile<3, 2, T>, lookup_tile<4, 2, T>,
      lookup_tile<5, 2, T>, lookup_tile<6, 2, T>}},
    {nullptr, lookup_tile<1, 1, std::uint32_t>, lookup_tile<2, 1, std::uint32_t>,
     lookup_tile<3, 1, std::uint32_t>, lookup_tile<4, 1, std::uint32_t>, lookup_tile<5, 1, std::uint32_t>,
     lookup_tile<6, 1, std::uint32_t>},
    pack_lookup};

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina::binary {
namespace {

constexpr auto kKernels = LAMINA_CONSTANT_PER_ISA(kLookupKernels);

}  // namespace

/// The fastest kernels for so many outputs, also those of narrower vectors, which few outputs fill.
const Kernels& lookup_kernels(Isa isa, std::int64_t outputs) {
  const auto cost = [&](const Kernels& k) {
    const std::int64_t vectors = ceil_div(outputs, k.lanes);
    return static_cast<double>(vectors * k.lanes) / k.speed;
  };
  const Kernels* found = &kKernels.at(Isa::sse41);
  for (const auto wider : {Isa::avx2, Isa::avx512})
    if (wider <= isa && cost(kKernels.at(wider)) <= cost(*found)) found = &kKernels.at(wider);
  return *found;
}

}  // namespace lamina::binary
#endif
