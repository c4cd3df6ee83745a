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

/// Whole vectors of channels as bytes, four points at once; how many channels that are.
std::int64_t finish_fours(const IntegerFinish& f, const SumRows& r) {
  if (f.stored != IntegerFinish::Stored::bytes || f.nan) return 0;
  const auto channels = r.channels / lanes() * lanes(), added_size = f.added_bytes();
  for (std::int64_t c = 0; c < channels; c += lanes()) {
    const integer_finish::PackedStore store(f, r.channel + c);
    const auto* sums = r.sums + c;
    auto* out = r.out + c;
    const auto* added = r.added ? r.added + c * added_size : nullptr;
    for (std::int64_t p = 0; p < r.points; p += 4, sums += 4 * r.sums_step, out += 4 * r.out_step) {
      const auto points = HWY_MIN(r.points - p, 4);  // the last stands for those that are missing
      const std::int64_t at[4] = {0, HWY_MIN(points - 1, 1), HWY_MIN(points - 1, 2), points - 1};
      const integer_finish::Sums four[4] = {
          hn::LoadU(Words(), sums), hn::LoadU(Words(), sums + at[1] * r.sums_step),
          hn::LoadU(Words(), sums + at[2] * r.sums_step), hn::LoadU(Words(), sums + at[3] * r.sums_step)};
      if (f.packs.simple) {
        store(four, out, r.out_step, points);
        continue;
      }
      store.all(four, out, r.out_step, points, added,
                {0, at[1] * r.added_step, at[2] * r.added_step, at[3] * r.added_step});
      if (added) added += 4 * r.added_step;
    }
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
