/// LinearAttention in vector code; see linear.h.
#include "kernels/native/attention/linear.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/attention/linear.simd.cc"
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
constexpr std::int64_t kLanes = hn::MaxLanes(d);
constexpr int kVectors = 4;

/// `kCount` whole vectors of columns, or one of `lanes` of them.
template <int kCount>
struct Columns {
  std::int64_t lanes;

  HWY_INLINE V load(const float* p, int i) const {
    return kCount == 1 ? load_some(d, p, lanes) : hn::LoadU(d, p + i * kLanes);
  }
  HWY_INLINE void store(V v, float* p, int i) const {
    if (kCount == 1)
      store_some(v, d, p, lanes);
    else
      hn::StoreU(v, d, p + i * kLanes);
  }

  /// What the key reads of the state, after the decay.
  HWY_INLINE void read(const LinearAttentionJob& j, std::int64_t t, std::int64_t first, V* sums) const {
    const float *k = j.k + t * j.key, *state = j.state + first;
    for (std::int64_t r = 0; r < j.key; ++r, state += j.width) {
      const float factor = j.decay ? k[r] * j.decay[t * j.decay_step + (j.decay_by_row ? r : 0)] : k[r];
      const V f = hn::Set(d, factor);
      LAMINA_UNROLL
      for (int i = 0; i < kCount; ++i) sums[i] = hn::MulAdd(f, load(state, i), sums[i]);
    }
  }

  /// The new state, and what the first head reads of it.
  HWY_INLINE void write(const LinearAttentionJob& j, std::int64_t t, std::int64_t first, const V* v,
                        V* sums) const {
    const float *k = j.k + t * j.key, *q = j.q + t * j.key;
    float* state = j.state + first;
    for (std::int64_t r = 0; r < j.key; ++r, state += j.width) {
      const V kr = hn::Set(d, k[r]), qr = hn::Set(d, q[r]);
      const V kept = hn::Set(d, j.decay ? j.decay[t * j.decay_step + (j.decay_by_row ? r : 0)] : 1.0F);
      LAMINA_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const V s = hn::MulAdd(kr, v[i], hn::Mul(kept, load(state, i)));
        store(s, state, i);
        sums[i] = hn::MulAdd(qr, s, sums[i]);
      }
    }
  }

  HWY_INLINE void other_head(const LinearAttentionJob& j, const float* q, std::int64_t first, V* sums) const {
    const float* state = j.state + first;
    for (std::int64_t r = 0; r < j.key; ++r, state += j.width) {
      const V qr = hn::Set(d, q[r]);
      LAMINA_UNROLL
      for (int i = 0; i < kCount; ++i) sums[i] = hn::MulAdd(qr, load(state, i), sums[i]);
    }
  }

  HWY_INLINE void token(const LinearAttentionJob& j, std::int64_t t, std::int64_t first) const {
    V v[kCount], sums[kCount];
    LAMINA_UNROLL
    for (int i = 0; i < kCount; ++i) sums[i] = hn::Zero(d);
    if (j.beta) read(j, t, first, sums);
    LAMINA_UNROLL
    for (int i = 0; i < kCount; ++i) {
      v[i] = load(j.v + t * j.width + first, i);
      if (j.beta) v[i] = hn::Mul(hn::Set(d, j.beta[t]), hn::Sub(v[i], sums[i]));
      sums[i] = hn::Zero(d);
    }
    write(j, t, first, v, sums);
    for (std::int64_t h = 0; h < j.heads; ++h) {
      if (h > 0) {
        LAMINA_UNROLL
        for (int i = 0; i < kCount; ++i) sums[i] = hn::Zero(d);
        other_head(j, j.q + (h * j.tokens + t) * j.key, first, sums);
      }
      LAMINA_UNROLL
      for (int i = 0; i < kCount; ++i) store(sums[i], j.y + (h * j.tokens + t) * j.width + first, i);
    }
  }
};

void run(const LinearAttentionJob& j, std::int64_t first, std::int64_t count) {
  if (count == kVectors * kLanes) {
    const Columns<kVectors> all{kLanes};
    for (auto t = j.begin; t < j.end; ++t) all.token(j, t, first);
    return;
  }
  for (std::int64_t at = 0; at < count; at += kLanes) {
    const Columns<1> some{count - at < kLanes ? count - at : kLanes};
    for (auto t = j.begin; t < j.end; ++t) some.token(j, t, first + at);
  }
}

constexpr LinearAttentionTable kLinearAttention{.columns = kVectors * kLanes, .run = run};

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
const LinearAttentionTable& linear_attention_table(Isa isa) {
  return LAMINA_CONSTANT_PER_ISA(kLinearAttention).at(isa);
}

}  // namespace lamina
#endif
