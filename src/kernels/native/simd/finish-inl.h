// Finish in vectors. Include inside Highway units only, after hwy/highway.h.
#if defined(LAMINA_FINISH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_FINISH_INL
#undef LAMINA_FINISH_INL
#else
#define LAMINA_FINISH_INL
#endif

#include <hwy/highway.h>

#include "kernels/native/simd/finish.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

/// Calls each(function of one vector) where something is to be done: of many vectors only once.
template <class D, class Each>
HWY_INLINE void finish_each(D d, const Finish& f, const Each& each) {
  namespace hn = hwy::HWY_NAMESPACE;
  using V = hn::Vec<D>;
  if (f.kind == Finish::Kind::clamp) {
    // NaN passes: on x86 the second operand is kept when one is NaN.
    const V low = hn::Set(d, f.low), high = hn::Set(d, f.high);
    each([&](V v) HWY_ATTR { return hn::Min(high, hn::Max(low, v)); });
  } else if (f.kind == Finish::Kind::leaky) {
    const V slope = hn::Set(d, f.slope), zero = hn::Zero(d);
    each([&](V v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, zero), hn::Mul(v, slope), v); });
  }
}

template <class D, class V>
HWY_INLINE V finished(D d, const Finish& f, V v) {
  finish_each(d, f, [&](const auto& apply) HWY_ATTR { v = apply(v); });
  return v;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
