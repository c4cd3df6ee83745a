// Bytes of four vectors of sums at once, where nothing is NaN: less to do for each than by Store
// (integer_finish-inl.h). Include inside Highway units only, after hwy/highway.h.
#if defined(LAMINA_INTEGER_PACKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_INTEGER_PACKS_INL
#undef LAMINA_INTEGER_PACKS_INL
#else
#define LAMINA_INTEGER_PACKS_INL
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/native/simd/integer_finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE::integer_finish {

using AllBytes = hn::Repartition<std::uint8_t, D>;
using Halves = hn::Vec<hn::Repartition<std::int16_t, D>>;

HWY_INLINE Halves halves(Sums a, Sums b) {
#if HWY_TARGET == HWY_AVX3
  return Halves{_mm512_packs_epi32(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Halves{_mm256_packs_epi32(a.raw, b.raw)};
#else
  return Halves{_mm_packs_epi32(a.raw, b.raw)};
#endif
}

/// Whole numbers of four vectors, with `zero` added, as unsigned bytes, vector after vector.
HWY_INLINE hn::Vec<AllBytes> packed(const Sums (&v)[4], Halves zero) {
  const auto low = hn::SaturatedAdd(halves(v[0], v[1]), zero);
  const auto high = hn::SaturatedAdd(halves(v[2], v[3]), zero);
  // Packs take 16 bytes of each by themselves: four lanes of each vector.
#if HWY_TARGET == HWY_AVX3
  const auto in_order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  return hn::Vec<AllBytes>{_mm512_permutexvar_epi32(in_order, _mm512_packus_epi16(low.raw, high.raw))};
#elif HWY_TARGET == HWY_AVX2
  const auto in_order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  return hn::Vec<AllBytes>{_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low.raw, high.raw), in_order)};
#else
  return hn::Vec<AllBytes>{_mm_packus_epi16(low.raw, high.raw)};
#endif
}

/// Stores the quarters of a vector at the distances `at` from `out`.
HWY_INLINE void store_quarters(hn::Vec<AllBytes> v, std::byte* out, const std::int64_t (&at)[4]) {
  [[maybe_unused]] const auto to = [&](int i) HWY_ATTR { return reinterpret_cast<__m128i*>(out + at[i]); };
#if HWY_TARGET == HWY_AVX3
  _mm_storeu_si128(to(0), _mm512_castsi512_si128(v.raw));
  _mm_storeu_si128(to(1), _mm512_extracti32x4_epi32(v.raw, 1));
  _mm_storeu_si128(to(2), _mm512_extracti32x4_epi32(v.raw, 2));
  _mm_storeu_si128(to(3), _mm512_extracti32x4_epi32(v.raw, 3));
#elif HWY_TARGET == HWY_AVX2
  const auto low = _mm256_castsi256_si128(v.raw), high = _mm256_extracti128_si256(v.raw, 1);
  _mm_storel_epi64(to(0), low);
  _mm_storel_epi64(to(1), _mm_unpackhi_epi64(low, low));
  _mm_storel_epi64(to(2), high);
  _mm_storel_epi64(to(3), _mm_unpackhi_epi64(high, high));
#else
  std::int32_t words[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words), v.raw);
  for (int i = 0; i < 4; ++i) __builtin_memcpy(to(i), words + i, 4);
#endif
}

/// Stores the halves of a vector.
HWY_INLINE void store_halves(hn::Vec<AllBytes> v, std::byte* first, std::byte* second) {
#if HWY_TARGET == HWY_AVX3
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(first), _mm512_castsi512_si256(v.raw));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(second), _mm512_extracti64x4_epi64(v.raw, 1));
#elif HWY_TARGET == HWY_AVX2
  _mm_storeu_si128(reinterpret_cast<__m128i*>(first), _mm256_castsi256_si128(v.raw));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(second), _mm256_extracti128_si256(v.raw, 1));
#else
  _mm_storel_epi64(reinterpret_cast<__m128i*>(first), v.raw);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(second), _mm_unpackhi_epi64(v.raw, v.raw));
#endif
}

HWY_INLINE Halves packed_zero(const IntegerFinish& f) {
  return hn::Set(hn::Repartition<std::int16_t, D>(), f.packs.zero_point);
}

/// Bytes of four vectors where `packs.bounds_last`: less to do for each than by Store.
class PackedBytes {
 public:
  HWY_INLINE explicit PackedBytes(const IntegerFinish& f)
      : zero_point_(packed_zero(f)),
        low_(hn::Set(AllBytes(), f.packs.low)),
        high_(hn::Set(AllBytes(), f.packs.high)),
        turned_(hn::Set(AllBytes(), f.packs.turned)) {}

  HWY_INLINE hn::Vec<AllBytes> operator()(const V (&v)[4]) const {
    const Sums levels[4] = {nearest(v[0]), nearest(v[1]), nearest(v[2]), nearest(v[3])};
    return hn::Xor(hn::Min(high_, hn::Max(low_, packed(levels, zero_point_))), turned_);
  }

 private:
  Halves zero_point_;
  hn::Vec<AllBytes> low_, high_, turned_;
};

/// Rounds and stores with further steps, where no number is NaN.
template <Between kBetween>
class PackedBytesBehind {
 public:
  HWY_INLINE explicit PackedBytesBehind(const IntegerFinish& f)
      : middle_(f),
        low_(hn::Set(D(), f.low)),
        high_(hn::Set(D(), f.high)),
        zero_point_(packed_zero(f)),
        turned_(hn::Set(AllBytes(), f.packs.turned)) {}

  HWY_INLINE hn::Vec<AllBytes> operator()(V (&v)[4], const std::int64_t (&channel)[4], const std::byte* add,
                                          const std::int64_t (&at)[4], std::int64_t count) const {
    middle_(v, channel, add, at, count);
    Sums levels[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) levels[i] = nearest(hn::Min(high_, hn::Max(low_, v[i])));
    return hn::Xor(packed(levels, zero_point_), turned_);
  }

 private:
  Middle<kBetween> middle_;
  V low_, high_;
  Halves zero_point_;
  hn::Vec<AllBytes> turned_;
};

}  // namespace lamina::HWY_NAMESPACE::integer_finish
HWY_AFTER_NAMESPACE();

#endif
