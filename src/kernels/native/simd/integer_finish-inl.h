// IntegerFinish in vectors. Include inside Highway units only, after hwy/highway.h. A kernel has a tile of
// i32 sums in registers and stores it like this:
//
//     // What is done is chosen once for many vectors.
//     each_sums_store(finish, [&](const auto& store) HWY_ATTR {
//       for (all vectors of the tile)
//         store(sums, channel, out, added, count);
//     });
//
// `channel`: of the vector's first sum; it may be any, so vectors may overlap. `out`, `added`: the elements
// of that channel in the output and in the second tensor (null when there is none); their types are what
// `finish` says. `count`: sums that are stored, at most a vector; nothing behind them is touched.
#if defined(LAMINA_INTEGER_FINISH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_INTEGER_FINISH_INL
#undef LAMINA_INTEGER_FINISH_INL
#else
#define LAMINA_INTEGER_FINISH_INL
#endif

#include <cstdint>

#include <hwy/highway.h>

#include "kernels/native/simd/finish-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace integer_finish {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Words = hn::RebindToSigned<D>;
using Sums = hn::Vec<Words>;
using Bytes = hn::Rebind<std::uint8_t, D>;

HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

/// Rounded to nearest even; v is no further from 0 than i32 goes (NaN gives anything).
HWY_INLINE Sums nearest(V v) {
#if HWY_TARGET == HWY_AVX3
  return Sums{_mm512_cvtps_epi32(v.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Sums{_mm256_cvtps_epi32(v.raw)};
#else
  return Sums{_mm_cvtps_epi32(v.raw)};
#endif
}

/// The low byte of each.
HWY_INLINE hn::Vec<Bytes> low_bytes(Sums v) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<Bytes>{_mm512_cvtepi32_epi8(v.raw)};
#else
  return hn::TruncateTo(Bytes(), hn::BitCast(hn::RebindToUnsigned<D>(), v));
#endif
}

HWY_INLINE void store_bytes(hn::Vec<Bytes> v, std::uint8_t* to, std::int64_t count) {
  if (count >= lanes()) return hn::StoreU(v, Bytes(), to);
#if HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(Bytes(), static_cast<std::size_t>(count)), Bytes(), to);
#else
  HWY_ALIGN std::uint8_t buffer[16];
  hn::StoreU(v, Bytes(), buffer);
  for (std::int64_t i = 0; i < count; ++i) to[i] = buffer[i];
#endif
}

HWY_INLINE hn::Vec<Bytes> load_bytes(const std::uint8_t* from, std::int64_t count) {
  if (count >= lanes()) return hn::LoadU(Bytes(), from);
#if HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(Bytes(), static_cast<std::size_t>(count)), Bytes(), from);
#else
  HWY_ALIGN std::uint8_t buffer[16] = {};
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = from[i];
  return hn::LoadU(Bytes(), buffer);
#endif
}

/// Elements of the second tensor, as numbers.
HWY_INLINE V added(const IntegerFinish& f, const void* from, std::int64_t channel, std::int64_t count) {
  using Added = IntegerFinish::Added;
  const D d;
  if (f.added == Added::rows)
    return hn::LoadU(d, f.rows + *static_cast<const std::uint8_t*>(from) * f.row + channel);
  if (f.added == Added::floats) {
    const auto* floats = static_cast<const float*>(from);
    return count >= lanes() ? hn::LoadU(d, floats) : load_some(d, floats, count);
  }
  const auto bytes = load_bytes(static_cast<const std::uint8_t*>(from), count);
  const hn::Rebind<std::int8_t, D> signed_bytes;
  return hn::ConvertTo(d, f.added == Added::unsigned_bytes
                              ? hn::PromoteTo(Words(), bytes)
                              : hn::PromoteTo(Words(), hn::BitCast(signed_bytes, bytes)));
}

/// Sums of channels scaled and shifted.
class Scaled {
 public:
  HWY_INLINE Scaled(const IntegerFinish& f, std::int64_t channel)
      : scale_(hn::LoadU(D(), f.scale + channel)), shift_(hn::LoadU(D(), f.shift + channel)) {}
  HWY_INLINE V operator()(Sums sums) const {
    return hn::Add(hn::Mul(hn::ConvertTo(D(), sums), scale_), shift_);
  }

 private:
  V scale_, shift_;
};

/// Divides by a step.
class Divided {
 public:
  HWY_INLINE explicit Divided(const IntegerFinish::Step& s)
      : by_(s),
        step_(hn::Set(D(), s.step)),
        inverse_(hn::Set(D(), s.inverse)),
        rest_(hn::Set(D(), s.inverse_rest)) {}

  template <int N>
  HWY_INLINE void operator()(V (&v)[N]) const {
    if (by_.step == 1) return;
#if HWY_TARGET <= HWY_AVX2
    if (by_.inverse != 0) {
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) v[i] = quotient(v[i]);
      return;
    }
#endif
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) v[i] = hn::Div(v[i], step_);
  }

 private:
  /// Correctly rounded: a quotient of which the last bit may be wrong, and what it leaves over counted in
  /// (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
  HWY_INLINE V quotient(V v) const {
    const V q = hn::MulAdd(v, inverse_, hn::Mul(v, rest_));
    return hn::MulAdd(hn::NegMulAdd(q, step_, v), inverse_, q);
  }

  const IntegerFinish::Step& by_;
  V step_, inverse_, rest_;
};

/// To levels and back.
class Levelled {
 public:
  HWY_INLINE explicit Levelled(const IntegerFinish::Levels& l)
      : levels_(l),
        divided_(l.step),
        low_(hn::Set(D(), l.low)),
        high_(hn::Set(D(), l.high)),
        zero_(hn::Set(D(), l.zero)),
        scale_(hn::Set(D(), l.scale)) {}

  template <int N>
  HWY_INLINE void operator()(V (&v)[N]) const {
    if (!levels_.any) return;
    divided_(v);
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) v[i] = hn::Round(hn::Min(high_, hn::Max(low_, v[i])));
    if (levels_.zero != 0) {
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) v[i] = hn::Add(v[i], zero_);
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) v[i] = hn::Mul(v[i], scale_);
  }

 private:
  const IntegerFinish::Levels& levels_;
  Divided divided_;
  V low_, high_, zero_, scale_;
};

/// What there may be between scaling and the last bounds: a second scale and shift and a step; before these
/// levels and a finish; all.
enum class Between { step, levels, all };

/// What is done there.
template <Between kBetween>
class Middle {
 public:
  HWY_INLINE explicit Middle(const IntegerFinish& f)
      : f_(f),
        levels_(f.levels),
        joined_(f.joined),
        divided_(f.step),
        added_zero_(hn::Set(D(), f.added_zero)),
        added_scale_(hn::Set(D(), f.added_scale)) {}

  /// N vectors that begin at `channel`; of their second tensors `count`, where `at` says from `add` on.
  template <int N>
  HWY_INLINE void operator()(V (&v)[N], const std::int64_t (&channel)[N], const void* add,
                             const std::int64_t (&at)[N], std::int64_t count) const {
    constexpr bool kAll = kBetween == Between::all;
    if constexpr (kBetween != Between::step) {
      levels_(v);
      if (kAll && f_.added != IntegerFinish::Added::none) add_to(v, channel, add, at, count);
      if (kAll) joined_(v);
      finish_each(D(), f_.finish, [&](const auto& apply) HWY_ATTR {
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) v[i] = apply(v[i]);
      });
      if (kAll && f_.slopes) {
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i)
          v[i] = hn::IfThenElse(hn::Lt(v[i], hn::Zero(D())),
                                hn::Mul(v[i], hn::LoadU(D(), f_.slope + channel[i])), v[i]);
      }
    }
    if (f_.has_post) {
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i)
        v[i] = hn::Add(hn::Mul(v[i], hn::LoadU(D(), f_.post_scale + channel[i])),
                       hn::LoadU(D(), f_.post_shift + channel[i]));
    }
    divided_(v);
  }

 private:
  template <int N>
  HWY_INLINE void add_to(V (&v)[N], const std::int64_t (&channel)[N], const void* add,
                         const std::int64_t (&at)[N], std::int64_t count) const {
    using Added = IntegerFinish::Added;
    V x[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i)
      x[i] = added(f_, static_cast<const std::byte*>(add) + at[i], channel[i], count);
    const bool bytes = f_.added == Added::unsigned_bytes || f_.added == Added::signed_bytes;
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      if (bytes) x[i] = hn::Mul(hn::Sub(x[i], added_zero_), added_scale_);
      v[i] = hn::Add(v[i], x[i]);
    }
  }

  const IntegerFinish& f_;
  Levelled levels_, joined_;
  Divided divided_;
  V added_zero_, added_scale_;
};

enum class Kind { sums, floats, bytes, any };

/// Stores vectors of sums; see above. `kind`: what is known of f; any: nothing.
template <Kind kind>
class Store {
 public:
  HWY_INLINE explicit Store(const IntegerFinish& f)
      : f_(f),
        middle_(f),
        low_(hn::Set(D(), f.low)),
        high_(hn::Set(D(), f.high)),
        zero_point_(hn::Set(Words(), f.zero_point)) {}

  HWY_INLINE void operator()(Sums sums, std::int64_t channel, void* out, [[maybe_unused]] const void* add,
                             std::int64_t count) const {
    if constexpr (kind == Kind::sums) return store_floats(hn::BitCast(D(), sums), out, count);
    V v = Scaled(f_, channel)(sums);
    if constexpr (kind == Kind::any) {
      V one[1] = {v};
      middle_(one, {channel}, add, {0}, count);
      v = one[0];
    }
    const V bounded = hn::Min(high_, hn::Max(low_, v));  // NaN passes
    if (kind == Kind::floats || (kind == Kind::any && f_.stored == IntegerFinish::Stored::floats))
      return store_floats(bounded, out, count);
    auto level = hn::Add(nearest(bounded), zero_point_);
    if (kind == Kind::any && f_.nan) level = hn::IfThenElseZero(hn::RebindMask(Words(), hn::Eq(v, v)), level);
    store_bytes(low_bytes(level), static_cast<std::uint8_t*>(out), count);
  }

 private:
  /// Four bytes of each lane.
  static HWY_INLINE void store_floats(V v, void* out, std::int64_t count) {
    auto* to = static_cast<float*>(out);
    if (count >= lanes())
      hn::StoreU(v, D(), to);
    else
      store_some(v, D(), to, count);
  }

  const IntegerFinish& f_;
  Middle<Between::all> middle_;
  V low_, high_;
  Sums zero_point_;
};

}  // namespace integer_finish

/// Calls work(store) with what stores vectors of sums as f says.
template <class Work>
HWY_INLINE void each_sums_store(const IntegerFinish& f, const Work& work) {
  using integer_finish::Kind;
  using integer_finish::Store;
  if (f.stored == IntegerFinish::Stored::sums) return work(Store<Kind::sums>(f));
  if (!f.simple()) return work(Store<Kind::any>(f));
  if (f.stored == IntegerFinish::Stored::bytes) return work(Store<Kind::bytes>(f));
  work(Store<Kind::floats>(f));
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
