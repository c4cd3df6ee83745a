/// Finishes sums in memory; see sum_rows.h.
#include "kernels/native/stages/sum_rows.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/sum_rows.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/integer_finish-inl.h"
#include "kernels/native/simd/integer_packs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using integer_finish::lanes;
using integer_finish::Words;

HWY_INLINE integer_finish::Sums load(const std::int32_t* from, std::int64_t count) {
  if (count >= lanes()) return hn::LoadU(Words(), from);
  HWY_ALIGN std::int32_t buffer[hn::MaxLanes(Words())] = {};
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = from[i];
  return hn::Load(Words(), buffer);
}

/// Where four vectors are, by their points: one of channels of four points, or two of two points. The last
/// point stands for missing ones.
template <bool kPairs>
struct Places {
  static constexpr std::int64_t kPoints = kPairs ? 2 : 4;
  std::int64_t at[4];

  /// `step` from point to point, `more` from the first vector of channels to the second.
  HWY_INLINE Places(std::int64_t points, std::int64_t step, std::int64_t more) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      at[i] = HWY_MIN(points - 1, kPairs ? i / 2 : i) * step + (kPairs && i % 2 == 1 ? more : 0);
  }
};

/// All points of one vector of channels, or of two where kPairs, by bytes(scaled sums, channels, added, where
/// that of each is, how many channels count).
template <bool kPairs, class MakeBytes>
HWY_INLINE void finish_channels(const IntegerFinish& f, const SumRows& r, std::int64_t from,
                                std::int64_t count, const MakeBytes& bytes) {
  constexpr auto kPoints = Places<kPairs>::kPoints;
  const auto channel = r.channel + from, next = kPairs ? lanes() : 0;
  const integer_finish::Scaled first(f, channel), second(f, channel + next);
  const std::int64_t channels[4] = {channel, channel + next, channel, channel + next};
  const Places<kPairs> sum(r.points, r.sums_step, next), add(r.points, r.added_step, next * f.added_bytes()),
      to(r.points, r.out_step, 0);
  const auto last = HWY_MAX(r.points - kPoints, std::int64_t{0});
  for (std::int64_t p = 0;; p = HWY_MIN(p + kPoints, last)) {  // the last ones overlap those before
    const auto* sums = r.sums + p * r.sums_step + from;
    const auto load = [&](int i) HWY_ATTR { return hn::LoadU(Words(), sums + sum.at[i]); };
    integer_finish::V v[4] = {first(load(0)), second(load(1)), first(load(2)), second(load(3))};
    const auto* added = r.added ? r.added + p * r.added_step + from * f.added_bytes() : nullptr;
    const auto made = bytes(v, channels, added, add.at, count);
    auto* out = r.out + p * r.out_step + from;
    if constexpr (kPairs) {
      integer_finish::store_halves(made, out, out + to.at[2]);
    } else if (count == lanes()) {
      integer_finish::store_quarters(made, out, to.at);
    } else {
      HWY_ALIGN std::uint8_t buffer[4 * hn::MaxLanes(Words())];
      hn::Store(made, integer_finish::AllBytes(), buffer);
      for (int i = 0; i < 4; ++i)
        for (std::int64_t c = 0; c < count; ++c)
          out[to.at[i] + c] = static_cast<std::byte>(buffer[i * lanes() + c]);
    }
    if (p == last) return;
  }
}

/// The last vector of several overlaps the one before where channels do not fill it.
template <class MakeBytes>
HWY_INLINE void finish_bytes(const IntegerFinish& f, const SumRows& r, const MakeBytes& bytes) {
  std::int64_t c = 0;
  for (; c + 2 * lanes() <= r.channels; c += 2 * lanes()) finish_channels<true>(f, r, c, lanes(), bytes);
  for (; c < r.channels; c += lanes())
    finish_channels<false>(f, r, HWY_MIN(c, HWY_MAX(r.channels - lanes(), std::int64_t{0})),
                           HWY_MIN(r.channels, lanes()), bytes);
}

/// Where `packs.bounds_last`.
struct SimpleBytes {
  const integer_finish::PackedBytes bytes;
  HWY_INLINE explicit SimpleBytes(const IntegerFinish& f) : bytes(f) {}
  HWY_INLINE auto operator()(const integer_finish::V (&v)[4], const std::int64_t (&)[4], const std::byte*,
                             const std::int64_t (&)[4], std::int64_t) const {
    return bytes(v);
  }
};

/// By values of their own, which bytes that are stored cannot change.
template <class MakeBytes>
HWY_NOINLINE void finish_bytes_by(const IntegerFinish& finish, const SumRows& rows) {
  const IntegerFinish f = finish;
  const SumRows r = rows;
  finish_bytes(f, r, MakeBytes(f));
}

}  // namespace

void finish_rows(const IntegerFinish& f, const SumRows& r) {
  if (f.stored == IntegerFinish::Stored::bytes && !f.nan) {
    if (f.packs.bounds_last) return finish_bytes_by<SimpleBytes>(f, r);
    using integer_finish::Between;
    using integer_finish::PackedBytesBehind;
    if (f.scaled_only()) return finish_bytes_by<PackedBytesBehind<Between::step>>(f, r);
    if (f.nothing_joins()) return finish_bytes_by<PackedBytesBehind<Between::levels>>(f, r);
    return finish_bytes_by<PackedBytesBehind<Between::all>>(f, r);
  }
  const std::int64_t out_size = f.stored_bytes(), added_size = f.added_bytes();
  each_sums_store(f, [&](const auto& store) HWY_ATTR {
    for (std::int64_t p = 0; p < r.points; ++p)
      for (std::int64_t c = 0; c < r.channels; c += lanes())
        store(load(r.sums + p * r.sums_step + c, r.channels - c), r.channel + c,
              r.out + p * r.out_step + c * out_size,
              r.added ? r.added + p * r.added_step + c * added_size : nullptr, r.channels - c);
  });
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kFinishRows = LAMINA_PER_ISA(finish_rows);

void finish_rows(const IntegerFinish& finish, const SumRows& rows) { kFinishRows.best()(finish, rows); }
}  // namespace lamina
#endif
