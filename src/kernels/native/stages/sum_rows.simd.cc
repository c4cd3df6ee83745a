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

/// Whole vectors of channels, four points at once; how many channels and points that are.
struct Done {
  std::int64_t channels = 0, points = 0;
};
Done finish_fours(const IntegerFinish& f, const SumRows& r) {
  if (f.stored != IntegerFinish::Stored::bytes || f.nan || r.points < 4) return {};
  const Done done{r.channels / lanes() * lanes(), r.points / 4 * 4};
  for (std::int64_t c = 0; c < done.channels; c += lanes()) {
    const integer_finish::PackedStore store(f, r.channel + c);
    const auto* sums = r.sums + c;
    auto* out = r.out + c;
    const auto* added = r.added ? r.added + c * f.added_bytes() : nullptr;
    for (std::int64_t p = 0; p < done.points; p += 4, sums += 4 * r.sums_step, out += 4 * r.out_step) {
      const auto at = [&](std::int64_t i) HWY_ATTR { return hn::LoadU(Words(), sums + i * r.sums_step); };
      if (f.packs.simple) {
        store(at(0), at(1), at(2), at(3), out, r.out_step);
        continue;
      }
      store.all(at(0), at(1), at(2), at(3), out, r.out_step, added, r.added_step);
      if (added) added += 4 * r.added_step;
    }
  }
  return done;
}

}  // namespace

void finish_rows(const IntegerFinish& f, const SumRows& r) {
  const std::int64_t out_size = f.stored_bytes(), added_size = f.added_bytes();
  const auto done = finish_fours(f, r);
  if (done.points == r.points && done.channels == r.channels) return;
  each_sums_store(f, [&](const auto& store) HWY_ATTR {
    for (std::int64_t p = 0; p < r.points; ++p)
      for (std::int64_t c = p < done.points ? done.channels : 0; c < r.channels; c += lanes())
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
