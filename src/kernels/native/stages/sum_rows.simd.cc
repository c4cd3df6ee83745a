/// Finishes sums in memory; see sum_rows.h.
#include "kernels/native/stages/sum_rows.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/sum_rows.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/integer_finish-inl.h"

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

/// Whole vectors of channels, four points at once, by store(Scaled, channel, sums, out,
/// points, added, where of each).
template <class Store>
HWY_INLINE void each_four(const IntegerFinish& f, const SumRows& r, std::int64_t channels,
                          const Store& store) {
  for (std::int64_t c = 0; c < channels; c += lanes()) {
    const integer_finish::Scaled scaled(f, r.channel + c);
    const auto* sums = r.sums + c;
    auto* out = r.out + c;
    const auto* added = r.added ? r.added + c * f.added_bytes() : nullptr;
    for (std::int64_t p = 0; p < r.points; p += 4, sums += 4 * r.sums_step, out += 4 * r.out_step) {
      const auto points = HWY_MIN(r.points - p, 4), last = points - 1;  // the last stands for missing ones
      const std::int64_t second = HWY_MIN(last, 1), third = HWY_MIN(last, 2);
      const integer_finish::Sums four[4] = {
          hn::LoadU(Words(), sums), hn::LoadU(Words(), sums + second * r.sums_step),
          hn::LoadU(Words(), sums + third * r.sums_step), hn::LoadU(Words(), sums + last * r.sums_step)};
      store(scaled, r.channel + c, four, out, points, added,
            {0, second * r.added_step, third * r.added_step, last * r.added_step});
      if (added) added += 4 * r.added_step;
    }
  }
}

/// Whole vectors of channels as bytes; how many channels that are.
std::int64_t finish_fours(const IntegerFinish& f, const SumRows& r) {
  using Four = const integer_finish::Sums(&)[4];
  using Steps = const std::int64_t(&)[4];
  if (f.stored != IntegerFinish::Stored::bytes || f.nan) return 0;
  const auto channels = r.channels / lanes() * lanes();
  if (f.packs.simple) {
    const integer_finish::PackedStore store(f);
    each_four(f, r, channels,
              [&](const auto& scaled, std::int64_t, Four sums, std::byte* out, std::int64_t points,
                  const std::byte*, Steps) HWY_ATTR { store(scaled, sums, out, r.out_step, points); });
  } else {
    const integer_finish::PackedStoreOfAll store(f);
    each_four(f, r, channels,
              [&](const auto& scaled, std::int64_t channel, Four sums, std::byte* out, std::int64_t points,
                  const std::byte* added, Steps steps)
                  HWY_ATTR { store(scaled, channel, sums, out, r.out_step, points, added, steps); });
  }
  return channels;
}

}  // namespace

void finish_rows(const IntegerFinish& f, const SumRows& r) {
  const std::int64_t out_size = f.stored_bytes(), added_size = f.added_bytes();
  const auto done = finish_fours(f, r);
  if (done == r.channels) return;
  each_sums_store(f, [&](const auto& store) HWY_ATTR {
    for (std::int64_t p = 0; p < r.points; ++p)
      for (std::int64_t c = done; c < r.channels; c += lanes())
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
