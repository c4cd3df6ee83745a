// gemm::Finish in vectors. Include inside Highway units only, after hwy/highway.h.
#if defined(LAMINA_FINISH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_FINISH_INL
#undef LAMINA_FINISH_INL
#else
#define LAMINA_FINISH_INL
#endif

#include <hwy/highway.h>

#include "kernels/native/gemm/finish.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

/// NaN passes: on x86 the second operand is kept when one is NaN.
template <class D, class V>
HWY_INLINE V finished(D d, const gemm::Finish& f, V v) {
  namespace hn = hwy::HWY_NAMESPACE;
  using Kind = gemm::Finish::Kind;
  if (f.kind == Kind::clamp) return hn::Min(hn::Set(d, f.high), hn::Max(hn::Set(d, f.low), v));
  if (f.kind == Kind::leaky)
    return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(v, hn::Set(d, f.slope)), v);
  return v;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
