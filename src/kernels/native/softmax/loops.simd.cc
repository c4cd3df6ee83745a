/// Softmax in vector code; see loops.h.
#include "kernels/native/softmax/loops.h"

#include <cmath>

#include "base/work_partition.h"
#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/softmax/loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/native/simd/vector_math-inl.h"
#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace vm = vector_math;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);

HWY_INLINE V lowest() { return hn::Set(d, -__builtin_huge_valf()); }

/// Largest element of a line; a NaN may get lost, since the sum of exponentials will be NaN anyway.
HWY_INLINE V largest(const float* x, std::int64_t size) {
  V a = lowest(), b = a;
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    a = hn::Max(a, hn::LoadU(d, x + i));
    b = hn::Max(b, hn::LoadU(d, x + i + kLanes));
  }
  for (; i + kLanes <= size; i += kLanes) a = hn::Max(a, hn::LoadU(d, x + i));
  if (const auto rest = size - i; rest > 0)
    b = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(rest)), hn::Max(b, load_some(d, x + i, rest)),
                       b);
  return hn::MaxOfLanes(d, hn::Max(a, b));
}

/// Vectors that are added up before they are added to the others: one after the other, millions would lose
/// percents.
constexpr std::int64_t kTogether = 1024;

/// Sum of e^(x - most); the exponentials go to `out` unless it is null.
HWY_INLINE V exponentials(const float* x, float* out, std::int64_t size, V most) {
  V sum = hn::Zero(d);
  std::int64_t i = 0;
  while (i + 2 * kLanes <= size) {
    V a = hn::Zero(d), b = a;
    const auto end = size - i < kTogether * kLanes ? size : i + kTogether * kLanes;
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      const V e0 = vm::exp_below(d, hn::Sub(hn::LoadU(d, x + i), most));
      const V e1 = vm::exp_below(d, hn::Sub(hn::LoadU(d, x + i + kLanes), most));
      if (out) {
        hn::StoreU(e0, d, out + i);
        hn::StoreU(e1, d, out + i + kLanes);
      }
      a = hn::Add(a, e0);
      b = hn::Add(b, e1);
    }
    sum = hn::Add(sum, hn::Add(a, b));
  }
  for (; i < size; i += kLanes) {
    const auto n = size - i < kLanes ? size - i : kLanes;
    const V e = vm::exp_below(d, hn::Sub(load_some(d, x + i, n), most));
    if (out) store_some(e, d, out + i, n);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(n)), e));
  }
  return hn::SumOfLanes(d, sum);
}

/// Lines of so many vectors stay in registers from the first pass to the last (of 32 or 16 of them).
constexpr std::int64_t kNearVectors = kLanes >= 16 ? 8 : 4;

/// Lines of kCount vectors, of which the last may be a part of one: its other lanes are -infinity and add 0.
template <int kCount>
void near_lines(const SoftmaxJob& job, std::int64_t begin, std::int64_t end, std::int64_t count) {
  if constexpr (kCount < kNearVectors)
    if (kCount < count) return near_lines<kCount + 1>(job, begin, end, count);
  constexpr std::int64_t last = kCount - 1;
  const auto rest = job.size - last * kLanes;
  const auto there = hn::FirstN(d, static_cast<std::size_t>(rest));
  for (std::int64_t line = begin; line < end; ++line) {
    const float* x = job.in + line * job.size;
    float* y = job.out + line * job.size;
    V v[kCount];
    for (std::int64_t k = 0; k < last; ++k) v[k] = hn::LoadU(d, x + k * kLanes);
    v[last] = hn::IfThenElse(there, load_some(d, x + last * kLanes, rest), lowest());
    V most = v[0];
    for (std::int64_t k = 1; k < kCount; ++k) most = hn::Max(most, v[k]);
    most = hn::MaxOfLanes(d, most);
    for (auto& e : v) e = vm::exp_below(d, hn::Sub(e, most));
    V sum = v[0];
    for (std::int64_t k = 1; k < kCount; ++k) sum = hn::Add(sum, v[k]);
    const V factor = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, sum));
    for (std::int64_t k = 0; k < last; ++k) hn::StoreU(hn::Mul(v[k], factor), d, y + k * kLanes);
    store_some(hn::Mul(v[last], factor), d, y + last * kLanes, rest);
  }
}

void lines(const SoftmaxJob& job, std::int64_t begin, std::int64_t end) {
  const auto size = job.size;
  if (!job.log && size <= kNearVectors * kLanes)
    return near_lines<1>(job, begin, end, ceil_div(size, kLanes));
  for (std::int64_t line = begin; line < end; ++line) {
    const float* x = job.in + line * size;
    float* y = job.out + line * size;
    const V most = largest(x, size);
    const V sum = exponentials(x, job.log ? nullptr : y, size, most);
    const V factor = hn::Div(hn::Set(d, 1.0f), sum);
    const V log_sum = job.log ? hn::Set(d, ::logf(hn::GetLane(sum))) : sum;
    for (std::int64_t i = 0; i < size; i += kLanes) {
      const auto n = size - i < kLanes ? size - i : kLanes;
      const V v = load_some(d, (job.log ? x : y) + i, n);
      store_some(job.log ? hn::Sub(hn::Sub(v, most), log_sum) : hn::Mul(v, factor), d, y + i, n);
    }
  }
}

/// Softmax of `size` vectors that `io` reads and writes.
template <class Io>
HWY_INLINE void vectors(std::int64_t size, bool log, Io& io) {
  V most = lowest();
  for (std::int64_t k = 0; k < size; ++k) most = hn::Max(most, io.input(k));
  V sum = hn::Zero(d);
  for (std::int64_t k = 0; k < size;) {
    V part = hn::Zero(d);
    for (const auto end = size - k < kTogether ? size : k + kTogether; k < end; ++k) {
      const V e = vm::exp_below(d, hn::Sub(io.input(k), most));
      if (!log) io(e, k);
      part = hn::Add(part, e);
    }
    sum = hn::Add(sum, part);
  }
  const V factor = hn::Div(hn::Set(d, 1.0f), sum);
  const V log_sum = log ? hn::IfThenElse(hn::IsNaN(sum), sum, hn::Log(d, sum)) : sum;
  for (std::int64_t k = 0; k < size; ++k)
    io(log ? hn::Sub(hn::Sub(io.input(k), most), log_sum) : hn::Mul(io.output(k), factor), k);
}

/// A vector per position in the line.
template <int kSize>
struct Registers {
  V v[kSize];
  HWY_INLINE V input(std::int64_t k) const { return v[k]; }
  HWY_INLINE V output(std::int64_t k) const { return v[k]; }
  HWY_INLINE void operator()(V value, std::int64_t k) { v[k] = value; }
};

/// As many whole vectors of lines of 2, 3 or 4 elements as there are; returns the line after them.
template <int kSize>
HWY_INLINE std::int64_t interleaved_lines(const SoftmaxJob& job, std::int64_t begin, std::int64_t end) {
  std::int64_t line = begin;
  for (; line + kLanes <= end; line += kLanes) {
    const float* x = job.in + line * kSize;
    float* y = job.out + line * kSize;
    Registers<kSize> r;
    if constexpr (kSize == 2) hn::LoadInterleaved2(d, x, r.v[0], r.v[1]);
    if constexpr (kSize == 3) hn::LoadInterleaved3(d, x, r.v[0], r.v[1], r.v[2]);
    if constexpr (kSize == 4) hn::LoadInterleaved4(d, x, r.v[0], r.v[1], r.v[2], r.v[3]);
    vectors(kSize, job.log, r);
    if constexpr (kSize == 2) hn::StoreInterleaved2(r.v[0], r.v[1], d, y);
    if constexpr (kSize == 3) hn::StoreInterleaved3(r.v[0], r.v[1], r.v[2], d, y);
    if constexpr (kSize == 4) hn::StoreInterleaved4(r.v[0], r.v[1], r.v[2], r.v[3], d, y);
  }
  return line;
}

/// A line per lane, through a buffer: gathers and scatters are slower on most processors.
constexpr std::int64_t kShortLine = kLanes >= 8 ? 8 : 4;

void short_lines(const SoftmaxJob& job, std::int64_t begin, std::int64_t end) {
  const auto size = job.size;
  if (size == 2) begin = interleaved_lines<2>(job, begin, end);
  if (size == 3) begin = interleaved_lines<3>(job, begin, end);
  if (size == 4) begin = interleaved_lines<4>(job, begin, end);
  Registers<kShortLine> r;
  HWY_ALIGN float buffer[kShortLine * kLanes] = {};
  for (std::int64_t line = begin; line < end; line += kLanes) {
    const auto n = end - line < kLanes ? end - line : kLanes;
    const float* x = job.in + line * size;
    float* y = job.out + line * size;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t k = 0; k < size; ++k) buffer[k * kLanes + j] = x[j * size + k];
    for (std::int64_t k = 0; k < size; ++k) r.v[k] = hn::Load(d, buffer + k * kLanes);
    vectors(size, job.log, r);
    for (std::int64_t k = 0; k < size; ++k) hn::Store(r.v[k], d, buffer + k * kLanes);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t k = 0; k < size; ++k) y[j * size + k] = buffer[k * kLanes + j];
  }
}

constexpr std::int64_t kColumns = kLanes;

void columns(const SoftmaxJob& job, std::int64_t begin, std::int64_t end) {
  struct Column {
    const float* in;
    float* out;
    std::int64_t stride, n;
    HWY_INLINE V input(std::int64_t k) const {
      return n == kLanes ? hn::LoadU(d, in + k * stride) : load_some(d, in + k * stride, n);
    }
    HWY_INLINE V output(std::int64_t k) const {
      return n == kLanes ? hn::LoadU(d, out + k * stride) : load_some(d, out + k * stride, n);
    }
    HWY_INLINE void operator()(V v, std::int64_t k) const {
      if (n == kLanes)
        hn::StoreU(v, d, out + k * stride);
      else
        store_some(v, d, out + k * stride, n);
    }
  };
  const auto pieces = ceil_div(job.inner, kColumns);
  for (std::int64_t p = begin; p < end; ++p) {
    const auto first = p % pieces * kColumns, at = p / pieces * job.size * job.inner + first;
    const auto n = job.inner - first < kColumns ? job.inner - first : kColumns;
    Column io{job.in + at, job.out + at, job.inner, n};
    vectors(job.size, job.log, io);
  }
}

constexpr SoftmaxTable kSoftmaxTable{.lanes = kLanes,
                                     .short_line = kShortLine,
                                     .lines = lines,
                                     .short_lines = short_lines,
                                     .columns = columns,
                                     .column_count = kColumns};

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
const SoftmaxTable& softmax_table(Isa isa) { return LAMINA_CONSTANT_PER_ISA(kSoftmaxTable).at(isa); }

}  // namespace lamina
#endif
