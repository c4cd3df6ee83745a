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

}  // namespace

void finish_rows(const IntegerFinish& f, const SumRows& r) {
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
