/// The largest element in vector code; see topk_loops.h.
#include "kernels/native/move/topk_loops.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/move/topk_loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
constexpr D d;
constexpr DI di;
constexpr std::int64_t kLanes = hn::MaxLanes(d);

/// The best so far in each lane, and where it was; `spoilt` where a NaN was met.
struct Best {
  V value;
  VI index;
  V spoilt;

  template <bool kSmallest>
  HWY_INLINE void add(V x, VI at) {
    const auto better = kSmallest ? hn::Lt(x, value) : hn::Gt(x, value);
    value = hn::IfThenElse(better, x, value);
    index = hn::IfThenElse(hn::RebindMask(di, better), at, index);
    spoilt = hn::Or(spoilt, hn::VecFromMask(d, hn::IsNaN(x)));
  }
};

HWY_INLINE VI set(std::int64_t i) { return hn::Set(di, static_cast<std::int32_t>(i)); }

template <bool kSmallest>
HWY_INLINE std::int64_t line_of(const float* x, std::int64_t count) {
  Best best{hn::LoadU(d, x), hn::Iota(di, 0), hn::Zero(d)};
  best.add<kSmallest>(best.value, best.index);
  std::int64_t i = kLanes;
  for (; i + kLanes <= count; i += kLanes)
    best.add<kSmallest>(hn::LoadU(d, x + i), hn::Add(hn::Iota(di, 0), set(i)));
  if (i < count) {  // again some of those before: they are not better than themselves
    i = count - kLanes;
    best.add<kSmallest>(hn::LoadU(d, x + i), hn::Add(hn::Iota(di, 0), set(i)));
  }
  if (!hn::AllFalse(d, hn::MaskFromVec(best.spoilt))) return -1;
  HWY_ALIGN float values[kLanes];
  HWY_ALIGN std::int32_t indices[kLanes];
  hn::Store(best.value, d, values);
  hn::Store(best.index, di, indices);
  int chosen = 0;
  for (int k = 1; k < kLanes; ++k) {
    const bool better = kSmallest ? values[k] < values[chosen] : values[k] > values[chosen];
    if (better || (values[k] == values[chosen] && indices[k] < indices[chosen])) chosen = k;
  }
  return indices[chosen];
}

std::int64_t line(const float* x, std::int64_t count, bool smallest) {
  return smallest ? line_of<true>(x, count) : line_of<false>(x, count);
}

template <bool kSmallest>
HWY_INLINE void columns_of(const float* x, std::int64_t count, std::int64_t stride, std::int32_t* indices) {
  Best best{hn::LoadU(d, x), hn::Zero(di), hn::Zero(d)};
  for (std::int64_t i = 0; i < count; ++i) best.add<kSmallest>(hn::LoadU(d, x + i * stride), set(i));
  const auto spoilt = hn::RebindMask(di, hn::MaskFromVec(best.spoilt));
  hn::StoreU(hn::IfThenElse(spoilt, hn::Set(di, -1), best.index), di, indices);
}

void columns(const float* x, std::int64_t count, std::int64_t stride, bool smallest, std::int32_t* indices) {
  return smallest ? columns_of<true>(x, count, stride, indices)
                  : columns_of<false>(x, count, stride, indices);
}

BestLoops make_table() {
  BestLoops t;
  t.lanes = kLanes;
  t.line = line;
  t.columns = columns;
  return t;
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(BestLoops, best_loops, make_table)

}  // namespace lamina
#endif
