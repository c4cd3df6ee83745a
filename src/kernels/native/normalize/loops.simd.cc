/// Normalisations in vector code; see loops.h.
#include "kernels/native/normalize/loops.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/normalize/loops.simd.cc"
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
/// Sums kept at once, to hide the latency of additions.
constexpr int kSums = 4;

/// The sum of f(x) over a line; lanes behind the end count nothing.
template <class F>
HWY_INLINE float sum_of(const float* x, std::int64_t count, const F& f) {
  V sums[kSums];
  for (auto& s : sums) s = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
    LAMINA_UNROLL
    for (int k = 0; k < kSums; ++k) sums[k] = f(hn::LoadU(d, x + i + k * kLanes), sums[k]);
  }
  for (; i + kLanes <= count; i += kLanes) sums[0] = f(hn::LoadU(d, x + i), sums[0]);
  if (const auto rest = count - i; rest > 0)
    sums[1] = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(rest)),
                             f(load_some(d, x + i, rest), sums[1]), sums[1]);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

struct AddDifference {
  V from;
  HWY_INLINE V operator()(V x, V sum) const { return hn::Add(sum, hn::Sub(x, from)); }
};
struct AddSquare {
  V from;
  HWY_INLINE V operator()(V x, V sum) const {
    const V difference = hn::Sub(x, from);
    return hn::MulAdd(difference, difference, sum);
  }
};

/// What sums are taken about: 0 instead of an infinity, of which the mean is one, too, and not NaN.
HWY_INLINE V pivot(V x) { return hn::IfThenElseZero(hn::IsFinite(x), x); }

void line_moments(const float* x, std::int64_t count, float* sum, float* squares) {
  *sum = sum_of(x, count, AddDifference{pivot(hn::Set(d, x[0]))});
  *squares = sum_of(x, count, AddSquare{hn::Set(d, x[0] + *sum / static_cast<float>(count))});
}

float line_squares(const float* x, std::int64_t count) { return sum_of(x, count, AddSquare{hn::Zero(d)}); }

/// Some columns in kVectors vectors; kWhole: else only the first n lanes of one. Rows are summed in kParts
/// sums, to hide the latency of additions.
template <int kVectors, bool kWhole>
struct ColumnSums {
  static constexpr int kParts = kVectors >= 4 ? 1 : 4 / kVectors;
  const float* x;
  std::int64_t rows, stride, n;

  HWY_INLINE V load(const float* p, int k) const {
    if constexpr (kWhole) return hn::LoadU(d, p + k * kLanes);
    return load_some(d, p, n);
  }
  HWY_INLINE void store(V v, float* p, int k) const {
    if constexpr (kWhole)
      hn::StoreU(v, d, p + k * kLanes);
    else
      store_some(v, d, p, n);
  }
  /// sums[k] = sum over the rows of Add{from[k]}.
  template <class Add>
  HWY_INLINE void sum(const V (&from)[kVectors], V (&sums)[kVectors]) const {
    V parts[kParts][kVectors];
    LAMINA_UNROLL
    for (int p = 0; p < kParts; ++p) {
      LAMINA_UNROLL
      for (int k = 0; k < kVectors; ++k) parts[p][k] = hn::Zero(d);
    }
    std::int64_t r = 0;
    for (; r + kParts <= rows; r += kParts) {
      LAMINA_UNROLL
      for (int p = 0; p < kParts; ++p) {
        LAMINA_UNROLL
        for (int k = 0; k < kVectors; ++k)
          parts[p][k] = Add{from[k]}(load(x + (r + p) * stride, k), parts[p][k]);
      }
    }
    for (; r < rows; ++r) {
      LAMINA_UNROLL
      for (int k = 0; k < kVectors; ++k) parts[0][k] = Add{from[k]}(load(x + r * stride, k), parts[0][k]);
    }
    LAMINA_UNROLL
    for (int k = 0; k < kVectors; ++k) {
      sums[k] = parts[0][k];
      LAMINA_UNROLL
      for (int p = 1; p < kParts; ++p) sums[k] = hn::Add(sums[k], parts[p][k]);
    }
  }
  HWY_INLINE void moments(float* sums, float* squares) const {
    V from[kVectors], sum_of_column[kVectors];
    LAMINA_UNROLL
    for (int k = 0; k < kVectors; ++k) from[k] = pivot(load(x, k));
    sum<AddDifference>(from, sum_of_column);
    const V share = hn::Set(d, 1.0f / static_cast<float>(rows));
    LAMINA_UNROLL
    for (int k = 0; k < kVectors; ++k) {
      store(sum_of_column[k], sums, k);
      from[k] = hn::MulAdd(sum_of_column[k], share, from[k]);
    }
    sum<AddSquare>(from, sum_of_column);
    LAMINA_UNROLL
    for (int k = 0; k < kVectors; ++k) store(sum_of_column[k], squares, k);
  }
  HWY_INLINE void squares_only(float* squares) const {
    V zero[kVectors], sums[kVectors];
    LAMINA_UNROLL
    for (int k = 0; k < kVectors; ++k) zero[k] = hn::Zero(d);
    sum<AddSquare>(zero, sums);
    LAMINA_UNROLL
    for (int k = 0; k < kVectors; ++k) store(sums[k], squares, k);
  }
};

template <int kVectors, bool kWhole, bool kMoments>
HWY_INLINE void column_sums(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                            float* sums, float* squares) {
  const ColumnSums<kVectors, kWhole> columns{x, rows, stride, n};
  if constexpr (kMoments)
    columns.moments(sums, squares);
  else
    columns.squares_only(squares);
}

template <bool kMoments>
HWY_INLINE void all_columns(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                            float* sums, float* squares) {
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= columns; i += 4 * kLanes)
    column_sums<4, true, kMoments>(x + i, rows, stride, 0, sums + i, squares + i);
  for (; i + 2 * kLanes <= columns; i += 2 * kLanes)
    column_sums<2, true, kMoments>(x + i, rows, stride, 0, sums + i, squares + i);
  for (; i + kLanes <= columns; i += kLanes)
    column_sums<1, true, kMoments>(x + i, rows, stride, 0, sums + i, squares + i);
  if (i < columns) column_sums<1, false, kMoments>(x + i, rows, stride, columns - i, sums + i, squares + i);
}

void column_moments(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, float* sums,
                    float* squares) {
  all_columns<true>(x, rows, stride, columns, sums, squares);
}

void column_squares(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                    float* squares) {
  all_columns<false>(x, rows, stride, columns, squares, squares);
}

HWY_INLINE V scaled(V x, V shift, V factor, V offset) {
  return hn::MulAdd(hn::Sub(x, shift), factor, offset);
}

void scale_line(const float* x, float* y, std::int64_t count, float shift, float factor, float offset,
                const float* scale, const float* bias) {
  const V s = hn::Set(d, shift), f = hn::Set(d, factor), o = hn::Set(d, offset);
  std::int64_t i = 0;
  if (!scale) {
    for (; i + kLanes <= count; i += kLanes) hn::StoreU(scaled(hn::LoadU(d, x + i), s, f, o), d, y + i);
    if (i < count) store_some(scaled(load_some(d, x + i, count - i), s, f, o), d, y + i, count - i);
    return;
  }
  for (; i + kLanes <= count; i += kLanes) {
    const V v = scaled(hn::LoadU(d, x + i), s, f, o), g = hn::LoadU(d, scale + i);
    hn::StoreU(bias ? hn::MulAdd(v, g, hn::LoadU(d, bias + i)) : hn::Mul(v, g), d, y + i);
  }
  if (const auto rest = count - i; rest > 0) {
    const V v = scaled(load_some(d, x + i, rest), s, f, o), g = load_some(d, scale + i, rest);
    store_some(bias ? hn::MulAdd(v, g, load_some(d, bias + i, rest)) : hn::Mul(v, g), d, y + i, rest);
  }
}

HWY_INLINE float root(float v) { return __builtin_sqrtf(v); }
HWY_INLINE double root(double v) { return __builtin_sqrt(v); }

template <class T>
HWY_INLINE T divisor_of(const NormalizeShortLines& t, T v) {
  const auto eps = static_cast<T>(t.eps);
  switch (t.divisor) {
    case NormalizeDivisor::one:
      break;
    case NormalizeDivisor::sqrt_of_v_plus_eps:
      return root(v + eps);
    case NormalizeDivisor::sqrt_of_v_plus_eps_outside:
      return root(v) + eps;
    case NormalizeDivisor::sqrt_of_most:
      return root(v < eps ? eps : v);
  }
  return 1;
}

/// In double, for squares beyond the range of f32.
HWY_NOINLINE void exact_line(const NormalizeShortLines& t, const float* x, float* y) {
  const auto count = static_cast<double>(t.count);
  double mean = 0, v = 0;
  if (!t.squares) {
    for (std::int64_t i = 0; i < t.count; ++i) mean += double{x[i]};
    mean /= count;
  }
  for (std::int64_t i = 0; i < t.count; ++i) v += (double{x[i]} - mean) * (double{x[i]} - mean);
  if (!t.squares || t.mean_of_squares) v /= count;
  const double divisor = divisor_of(t, v);
  for (std::int64_t i = 0; i < t.count; ++i) {
    const double z = (double{x[i]} - mean) / divisor;
    y[i] = static_cast<float>((t.scale ? z * double{t.scale[i]} : z) + (t.bias ? double{t.bias[i]} : 0));
  }
}

struct Both {
  float sum, squares;
};

/// Sums of x - from and of its square, in one pass.
HWY_INLINE Both both_sums(const float* x, std::int64_t count, V from) {
  constexpr int kPairs = 2;
  V sums[kPairs], squares[kPairs];
  LAMINA_UNROLL
  for (int k = 0; k < kPairs; ++k) sums[k] = squares[k] = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + kPairs * kLanes <= count; i += kPairs * kLanes) {
    LAMINA_UNROLL
    for (int k = 0; k < kPairs; ++k) {
      const V difference = hn::Sub(hn::LoadU(d, x + i + k * kLanes), from);
      sums[k] = hn::Add(sums[k], difference);
      squares[k] = hn::MulAdd(difference, difference, squares[k]);
    }
  }
  for (; i < count; i += kLanes) {
    const auto n = count - i < kLanes ? count - i : kLanes;
    const V difference =
        hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(n)), hn::Sub(load_some(d, x + i, n), from));
    sums[0] = hn::Add(sums[0], difference);
    squares[0] = hn::MulAdd(difference, difference, squares[0]);
  }
  return {hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[0], sums[1]))),
          hn::GetLane(hn::SumOfLanes(d, hn::Add(squares[0], squares[1])))};
}

void short_lines(const NormalizeShortLines& t, std::int64_t begin, std::int64_t end) {
  const float share = 1.0f / static_cast<float>(t.count);
  for (std::int64_t line = begin; line < end; ++line) {
    const float* x = t.x + line * t.count;
    float mean = 0, rest = 0, v = 0;
    if (t.squares) {
      v = line_squares(x, t.count) * (t.mean_of_squares ? share : 1.0f);
    } else {
      const Both sums = both_sums(x, t.count, pivot(hn::Set(d, x[0])));
      const float step = sums.sum * share;
      mean = x[0] + step;
      rest = step - (mean - x[0]);  // what rounding took from the mean
      v = sums.squares * share - step * step;
      // A first element far from the mean cancels digits: then once more about the mean.
      if (!(step * step < 64 * v)) v = sum_of(x, t.count, AddSquare{hn::Set(d, mean)}) * share;
      if (!(rest - rest == 0)) rest = 0;
    }
    if (HWY_UNLIKELY(t.divisor != NormalizeDivisor::one && !keeps_squares(v, t.eps))) {
      exact_line(t, x, t.y + line * t.count);
      continue;
    }
    const float factor = 1.0f / divisor_of(t, v);
    scale_line(x, t.y + line * t.count, t.count, mean, factor, -rest * factor, t.scale, t.bias);
  }
}

void scale_columns(const float* x, float* y, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                   const float* shift, const float* factor, const float* offset) {
  for (std::int64_t r = 0; r < rows; ++r, x += stride, y += stride) {
    std::int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes)
      hn::StoreU(scaled(hn::LoadU(d, x + i), hn::LoadU(d, shift + i), hn::LoadU(d, factor + i),
                        hn::LoadU(d, offset + i)),
                 d, y + i);
    if (const auto n = columns - i; n > 0)
      store_some(scaled(load_some(d, x + i, n), load_some(d, shift + i, n), load_some(d, factor + i, n),
                        load_some(d, offset + i, n)),
                 d, y + i, n);
  }
}

NormalizeLoops make_table() {
  NormalizeLoops t;
  t.short_lines = short_lines;
  t.line_moments = line_moments;
  t.line_squares = line_squares;
  t.column_moments = column_moments;
  t.column_squares = column_squares;
  t.scale_line = scale_line;
  t.scale_columns = scale_columns;
  return t;
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(NormalizeLoops, normalize_loops, make_table)

}  // namespace lamina
#endif
