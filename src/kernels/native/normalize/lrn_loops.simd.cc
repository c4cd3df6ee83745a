/// Local response normalisation in vector code; see lrn_loops.h.
#include "kernels/native/normalize/lrn_loops.h"

#include <cmath>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/normalize/lrn_loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/native/simd/vector_math-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);

void sum_rows(const float* const* rows, std::int64_t row_count, bool square, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const auto n = count - i < kLanes ? count - i : kLanes;
    V sum = hn::Zero(d);
    for (std::int64_t k = 0; k < row_count; ++k) {
      const V x = n == kLanes ? hn::LoadU(d, rows[k] + i) : load_some(d, rows[k] + i, n);
      sum = square ? hn::MulAdd(x, x, sum) : hn::Add(x, sum);
    }
    store_some(sum, d, out + i, n);
  }
}

void sum_line(const float* line, std::int64_t size, float* out, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    V sum = hn::LoadU(d, line + i);
    for (std::int64_t k = 1; k < size; ++k) sum = hn::Add(sum, hn::LoadU(d, line + i + k));
    hn::StoreU(sum, d, out + i);
  }
  if (i == count) return;
  const auto n = count - i;
  V sum = load_some(d, line + i, n);
  for (std::int64_t k = 1; k < size; ++k) sum = hn::Add(sum, load_some(d, line + i + k, n));
  store_some(sum, d, out + i, n);
}

/// An estimate and a step of Newton's: to about one unit in the last place, for positive finite numbers.
HWY_INLINE V reciprocal_root(V b) {
  const V r = hn::ApproximateReciprocalSqrt(b);
  return hn::Mul(r, hn::NegMulAdd(hn::Mul(hn::Mul(hn::Set(d, 0.5f), b), r), r, hn::Set(d, 1.5f)));
}

/// 1 / b^beta
struct ThreeQuarters {
  HWY_INLINE V operator()(V b) const {
    const V root = reciprocal_root(b);
    const V estimate = hn::Mul(hn::Mul(root, root), reciprocal_root(root));
    const auto usual = hn::And(hn::Gt(b, hn::Set(d, 1e-30f)), hn::Lt(b, hn::Set(d, 1e30f)));
    if (HWY_LIKELY(hn::AllTrue(d, usual))) return estimate;
    const V exact = hn::Sqrt(b);
    return hn::IfThenElse(usual, estimate, hn::Div(hn::Set(d, 1), hn::Mul(exact, hn::Sqrt(exact))));
  }
};
struct Half {
  HWY_INLINE V operator()(V b) const { return hn::Div(hn::Set(d, 1), hn::Sqrt(b)); }
};
struct One {
  HWY_INLINE V operator()(V b) const { return hn::Div(hn::Set(d, 1), b); }
};
struct Any {
  float beta;
  HWY_INLINE V operator()(V b) const {
    // The logarithm knows only positive finite numbers.
    const auto usual = hn::And(hn::Gt(b, hn::Set(d, 1e-37f)), hn::Lt(b, hn::Set(d, __builtin_huge_valf())));
    if (HWY_UNLIKELY(!hn::AllTrue(d, usual))) return one_by_one(b);
    return vector_math::exp_of(d, hn::Neg(hn::Mul(hn::Set(d, beta), hn::Log(d, b))));
  }
  HWY_NOINLINE V one_by_one(V b) const {
    HWY_ALIGN float values[kLanes];
    hn::Store(b, d, values);
    for (auto& v : values) v = static_cast<float>(::pow(double{v}, -double{beta}));
    return hn::Load(d, values);
  }
};

template <class F>
HWY_INLINE void divide_by(const float* x, const float* sums, float* y, std::int64_t count, V bias, V scale,
                          const F& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f(hn::MulAdd(scale, hn::LoadU(d, sums + i), bias))), d, y + i);
  if (const auto n = count - i; n > 0)
    store_some(hn::Mul(load_some(d, x + i, n), f(hn::MulAdd(scale, load_some(d, sums + i, n), bias))), d,
               y + i, n);
}

void divide(const float* x, const float* sums, float* y, std::int64_t count, float bias, float scale,
            float beta) {
  const V b = hn::Set(d, bias), s = hn::Set(d, scale);
  if (beta == 0.75f) return divide_by(x, sums, y, count, b, s, ThreeQuarters());
  if (beta == 0.5f) return divide_by(x, sums, y, count, b, s, Half());
  if (beta == 1.0f) return divide_by(x, sums, y, count, b, s, One());
  divide_by(x, sums, y, count, b, s, Any{beta});
}

LrnLoops make_table() {
  LrnLoops t;
  t.sum_rows = sum_rows;
  t.sum_line = sum_line;
  t.divide = divide;
  return t;
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(LrnLoops, lrn_loops, make_table)

}  // namespace lamina
#endif
