// Walks f32 vectors: what the loops of float.simd.cc, math.simd.cc and their like share. Include inside
// Highway units only, after hwy/highway.h.
#if defined(LAMINA_STAGE_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_STAGE_LOOPS_INL
#undef LAMINA_STAGE_LOOPS_INL
#else
#define LAMINA_STAGE_LOOPS_INL
#endif

#include <hwy/highway.h>

#include "kernels/native/simd/vector_part-inl.h"
#include "kernels/native/stages/loops.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace stage_loops {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using I = hn::RebindToSigned<D>;
using stages::LoopArgs;

constexpr float kInfinity = __builtin_inff();

HWY_INLINE V set(float v) { return hn::Set(D(), v); }
HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

/// The nearest f16, in f32.
HWY_INLINE V nearest_f16(V x) {
  const D d;
  const I di;
  const V a = hn::Abs(x);
  const auto bits = hn::BitCast(di, a);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(di, 1));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(di, 0xfff)));
  V r = hn::BitCast(d, hn::And(up, hn::Set(di, ~0x1fff)));
  r = hn::IfThenElse(hn::Lt(a, set(0x1p-14f)), hn::Sub(hn::Add(a, set(0.5f)), set(0.5f)), r);
  r = hn::IfThenElse(hn::Ge(a, set(65520.0f)), set(kInfinity), r);
  return hn::IfThenElse(hn::Eq(x, x), hn::CopySign(r, x), x);
}

/// The nearest bf16, in f32.
HWY_INLINE V nearest_bf16(V x) {
  const D d;
  const I di;
  const auto bits = hn::BitCast(di, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 1));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(di, 0x7fff)));
  const V r = hn::BitCast(d, hn::And(up, hn::Set(di, ~0xffff)));
  return hn::IfThenElse(hn::Eq(x, x), r, x);
}

using Bytes = hn::Rebind<std::uint8_t, D>;

/// A mask of 32-bit lanes as bytes 0 and 1, and back.
HWY_INLINE hn::Vec<Bytes> bytes_of(hn::Mask<D> mask) {
#if HWY_TARGET == HWY_AVX3  // both are masks of as many bits
  hn::Mask<Bytes> narrow;
  narrow.raw = mask.raw;
  return hn::IfThenElseZero(narrow, hn::Set(Bytes(), 1));
#else
  const auto ones = hn::And(hn::BitCast(I(), hn::VecFromMask(D(), mask)), hn::Set(I(), 1));
  return hn::DemoteTo(Bytes(), ones);
#endif
}
HWY_INLINE hn::Mask<D> mask_of(hn::Vec<Bytes> bytes) {
#if HWY_TARGET == HWY_AVX3
  hn::Mask<D> wide;
  wide.raw = hn::Not(hn::Eq(bytes, hn::Zero(Bytes()))).raw;
  return wide;
#else
  return hn::RebindMask(D(), hn::Gt(hn::PromoteTo(I(), bytes), hn::Zero(I())));
#endif
}

HWY_INLINE void store_bytes(hn::Mask<D> mask, std::uint8_t* out, std::int64_t n) {
  const auto bytes = bytes_of(mask);
  if (n == lanes()) return hn::StoreU(bytes, Bytes(), out);
  HWY_ALIGN std::uint8_t buffer[64];
  hn::StoreU(bytes, Bytes(), buffer);
  for (std::int64_t i = 0; i < n; ++i) out[i] = buffer[i];
}

/// out[i] = f(in0[i])
template <class F>
HWY_INLINE void for_vectors(const LoopArgs& a, const F& f) {
  const D d;
  const auto* x = static_cast<const float*>(a.in[0]);
  auto* out = static_cast<float*>(a.out);
  const std::int64_t n = lanes();
  std::int64_t i = 0;
  for (; i + n <= a.count; i += n) hn::StoreU(f(hn::LoadU(d, x + i)), d, out + i);
  if (i < a.count) store_some(f(load_some(D(), x + i, a.count - i)), D(), out + i, a.count - i);
}

/// store(f(a[i], b[i]), i, n) for whole vectors and the rest.
template <bool kVectorA, bool kVectorB, class F, class S>
HWY_INLINE void for_pairs(const LoopArgs& args, const F& f, const S& store) {
  const D d;
  const auto *a = static_cast<const float*>(args.in[0]), *b = static_cast<const float*>(args.in[1]);
  const V scalar_a = set(*a), scalar_b = set(*b);
  const std::int64_t n = lanes();
  std::int64_t i = 0;
  for (; i + n <= args.count; i += n)
    store(f(kVectorA ? hn::LoadU(d, a + i) : scalar_a, kVectorB ? hn::LoadU(d, b + i) : scalar_b), i, n);
  const auto rest = args.count - i;
  if (rest > 0)
    store(f(kVectorA ? load_some(D(), a + i, rest) : scalar_a,
            kVectorB ? load_some(D(), b + i, rest) : scalar_b),
          i, rest);
}

/// Applies f with any of the operands as vectors.
template <class F, class S>
HWY_INLINE void for_operands(const LoopArgs& args, const F& f, const S& store) {
  if ((args.vectors & 3) == 3)
    for_pairs<true, true>(args, f, store);
  else if ((args.vectors & 3) == 1)
    for_pairs<true, false>(args, f, store);
  else if ((args.vectors & 3) == 2)
    for_pairs<false, true>(args, f, store);
  else
    for_pairs<false, false>(args, f, store);
}

}  // namespace stage_loops
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
