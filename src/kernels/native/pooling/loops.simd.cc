/// Poolings in vector code; see loops.h.
#include "kernels/native/pooling/loops.h"

#include <type_traits>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/pooling/loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/brain-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace brain;

/// The larger of two; of numbers only, in vectors.
struct Largest {
  static constexpr bool kMean = false;
  template <class V>
  static HWY_INLINE V add(V best, V x) {
    return hn::Max(x, best);
  }
  template <class T>
  static HWY_INLINE T add_one(T best, T x) {
    return x > best || is_nan(x) ? x : best;
  }
  template <class T>
  static HWY_INLINE bool is_nan(T x) {
    if constexpr (std::is_floating_point_v<T>) return __builtin_isnan(x);
    return false;
  }
};
/// The larger of two, NaN when one is.
struct LargestOrNaN {
  template <class V>
  static HWY_INLINE V add(V best, V x) {
    return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Gt(x, best)), x, best);
  }
};
struct Sum {
  static constexpr bool kMean = true;
  template <class V>
  static HWY_INLINE V add(V sum, V x) {
    return hn::Add(sum, x);
  }
  static HWY_INLINE double add_one(double sum, double x) { return sum + x; }
};

HWY_INLINE std::int64_t size_of(const PoolRow& r, const PoolRange& x) {
  return static_cast<std::int64_t>(r.z.count) * r.y.count * x.count;
}

/// Divisor of a mean as a factor.
HWY_INLINE float share(const PoolRow& r, const PoolRange& x) {
  const auto n =
      r.exclude_pad ? size_of(r, x) : static_cast<std::int64_t>(r.z.framed) * r.y.framed * x.framed;
  return n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
}

/// What a window without elements gives.
template <class T>
struct Lowest {
  static HWY_INLINE T value() { return hwy::LowestValue<T>(); }
};
template <>
struct Lowest<Brain> {
  static HWY_INLINE float value() { return number(Brain{0xff7f}); }
};

/// A window as offsets from its first position; those of many as runs along the last axis.
struct Positions {
  static constexpr std::int64_t kList = 64, kMost = 1024;
  std::int64_t offsets[kMost];
  std::int64_t runs = 0, run_count = 1, run_step = 0;  ///< runs: used offsets

  HWY_INLINE void set(const PoolRow& r, const PoolRange& x, std::int64_t x_stride) {
    const bool list = size_of(r, x) <= kList;
    run_count = list ? 1 : x.count;
    run_step = x.step * x_stride;
    runs = 0;
    for (std::int64_t k = 0; k < r.z.count; ++k)
      for (std::int64_t j = 0; j < r.y.count && runs < kMost; ++j)
        for (std::int64_t i = 0; i < (list ? x.count : 1); ++i)
          offsets[runs++] = k * r.z.step * r.z_stride + j * r.y.step * r.y_stride + i * run_step;
  }
};

HWY_INLINE std::int64_t first_position(const PoolRow& r, const PoolRange& x, std::int64_t x_stride) {
  return r.z.begin * r.z_stride + r.y.begin * r.y_stride + x.begin * x_stride;
}

/// Windows of so many rows and more are not taken by vectors.
HWY_INLINE bool too_large(const PoolRow& r) {
  return static_cast<std::int64_t>(r.z.count) * r.y.count > Positions::kMost;
}

/// add(load(offset, k), k) over the positions of a window.
template <int kCount, class Load, class Add>
HWY_INLINE void visit(const Positions& p, const Load& load, const Add& add) {
  if (p.run_count == 1) {
    for (std::int64_t i = 0; i < p.runs; ++i) {
      LAMINA_UNROLL
      for (int k = 0; k < kCount; ++k) add(load(p.offsets[i], k), k);
    }
    return;
  }
  for (std::int64_t i = 0; i < p.runs; ++i)
    for (std::int64_t at = 0; at < p.run_count; ++at) {
      LAMINA_UNROLL
      for (int k = 0; k < kCount; ++k) add(load(p.offsets[i] + at * p.run_step, k), k);
    }
}

/// Adds windows to sums[k]. Large windows are summed by parts of a line and by lines, since small numbers
/// would get lost beside the sum of all before them.
template <int kCount, class D, class V, class Load>
HWY_INLINE void sum_up(D d, const Positions& p, V (&sums)[kCount], const Load& load) {
  constexpr std::int64_t kPart = 1024;
  if (p.run_count == 1)
    return visit<kCount>(p, load, [&](V x, int k) HWY_ATTR { sums[k] = hn::Add(sums[k], x); });
  for (std::int64_t i = 0; i < p.runs; ++i) {
    V line[kCount];
    for (auto& s : line) s = hn::Zero(d);
    for (std::int64_t from = 0; from < p.run_count; from += kPart) {
      const auto end = p.run_count - from < kPart ? p.run_count : from + kPart;
      V part[kCount];
      for (auto& s : part) s = hn::Zero(d);
      for (auto at = from; at < end; ++at) {
        LAMINA_UNROLL
        for (int k = 0; k < kCount; ++k) part[k] = hn::Add(part[k], load(p.offsets[i] + at * p.run_step, k));
      }
      for (int k = 0; k < kCount; ++k) line[k] = hn::Add(line[k], part[k]);
    }
    for (int k = 0; k < kCount; ++k) sums[k] = hn::Add(sums[k], line[k]);
  }
}

/// best[k] over the positions of a window: load(offset, k).
template <class Op, int kCount, class D, class V, class Load>
HWY_INLINE void reduce(D d, const Positions& p, V (&best)[kCount], const Load& load) {
  if constexpr (Op::kMean) {
    sum_up<kCount>(d, p, best, load);
  } else if constexpr (!hwy::IsFloat<hn::TFromD<D>>()) {
    visit<kCount>(p, load, [&](V x, int k) HWY_ATTR { best[k] = Op::add(best[k], x); });
  } else {
    // A sum is NaN where an element is: cheaper than asking each of them.
    V sums[(kCount + 1) / 2];
    for (auto& s : sums) s = hn::Zero(d);
    visit<kCount>(p, load, [&](V x, int k) HWY_ATTR {
      best[k] = Op::add(best[k], x);
      sums[k / 2] = hn::Add(sums[k / 2], x);
    });
    V all = sums[0];
    LAMINA_UNROLL
    for (int k = 1; k < (kCount + 1) / 2; ++k) all = hn::Add(all, sums[k]);
    if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(all)))) return;
    for (int k = 0; k < kCount; ++k) best[k] = load(0, k);
    visit<kCount>(p, load, [&](V x, int k) HWY_ATTR { best[k] = LargestOrNaN::add(best[k], x); });
  }
}

/// Windows that are the same but for their place: `pixels` of them, the first at `in`.
struct Same {
  std::int64_t in_step = 0, out_step = 0;
  float factor = 0;
};

/// kVectors vectors of channels of kPixels windows: enough sums at once to hide the latency of one.
template <class Op, int kPixels, int kVectors, class D, class T>
HWY_INLINE void block(D d, const Positions& p, const Same& same, const T* in, T* out) {
  using V = hn::Vec<D>;
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  V best[kPixels * kVectors];
  const auto load = [&](std::int64_t at, int k) HWY_ATTR {
    return load_numbers(d, in + at + k / kVectors * same.in_step + k % kVectors * kLanes);
  };
  LAMINA_UNROLL
  for (int k = 0; k < kPixels * kVectors; ++k) best[k] = Op::kMean ? hn::Zero(d) : load(0, k);
  reduce<Op>(d, p, best, load);
  LAMINA_UNROLL
  for (int k = 0; k < kPixels * kVectors; ++k) {
    if constexpr (Op::kMean) best[k] = hn::Mul(best[k], hn::Set(d, same.factor));
    store_numbers(best[k], d, out + k / kVectors * same.out_step + k % kVectors * kLanes);
  }
}

template <class Op, class T>
HWY_INLINE Number<T> one(const PoolRow& r, const PoolRange& x, const T* in, std::int64_t x_stride) {
  using Best = std::conditional_t<Op::kMean, double, Number<T>>;
  in += first_position(r, x, x_stride);
  Best best = 0;  // sums of large windows keep small numbers
  if constexpr (!Op::kMean) best = number(*in);
  for (std::int64_t k = 0; k < r.z.count; ++k)
    for (std::int64_t j = 0; j < r.y.count; ++j) {
      const T* row = in + k * r.z.step * r.z_stride + j * r.y.step * r.y_stride;
      for (std::int64_t i = 0; i < x.count; ++i)
        best = Op::add_one(best, Best(number(row[i * x.step * x_stride])));
    }
  if constexpr (Op::kMean) return static_cast<Number<T>>(best * double{share(r, x)});
  return static_cast<Number<T>>(best);
}

/// All channels of kPixels windows, in vectors of D or, when there are fewer channels, of half of it. The
/// last vector overlaps the one before.
template <class Op, int kPixels, class D, class T>
HWY_INLINE void windows(D d, std::int64_t channels, const Positions& p, const Same& same, const T* in,
                        T* out) {
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  std::int64_t c = 0;
  if (channels < kLanes) {
    if constexpr (kLanes * sizeof(Number<T>) > 16)
      windows<Op, kPixels>(hn::Half<D>(), channels, p, same, in, out);
    return;
  }
  if constexpr (kPixels == 1)
    for (; c + 4 * kLanes <= channels; c += 4 * kLanes) block<Op, kPixels, 4>(d, p, same, in + c, out + c);
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) block<Op, kPixels, 2>(d, p, same, in + c, out + c);
  for (; c + kLanes <= channels; c += kLanes) block<Op, kPixels, 1>(d, p, same, in + c, out + c);
  if (c < channels) {
    c = channels - kLanes;
    block<Op, kPixels, 1>(d, p, same, in + c, out + c);
  }
}

template <class Op, class T>
void pixels(const PoolRow& r) {
  constexpr std::int64_t kPixels = 4;
  const hn::ScalableTag<Number<T>> d;
  const auto* in = static_cast<const T*>(r.in);
  auto* out = static_cast<T*>(r.out);
  const bool one_by_one = r.channels * static_cast<std::int64_t>(sizeof(Number<T>)) < 16 || too_large(r);
  Positions positions;
  Same same{r.stride * r.channels, r.channels, 0};
  for (std::int64_t o = 0; o < r.count;) {
    const auto& x = r.x[o];
    T* to = out + o * r.channels;
    if (size_of(r, x) == 0 || one_by_one) {
      for (std::int64_t c = 0; c < r.channels; ++c)
        put(size_of(r, x) > 0 ? one<Op>(r, x, in + c, r.channels)
            : Op::kMean       ? Number<T>(0)
                              : Lowest<T>::value(),
            to + c);
      ++o;
      continue;
    }
    if (o <= r.whole_begin || o >= r.whole_end) {  // the whole ones are the same
      positions.set(r, x, r.channels);
      if (Op::kMean) same.factor = share(r, x);
    }
    const T* from = in + first_position(r, x, r.channels);
    if (o >= r.whole_begin && o + kPixels <= r.whole_end) {
      windows<Op, kPixels>(d, r.channels, positions, same, from, to);
      o += kPixels;
    } else {
      windows<Op, 1>(d, r.channels, positions, same, from, to);
      ++o;
    }
  }
}

/// Outputs [begin, end) of whole windows in vectors of D or, when there are fewer, of half of it; the last
/// vector overlaps the one before. Returns where it stopped.
template <class Op, int kStride, class D, class T = hn::TFromD<D>>
HWY_INLINE std::int64_t whole_line(D d, const PoolRow& r, const Positions& p, const T* in, T* out,
                                   std::int64_t begin, float factor) {
  using V = hn::Vec<D>;
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  const auto end = r.whole_end;
  if (end - begin < kLanes) {
    if constexpr (kLanes > (sizeof(T) == 1 ? 8 : 4))
      return whole_line<Op, kStride>(hn::Half<D>(), r, p, in, out, begin, factor);
    else
      return begin;
  }
  const auto reach = p.offsets[p.runs - 1] + (p.run_count - 1) * p.run_step + kStride * kLanes;
  auto o = begin;
  while (o < end) {
    if (o + kLanes > end) o = end - kLanes;
    const T* from = in + o * kStride - r.pad;
    if (from - static_cast<const T*>(r.in) + reach > r.readable) return o;
    const auto load = [&](std::int64_t at, int) HWY_ATTR {
      if constexpr (kStride == 1) return hn::LoadU(d, from + at);
      V even, odd;
      hn::LoadInterleaved2(d, from + at, even, odd);
      return even;
    };
    V best[1];
    best[0] = Op::kMean ? hn::Zero(d) : load(0, 0);
    reduce<Op>(d, p, best, load);
    if constexpr (Op::kMean) best[0] = hn::Mul(best[0], hn::Set(d, factor));
    hn::StoreU(best[0], d, out + o);
    o += kLanes;
  }
  return end;
}

template <class Op, class T>
void line(const PoolRow& r) {
  const auto* in = static_cast<const T*>(r.in);
  auto* out = static_cast<T*>(r.out);
  const auto some = [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (auto o = begin; o < end; ++o)
      out[o] = size_of(r, r.x[o]) > 0 ? one<Op>(r, r.x[o], in, 1) : Op::kMean ? T(0) : hwy::LowestValue<T>();
  };
  auto done = r.whole_begin;
  if (r.whole_begin < r.whole_end && r.z.count * r.y.count > 0 && !too_large(r)) {
    const auto& x = r.x[r.whole_begin];
    Positions positions;
    positions.set(r, x, 1);
    const auto* rows = in + r.z.begin * r.z_stride + r.y.begin * r.y_stride;
    const auto factor = share(r, x);
    const hn::ScalableTag<T> d;
    if (r.stride == 1) done = whole_line<Op, 1>(d, r, positions, rows, out, done, factor);
    if (r.stride == 2) done = whole_line<Op, 2>(d, r, positions, rows, out, done, factor);
  }
  some(0, r.whole_begin);
  some(done, r.count);
}

constexpr PoolLoops kPoolLoops{.lanes = hn::MaxLanes(hn::ScalableTag<float>()),
                               .max_pixels_f32 = pixels<Largest, float>,
                               .max_pixels_u8 = pixels<Largest, std::uint8_t>,
                               .max_pixels_i8 = pixels<Largest, std::int8_t>,
                               .mean_pixels_f32 = pixels<Sum, float>,
                               .max_pixels_bf16 = pixels<Largest, Brain>,
                               .mean_pixels_bf16 = pixels<Sum, Brain>,
                               .max_line_f32 = line<Largest, float>,
                               .max_line_u8 = line<Largest, std::uint8_t>,
                               .max_line_i8 = line<Largest, std::int8_t>,
                               .mean_line_f32 = line<Sum, float>};

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
const PoolLoops& pool_loops(Isa isa) { return LAMINA_CONSTANT_PER_ISA(kPoolLoops).at(isa); }

}  // namespace lamina
#endif
