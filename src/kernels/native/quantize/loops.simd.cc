/// DynamicQuantize in vector code; see loops.h.
#include "kernels/native/quantize/loops.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/quantize/loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr hn::Rebind<std::uint8_t, D> d8;
constexpr std::int64_t kLanes = hn::MaxLanes(d);

/// Comparisons, since a minimum's NaN depends on the processor. Zeros of load_some() are in every range.
HWY_INLINE V lower(V x, V low) { return hn::IfThenElse(hn::Lt(x, low), x, low); }
HWY_INLINE V higher(V x, V high) { return hn::IfThenElse(hn::Gt(x, high), x, high); }

void range(const float* x, std::int64_t count, float& low, float& high) {
  V low0 = hn::Set(d, low), high0 = hn::Set(d, high), low1 = low0, high1 = high0;
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const V a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + kLanes);
    low0 = lower(a, low0);
    high0 = higher(a, high0);
    low1 = lower(b, low1);
    high1 = higher(b, high1);
  }
  for (; i < count; i += kLanes) {
    const V a = load_some(d, x + i, count - i < kLanes ? count - i : kLanes);
    low0 = lower(a, low0);
    high0 = higher(a, high0);
  }
  low = hn::GetLane(hn::MinOfLanes(d, hn::Min(low0, low1)));
  high = hn::GetLane(hn::MaxOfLanes(d, hn::Max(high0, high1)));
}

HWY_INLINE auto levels(V x, V scale, V zero) {
  const V v = hn::Add(hn::Round(hn::Div(x, scale)), zero);
  const V inside = hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), hn::Min(v, hn::Set(d, 255.0f)));
  return hn::DemoteTo(d8, hn::NearestInt(inside));
}

void quantize(const float* x, std::uint8_t* y, std::int64_t count, float scale, float zero) {
  const V s = hn::Set(d, scale), z = hn::Set(d, zero);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(levels(hn::LoadU(d, x + i), s, z), d8, y + i);
  if (i == count) return;
  HWY_ALIGN std::uint8_t rest[kLanes];
  hn::Store(levels(load_some(d, x + i, count - i), s, z), d8, rest);
  for (std::int64_t j = i; j < count; ++j) y[j] = rest[j - i];
}

}  // namespace

DynamicQuantizeTable make_dynamic_quantize() { return {range, quantize}; }

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(DynamicQuantizeTable, dynamic_quantize_table, make_dynamic_quantize)
}
#endif
