/// Binary convolution by table lookup, and depthwise; see binary_lines.h.
///
/// The lookup: 4 signs of a point choose a table of 16 bytes, which is spread over a vector; 4 signs of each
/// output's weights choose a byte of it. One shuffle and one addition count 4 channels of as many outputs as
/// a vector has bytes.
#include "kernels/native/binary_lines.h"

#include <cstring>

#include "base/cpu.h"
#include "kernels/native/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/binary_lines.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/vector_part-inl.h"

#ifndef LAMINA_BINARY_TABLES
#define LAMINA_BINARY_TABLES
namespace lamina::binary {
/// counts[16 * x + w]: bits that differ.
struct Tables {
  alignas(64) std::uint8_t counts[256];
};
constexpr Tables kTables = [] {
  Tables t{};
  for (unsigned i = 0; i < 256; ++i)
    for (unsigned bits = (i >> 4) ^ (i & 15); bits != 0; bits >>= 1) t.counts[i] += bits & 1;
  return t;
}();
}  // namespace lamina::binary
#endif

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using binary::Points;
using binary::Segment;
using binary::Tile;
using gemm::Finish;

using D8 = hn::ScalableTag<std::uint8_t>;
using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
constexpr D8 d8;
constexpr DF df;
constexpr DI di;
using V8 = hn::Vec<D8>;
constexpr int kLanes = hn::MaxLanes(d8), kFloats = hn::MaxLanes(df);

HWY_INLINE hn::Vec<DF> finished(const Tile& t, hn::Vec<DF> v) {
  if (t.finish.kind == Finish::Kind::clamp)  // NaN passes: it is the second operand
    return hn::Min(hn::Set(df, t.finish.high), hn::Max(hn::Set(df, t.finish.low), v));
  if (t.finish.kind == Finish::Kind::leaky)
    return hn::IfThenElse(hn::Lt(v, hn::Zero(df)), hn::Mul(v, hn::Set(df, t.finish.slope)), v);
  return v;
}

template <class S>
HWY_INLINE hn::Vec<DI> load_counts(const S* from) {
  if constexpr (sizeof(S) == 4)
    return hn::BitCast(di, hn::LoadU(hn::Rebind<std::uint32_t, DI>(), from));
  else
    return hn::PromoteTo(di, hn::LoadU(hn::Rebind<S, DI>(), from));
}

/// Stores a vector of outputs of one point, `at` outputs behind the panel's first.
template <class S>
HWY_INLINE void store(const Tile& t, int point, std::int64_t at, const S* counts) {
  const std::int32_t* start = t.start[point] + t.start_add + at;
  float* out = t.out + point * t.out_step + at;
  const float* add = t.add ? t.add + point * t.add_step + at : nullptr;
#pragma GCC unroll 4
  for (int j = 0; j < kLanes; j += kFloats) {
    const std::int64_t left = t.channels - at - j;
    if (left <= 0) return;
    auto v = hn::ConvertTo(df, hn::Sub(hn::LoadU(di, start + j), hn::ShiftLeft<1>(load_counts(counts + j))));
    if (left >= kFloats) {
      if (add) v = hn::Add(v, hn::LoadU(df, add + j));
      hn::StoreU(finished(t, v), df, out + j);
    } else {
      if (add) v = hn::Add(v, load_some(df, add + j, left));
      store_some(finished(t, v), df, out + j, left);
    }
  }
}

/// Moves counted bytes to wider sums.
template <class S>
HWY_INLINE void flush(V8 counted, bool first, S* sums) {
  const hn::ScalableTag<S> ds;
  HWY_ALIGN std::uint8_t bytes[kLanes];
  hn::Store(counted, d8, bytes);
  constexpr int kStep = hn::MaxLanes(ds);
#pragma GCC unroll 4
  for (int j = 0; j < kLanes; j += kStep) {
    auto v = hn::PromoteTo(ds, hn::Load(hn::Rebind<std::uint8_t, decltype(ds)>(), bytes + j));
    if (!first) v = hn::Add(v, hn::Load(ds, sums + j));
    hn::Store(v, ds, sums + j);
  }
}

/// Of counters that were never full.
template <int P, int V>
HWY_INLINE void store_bytes(const Tile& t, const V8 (&counts)[P][V]) {
  HWY_ALIGN std::uint8_t bytes[P * V * kLanes];
  LAMINA_UNROLL
  for (int p = 0; p < P; ++p) {
    LAMINA_UNROLL
    for (int v = 0; v < V; ++v) hn::Store(counts[p][v], d8, bytes + (p * V + v) * kLanes);
  }
  for (int p = 0; p < P; ++p)
    for (int v = 0; v < V; ++v) store(t, p, v * kLanes, bytes + (p * V + v) * kLanes);
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
    if (first && s == end) return store_bytes<P, V>(t, counts);
    LAMINA_UNROLL
    for (int p = 0; p < P; ++p) {
      LAMINA_UNROLL
      for (int v = 0; v < V; ++v) flush(counts[p][v], first, sums + (p * V + v) * kLanes);
    }
  }
  for (int p = 0; p < P; ++p)
    for (int v = 0; v < V; ++v) store(t, p, v * kLanes, sums + (p * V + v) * kLanes);
}

/// Bits of 4 channels each, times 16, in a byte.
void pack_lookup(const Points& s) {
  const auto bytes_of = [](const float* from, std::int64_t n) HWY_ATTR {
    const auto v = n < kFloats ? load_some(df, from, n) : hn::LoadU(df, from);
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(df, hn::Gt(v, hn::Zero(df)), bits);
    std::uint32_t b;
    std::memcpy(&b, bits, sizeof b);
    b = (b | b << 8) & 0x00ff00ffu;
    b = (b | b << 4) & 0x0f0f0f0fu;
    return b << 4;
  };
  for (std::int64_t i = 0; i < s.count; ++i) {
    const float* in = s.in + i * s.step;
    std::uint8_t* out = s.out + i * s.out_step;
    for (std::int64_t g = 0; g < s.groups; ++g) {
      std::int64_t c = 0;
      for (; c + kFloats <= s.channels; c += kFloats, out += kFloats / 4) {
        const auto b = bytes_of(in + c, kFloats);
        std::memcpy(out, &b, kFloats / 4);
      }
      if (c < s.channels)
        for (auto b = bytes_of(in + c, s.channels - c); c < s.channels; c += 4, b >>= 8)
          *out++ = static_cast<std::uint8_t>(b);
      in += s.channels;
    }
  }
}

/// P points by all outputs.
template <int P>
void depthwise_tile(const Tile& t) {
  const std::uint8_t* from[P];
  for (int p = 0; p < P; ++p) from[p] = t.x[p] + t.x_add;
  for (std::int64_t at = 0; at < t.channels; at += kLanes) {
    V8 counts[P];
    LAMINA_UNROLL
    for (int p = 0; p < P; ++p) counts[p] = hn::Zero(d8);
    const std::uint8_t* w = t.w + at / kLanes * t.w_vector;
    for (std::int64_t i = 0; i < t.segment_count; ++i, w += kLanes) {
      const V8 weights = hn::Load(d8, w);
      const std::int64_t offset = t.segments[i].offset + at;
      LAMINA_UNROLL
      for (int p = 0; p < P; ++p)  // a difference is 255, which is -1
        counts[p] = hn::Sub(counts[p], hn::Xor(weights, hn::LoadU(d8, from[p] + offset)));
    }
    LAMINA_UNROLL
    for (int p = 0; p < P; ++p) {
      HWY_ALIGN std::uint8_t bytes[kLanes];
      hn::Store(counts[p], d8, bytes);
      store(t, p, at, bytes);
    }
  }
}

void pack_depthwise(const Points& s) {
  const hn::Rebind<std::int8_t, DI> narrow;
  for (std::int64_t i = 0; i < s.count; ++i) {
    const float* in = s.in + i * s.step;
    std::uint8_t* out = s.out + i * s.out_step;
    for (std::int64_t c = 0; c < s.channels; c += kFloats) {
      const auto left = s.channels - c;
      const auto v = left < kFloats ? load_some(df, in + c, left) : hn::LoadU(df, in + c);
      const auto mask = hn::RebindMask(di, hn::Gt(v, hn::Zero(df)));
      hn::StoreU(hn::DemoteTo(narrow, hn::VecFromMask(di, mask)), narrow,
                 reinterpret_cast<std::int8_t*>(out + c));
    }
  }
}

}  // namespace

binary::Kernels make_lookup_kernels(const char* name, double speed) {
  using T = std::uint16_t;
  return {name,
          kLanes,
          4,
          1,
          63,
          2,
          6,
          speed,
          {{},
           {nullptr, lookup_tile<1, 1, T>, lookup_tile<2, 1, T>, lookup_tile<3, 1, T>, lookup_tile<4, 1, T>,
            lookup_tile<5, 1, T>, lookup_tile<6, 1, T>},
           {nullptr, lookup_tile<1, 2, T>, lookup_tile<2, 2, T>, lookup_tile<3, 2, T>, lookup_tile<4, 2, T>,
            lookup_tile<5, 2, T>, lookup_tile<6, 2, T>}},
          {nullptr, lookup_tile<1, 1, std::uint32_t>, lookup_tile<2, 1, std::uint32_t>,
           lookup_tile<3, 1, std::uint32_t>, lookup_tile<4, 1, std::uint32_t>,
           lookup_tile<5, 1, std::uint32_t>, lookup_tile<6, 1, std::uint32_t>},
          pack_lookup};
}

binary::Kernels make_depthwise_binary_kernels(const char* name, double speed) {
  return {name,
          kLanes,
          1,
          1,
          255,
          1,
          4,
          speed,
          {{}, {nullptr, depthwise_tile<1>, depthwise_tile<2>, depthwise_tile<3>, depthwise_tile<4>}},
          {},
          pack_depthwise};
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina::binary {
namespace {

/// Those of the narrower vectors too, which few outputs fill: the fastest for so many.
const Kernels& best(const Kernels* list, std::int64_t outputs) {
  const auto cost = [&](const Kernels& k) {
    const std::int64_t vectors = (outputs + k.lanes - 1) / k.lanes;
    return static_cast<double>(vectors * k.lanes) / k.speed;
  };
  const Kernels* found = list;
  for (int i = 1; i <= static_cast<int>(effective_isa()); ++i)
    if (cost(list[i]) <= cost(*found)) found = list + i;
  return *found;
}

}  // namespace

const Kernels& lookup_kernels(std::int64_t outputs) {
  static const Kernels list[] = {N_SSE4::make_lookup_kernels("sse41", 80),
                                 N_AVX2::make_lookup_kernels("avx2", 180),
                                 N_AVX3::make_lookup_kernels("avx512", 220)};
  return best(list, outputs);
}

const Kernels& depthwise_kernels(std::int64_t channels) {
  static const Kernels list[] = {N_SSE4::make_depthwise_binary_kernels("depthwise_sse41", 30),
                                 N_AVX2::make_depthwise_binary_kernels("depthwise_avx2", 60),
                                 N_AVX3::make_depthwise_binary_kernels("depthwise_avx512", 100)};
  return best(list, channels);
}

}  // namespace lamina::binary
#endif
