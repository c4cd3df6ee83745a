/// Reductions in vector code; see loops.h.
#include "kernels/native/reduce/loops.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/reduce/loops.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/vector_part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Kind = ReduceKind;

/// Products and squares leave the range of floats before their result does.
constexpr bool in_doubles(Kind kind) { return kind == Kind::prod || kind == Kind::l2; }

template <Kind kind>
using Tag = hn::ScalableTag<std::conditional_t<in_doubles(kind), double, float>>;
template <Kind kind>
using V = hn::Vec<Tag<kind>>;
template <Kind kind>
constexpr std::int64_t kLanes = hn::MaxLanes(Tag<kind>());

constexpr std::int64_t kMany = 4;  // vectors at once
/// Elements of a line, and lines, that are added up in floats; totals are doubles.
constexpr std::int64_t kElements = 4096, kLines = 128;

template <Kind kind>
constexpr double neutral() {
  constexpr double inf = __builtin_huge_val();
  return kind == Kind::max ? -inf : kind == Kind::min ? inf : kind == Kind::prod ? 1.0 : 0.0;
}

/// The NaN that comes first stays: comparisons with it are false.
template <Kind kind>
HWY_INLINE V<kind> merge(V<kind> a, V<kind> v) {
  if constexpr (kind == Kind::max) return hn::IfThenElse(hn::Or(hn::IsNaN(v), hn::Gt(v, a)), v, a);
  if constexpr (kind == Kind::min) return hn::IfThenElse(hn::Or(hn::IsNaN(v), hn::Lt(v, a)), v, a);
  if constexpr (kind == Kind::prod) return hn::Mul(a, v);
  return hn::Add(a, v);
}
template <Kind kind>
HWY_INLINE double merge(double a, double v) {
  if constexpr (kind == Kind::max) return v != v || v > a ? v : a;
  if constexpr (kind == Kind::min) return v != v || v < a ? v : a;
  return kind == Kind::prod ? a * v : a + v;
}

template <Kind kind>
HWY_INLINE V<kind> step(V<kind> a, V<kind> v) {
  if constexpr (kind == Kind::l1) return hn::Add(a, hn::Abs(v));
  if constexpr (kind == Kind::l2) return hn::MulAdd(v, v, a);
  return merge<kind>(a, v);
}

/// What is added or multiplied for an element.
template <Kind kind>
HWY_INLINE double mapped(double v) {
  return kind == Kind::l1 ? __builtin_fabs(v) : kind == Kind::l2 ? v * v : v;
}

template <Kind kind>
HWY_INLINE float finish(double a, double divisor) {
  return static_cast<float>(kind == Kind::mean ? a / divisor : kind == Kind::l2 ? __builtin_sqrt(a) : a);
}

/// As many elements as a vector has lanes.
template <Kind kind>
HWY_INLINE V<kind> load(const float* x) {
  [[maybe_unused]] constexpr Tag<kind> d;
  if constexpr (in_doubles(kind))
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Tag<kind>>(), x));
  else
    return hn::LoadU(d, x);
}
/// The first n; the neutral one in the other lanes.
template <Kind kind>
HWY_INLINE V<kind> load(const float* x, std::int64_t n) {
  constexpr Tag<kind> d;
  const auto there = hn::FirstN(d, static_cast<std::size_t>(n));
  const auto none = hn::Set(d, neutral<kind>());
  if constexpr (in_doubles(kind)) {
    HWY_ALIGN float some[kLanes<kind>] = {};
    std::copy_n(x, n, some);
    return hn::IfThenElse(there, load<kind>(some), none);
  } else {
    return hn::IfThenElse(there, load_some(d, x, n), none);
  }
}

template <Kind kind>
HWY_INLINE double merged_lanes(V<kind> a) {
  constexpr Tag<kind> d;
  if constexpr (kind == Kind::sum || kind == Kind::mean || kind == Kind::l1)
    return hn::GetLane(hn::SumOfLanes(d, a));
  HWY_ALIGN hn::TFromD<Tag<kind>> lanes[kLanes<kind>];
  hn::Store(a, d, lanes);
  double all = neutral<kind>();
  for (const auto lane : lanes) all = merge<kind>(all, lane);
  return all;
}

/// Walks the lines of a job.
class Lines {
 public:
  HWY_INLINE explicit Lines(const ReduceLines& job) : x_(job.in), axes_(job.axes), last_(job.rank - 1) {
    for (int a = 0; a <= last_; ++a) at_[a] = 0;
  }
  /// Returns the current position; then moves on.
  HWY_INLINE const float* next() {
    const float* x = x_;
    for (int a = last_; a >= 0; --a) {
      x_ += axes_[a].stride;
      if (++at_[a] < axes_[a].size) break;
      x_ -= axes_[a].stride * axes_[a].size;
      at_[a] = 0;
    }
    return x;
  }

 private:
  const float* x_;
  const ReduceAxis* axes_;
  int last_;
  std::int64_t at_[kMostReduceAxes];
};

template <Kind kind>
float lines(const ReduceLines& job, std::int64_t size) {
  constexpr Tag<kind> d;
  constexpr auto lanes = kLanes<kind>;
  const V<kind> none = hn::Set(d, neutral<kind>());
  V<kind> a[kMany] = {none, none, none, none};
  double total = neutral<kind>();
  std::int64_t pending = 0;
  const auto flush = [&] {
    total =
        merge<kind>(total, merged_lanes<kind>(merge<kind>(merge<kind>(a[0], a[1]), merge<kind>(a[2], a[3]))));
    for (auto& v : a) v = none;
    pending = 0;
  };
  Lines walk(job);
  for (std::int64_t k = 0; k < job.count; ++k) {
    const float* line = walk.next();
    for (std::int64_t from = 0; from < size; from += kElements) {
      const float* x = line + from;
      const auto n = size - from < kElements ? size - from : kElements;
      std::int64_t i = 0;
      for (; i + kMany * lanes <= n; i += kMany * lanes)
        for (std::int64_t u = 0; u < kMany; ++u) a[u] = step<kind>(a[u], load<kind>(x + i + u * lanes));
      for (; i + lanes <= n; i += lanes) a[0] = step<kind>(a[0], load<kind>(x + i));
      if constexpr (lanes <= 4)  // few are left
        for (; i < n; ++i) total = merge<kind>(total, mapped<kind>(x[i]));
      else if (i < n)
        a[1] = step<kind>(a[1], load<kind>(x + i, n - i));
      if ((pending += n) >= kElements) flush();
    }
  }
  if (pending > 0) flush();
  return finish<kind>(total, job.divisor);
}

/// kCount vectors of columns, or `rest` columns.
template <Kind kind, int kCount>
HWY_INLINE void column_block(const ReduceLines& job, std::int64_t from, float* out, std::int64_t rest) {
  constexpr Tag<kind> d;
  constexpr auto lanes = kLanes<kind>;
  double totals[kCount * lanes];
  HWY_ALIGN hn::TFromD<Tag<kind>> part[kCount * lanes];
  for (auto& t : totals) t = neutral<kind>();
  Lines walk(job);
  for (std::int64_t first = 0; first < job.count; first += kLines) {
    const auto end = job.count - first < kLines ? job.count : first + kLines;
    V<kind> a[kCount];
    for (auto& v : a) v = hn::Set(d, neutral<kind>());
    for (auto k = first; k < end; ++k) {
      const float* x = walk.next() + from;
      for (std::int64_t u = 0; u < kCount; ++u)
        a[u] = step<kind>(a[u], rest < lanes ? load<kind>(x, rest) : load<kind>(x + u * lanes));
    }
    for (std::int64_t u = 0; u < kCount; ++u) hn::Store(a[u], d, part + u * lanes);
    for (std::int64_t i = 0; i < kCount * lanes; ++i) totals[i] = merge<kind>(totals[i], part[i]);
  }
  for (std::int64_t i = 0; i < (rest < lanes ? rest : kCount * lanes); ++i)
    out[from + i] = finish<kind>(totals[i], job.divisor);
}

template <Kind kind>
void columns(const ReduceLines& job, std::int64_t width, float* out) {
  constexpr auto lanes = kLanes<kind>;
  std::int64_t j = 0;
  for (; j + kMany * lanes <= width; j += kMany * lanes) column_block<kind, kMany>(job, j, out, lanes);
  for (; j < width; j += lanes) column_block<kind, 1>(job, j, out, width - j);
}

template <Kind... kinds>
std::array<ReduceLoops, sizeof...(kinds)> table_of() {
  return {ReduceLoops{lines<kinds>, columns<kinds>}...};
}

auto make_table() {
  return table_of<Kind::sum, Kind::mean, Kind::max, Kind::min, Kind::prod, Kind::l1, Kind::l2>();
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kMakeTable = LAMINA_PER_ISA(make_table);

const ReduceLoops& reduce_loops(ReduceKind kind) {
  static const auto table = kMakeTable.best()();
  return table[static_cast<std::size_t>(kind)];
}

}  // namespace lamina
#endif
