/// Micro-kernels of products of integers, exact on every processor; see tiles.h.
///
/// Products of two pairs are summed by pmaddwd, those of small quads by pmaddubsw, which would saturate with
/// larger ones, and pmaddwd; those of quads by vpdpbusd, which is a feature of its own:
/// its kernels stand in namespaces of their own inside those of the levels, and only their table leads there.
#include "kernels/native/gemm/tiles.h"

#include <cstring>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/gemm/integer_tiles.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/gemm/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// What arithmetics of integers share.
struct Integers {
  static constexpr bool kIntegers = true, kProductsApart = false;
  using Sums = Integers;
  using T = std::int32_t;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Row = V;  ///< bits

  static HWY_INLINE V broadcast(const std::byte* a) {
    T word;
    std::memcpy(&word, a, sizeof word);
    return hn::Set(D(), word);
  }
  template <class Each>
  static HWY_INLINE void finish(const gemm::Tile&, const Each&) {}
};

/// sum += x * y, pairs of 16 bits. In the register of `sum`, through one that is free at once: compilers
/// would move sums about, and make many products before they add them.
HWY_INLINE void add_pairs(Integers::V x, Integers::V y, Integers::V& sum) {
#if HWY_TARGET == HWY_SSE4
  sum = hn::Add(sum, Integers::V{_mm_madd_epi16(x.raw, y.raw)});
#else
  Integers::V products;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
      : "+v"(sum.raw), "=&v"(products.raw)
      : "v"(x.raw), "v"(y.raw));
#endif
}

struct Pairs : Integers {
  static constexpr bool kProductsApart = true;
  static constexpr gemm::Units kUnits = gemm::units_of(gemm::Arithmetic::pairs);
  static HWY_INLINE Row load(const std::byte* b) {
    const hn::Repartition<std::int16_t, D> d16;
    const hn::Rebind<std::int8_t, decltype(d16)> d8;
    return hn::BitCast(D(), hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(b))));
  }
  static HWY_INLINE void multiply_add(V x, Row y, V& sum) { add_pairs(x, y, sum); }
};

struct WidePairs : Integers {
  static constexpr bool kProductsApart = true;
  static constexpr gemm::Units kUnits = gemm::units_of(gemm::Arithmetic::wide_pairs);
  static HWY_INLINE Row load(const std::byte* b) { return hn::LoadU(D(), reinterpret_cast<const T*>(b)); }
  static HWY_INLINE void multiply_add(V x, Row y, V& sum) { add_pairs(x, y, sum); }
};

struct SmallQuads : Integers {
  static constexpr gemm::Units kUnits = gemm::units_of(gemm::Arithmetic::small_quads);
#if HWY_TARGET == HWY_AVX2
  // From memory each time: else registers would not suffice for the ones, too.
  using Row = const std::byte*;
  static HWY_INLINE Row load(const std::byte* b) { return b; }
  static HWY_INLINE void multiply_add(V x, Row y, V& sum) {
    const auto ones = hn::Set(D(), 0x10001);
    V products;
    asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
        : "+v"(sum.raw), "=&v"(products.raw)
        : "v"(x.raw), "m"(*reinterpret_cast<const __m256i_u*>(y)), "v"(ones.raw));
  }
#else
  static HWY_INLINE Row load(const std::byte* b) { return hn::LoadU(D(), reinterpret_cast<const T*>(b)); }
  static HWY_INLINE void multiply_add(V x, Row y, V& sum) {
    const auto ones = hn::Set(D(), 0x10001);
#if HWY_TARGET == HWY_SSE4
    sum = hn::Add(sum, V{_mm_madd_epi16(_mm_maddubs_epi16(x.raw, y.raw), ones.raw)});
#else
    V products;
    asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
        : "+v"(sum.raw), "=&v"(products.raw)
        : "v"(x.raw), "v"(y.raw), "vm"(ones.raw));
#endif
  }
#endif
};

}  // namespace

gemm::Tiles make_pair_tiles() { return all_tiles<Pairs>(); }
gemm::Tiles make_wide_pair_tiles() { return all_tiles<WidePairs>(); }
gemm::Tiles make_small_quad_tiles() { return all_tiles<SmallQuads>(); }

#if HWY_TARGET <= HWY_AVX2
#if HWY_TARGET == HWY_AVX2
namespace N_AVX_VNNI {
#else
namespace N_VNNI {
#endif

struct Quads : Integers {
  static constexpr gemm::Units kUnits = gemm::units_of(gemm::Arithmetic::quads);
  static HWY_INLINE Row load(const std::byte* b) { return hn::LoadU(D(), reinterpret_cast<const T*>(b)); }
  static HWY_INLINE void multiply_add(V x, Row y, V& sum) {
#if HWY_TARGET == HWY_AVX2
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(x.raw), "x"(y.raw));
#else
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(y.raw));
#endif
  }
};

gemm::Tiles make_quad_tiles() { return all_tiles<Quads>(); }

}  // namespace N_VNNI or N_AVX_VNNI
#endif

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina::gemm {
namespace {

LAMINA_TABLE(Tiles, pair_tiles, make_pair_tiles)
LAMINA_TABLE(Tiles, wide_pair_tiles, make_wide_pair_tiles)
LAMINA_TABLE(Tiles, small_quad_tiles, make_small_quad_tiles)

const Tiles& quad_tiles() {
  static constexpr PerIsa<Tiles()> make{nullptr, N_AVX2::N_AVX_VNNI::make_quad_tiles,
                                        N_AVX3::N_VNNI::make_quad_tiles};
  static const Tiles table = make.best()();
  return table;
}

}  // namespace

bool multiplies_quads(const Machine& machine) {
  switch (machine.isa()) {
    case Isa::avx512:
      return machine.features.has(Feature::avx512_vnni);
    case Isa::avx2:
      return machine.features.has(Feature::avx_vnni);
    case Isa::sse41:
      break;
  }
  return false;
}

const Tiles& tiles(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::floats:
      break;
    case Arithmetic::pairs:
      return pair_tiles();
    case Arithmetic::wide_pairs:
      return wide_pair_tiles();
    case Arithmetic::matched_quads:
    case Arithmetic::small_quads:
      return small_quad_tiles();
    case Arithmetic::quads:
      return quad_tiles();
  }
  return tiles();
}

}  // namespace lamina::gemm
#endif
