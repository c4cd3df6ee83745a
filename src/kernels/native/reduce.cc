/// Reductions over any axes, f32, plain and channels-last.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/native/strided.h"
#include "ops/reduction.h"

namespace lamina {
namespace {

enum class Kind { sum, mean, max, min, prod, l1, l2 };

std::optional<Kind> kind_of(const Op& op) {
  if (op.is<ReduceSum>()) return Kind::sum;
  if (op.is<ReduceMean>()) return Kind::mean;
  if (op.is<ReduceMax>()) return Kind::max;
  if (op.is<ReduceMin>()) return Kind::min;
  if (op.is<ReduceProd>()) return Kind::prod;
  if (op.is<ReduceL1>()) return Kind::l1;
  if (op.is<ReduceL2>()) return Kind::l2;
  return std::nullopt;
}

/// Runs of axes in memory order that are all kept or all reduced.
struct Run {
  std::int64_t size, stride;
  bool reduced;
};

struct Runs {
  std::vector<Run> runs;
  std::int64_t outputs = 1, reduced = 1;
};

Runs runs_of(const Dims& x, const std::vector<bool>& flags, Layout layout) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (layout == Layout::plain || i != 1) order.push_back(i);
  if (layout == Layout::channels_last) order.push_back(1);
  const auto strides = strides_of(x, layout);
  Runs s;
  for (const auto axis : order) {
    (flags[axis] ? s.reduced : s.outputs) *= x[axis];
    if (x[axis] == 1) continue;
    if (!s.runs.empty() && s.runs.back().reduced == flags[axis]) {
      s.runs.back().size *= x[axis];
      s.runs.back().stride = strides[axis];
    } else {
      s.runs.push_back({x[axis], strides[axis], flags[axis]});
    }
  }
  return s;
}

double start(Kind kind) {
  switch (kind) {
    case Kind::max:
      return -std::numeric_limits<double>::infinity();
    case Kind::min:
      return std::numeric_limits<double>::infinity();
    case Kind::prod:
      return 1;
    default:
      return 0;
  }
}

void accumulate(Kind kind, double& a, double v) {
  switch (kind) {
    case Kind::sum:
    case Kind::mean:
      a += v;
      return;
    case Kind::max:
      a = std::isnan(v) || v > a ? v : a;
      return;
    case Kind::min:
      a = std::isnan(v) || v < a ? v : a;
      return;
    case Kind::prod:
      a *= v;
      return;
    case Kind::l1:
      a += std::fabs(v);
      return;
    case Kind::l2:
      a += v * v;
      return;
  }
}

float finish(Kind kind, double a, std::int64_t count) {
  if (kind == Kind::mean) return static_cast<float>(a / static_cast<double>(count));
  return static_cast<float>(kind == Kind::l2 ? std::sqrt(a) : a);
}

/// A row of doubles, one kind at a time so that the loop has no switch.
template <Kind kind>
void accumulate_row(double* a, const float* in, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) accumulate(kind, a[j], in[j]);
}
template <Kind kind>
double accumulate_line(const float* in, std::int64_t count, std::int64_t stride) {
  double a[4] = {start(kind), start(kind), start(kind), start(kind)};
  std::int64_t j = 0;
  for (; j + 4 <= count; j += 4)
    for (std::int64_t k = 0; k < 4; ++k) accumulate(kind, a[k], in[(j + k) * stride]);
  for (; j < count; ++j) accumulate(kind, a[0], in[j * stride]);
  if (kind == Kind::l1 || kind == Kind::l2) return a[0] + a[1] + a[2] + a[3];  // already absolute or squared
  for (int k = 1; k < 4; ++k) accumulate(kind, a[0], a[k]);
  return a[0];
}

/// Offsets of all combinations of the given runs.
std::vector<std::int64_t> offsets(const std::vector<Run>& runs) {
  std::vector<std::int64_t> out{0};
  for (const auto& r : runs) {
    std::vector<std::int64_t> next;
    next.reserve(out.size() * static_cast<std::size_t>(r.size));
    for (const auto o : out)
      for (std::int64_t i = 0; i < r.size; ++i) next.push_back(o + i * r.stride);
    out = std::move(next);
  }
  return out;
}

struct Work {
  std::vector<std::int64_t> outer, inner;  ///< offsets of kept and of reduced positions, without the last run
  Run last;
  std::int64_t reduced;
};

template <Kind kind>
void run(const Work& w, const float* in, float* out) {
  constexpr std::int64_t kRow = 256;
  const auto groups = static_cast<std::int64_t>(w.outer.size());
  const auto per_group = static_cast<std::int64_t>(w.inner.size()) * w.last.size;
  if (w.last.reduced) {
    parallel_for(groups, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, per_group)),
                 [&](std::int64_t b, std::int64_t e) {
                   for (auto g = b; g < e; ++g) {
                     double a = start(kind);
                     for (const auto i : w.inner) {
                       const double part = accumulate_line<kind>(
                           in + w.outer[static_cast<std::size_t>(g)] + i, w.last.size, w.last.stride);
                       if constexpr (kind == Kind::l1 || kind == Kind::l2)
                         a += part;
                       else
                         accumulate(kind, a, part);
                     }
                     out[g] = finish(kind, a, w.reduced);
                   }
                 });
    return;
  }
  const auto pieces = (w.last.size + kRow - 1) / kRow;
  const auto work = static_cast<std::int64_t>(w.inner.size()) * std::min(w.last.size, kRow);
  parallel_for(groups * pieces, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, work)),
               [&](std::int64_t b, std::int64_t e) {
                 double a[kRow];
                 for (auto p = b; p < e; ++p) {
                   const auto g = p / pieces, from = p % pieces * kRow,
                              count = std::min(kRow, w.last.size - from);
                   std::fill_n(a, count, start(kind));
                   for (const auto i : w.inner)
                     accumulate_row<kind>(a, in + w.outer[static_cast<std::size_t>(g)] + i + from, count);
                   for (std::int64_t j = 0; j < count; ++j)
                     out[g * w.last.size + from + j] = finish(kind, a[j], w.reduced);
                 }
               });
}

void run(Kind kind, const Work& w, const float* in, float* out) {
  switch (kind) {
    case Kind::sum:
      return run<Kind::sum>(w, in, out);
    case Kind::mean:
      return run<Kind::mean>(w, in, out);
    case Kind::max:
      return run<Kind::max>(w, in, out);
    case Kind::min:
      return run<Kind::min>(w, in, out);
    case Kind::prod:
      return run<Kind::prod>(w, in, out);
    case Kind::l1:
      return run<Kind::l1>(w, in, out);
    case Kind::l2:
      return run<Kind::l2>(w, in, out);
  }
}

Work work_of(const Runs& s) {
  Work w;
  std::vector<Run> kept, reduced;
  auto runs = s.runs;
  w.last = runs.empty() ? Run{1, 1, true} : runs.back();
  if (!runs.empty()) runs.pop_back();
  for (const auto& r : runs) (r.reduced ? reduced : kept).push_back(r);
  w.outer = offsets(kept);
  w.inner = offsets(reduced);
  w.reduced = s.reduced;
  return w;
}

}  // namespace

void offer_reduce(const NodeView& v, Answers& answers) {
  const auto kind = kind_of(v.node().op);
  const auto* axes_tensor = v.constant(1);
  if (!kind || !axes_tensor)
    return answers.refuse("native", "axes are not constant, or a reduction of truth values");
  if (v.element(0) != ElementType::f32) return answers.refuse("native", "element types other than f32");
  const auto x = v.dims(0);
  if (element_count(x) == 0) return answers.refuse("native", "empty tensors");
  std::vector<bool> flags(x.size(), false);
  for (auto a : to_ints(*axes_tensor)) flags[normalize_axis(a, x.size(), "axis")] = true;
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && (x.size() < 3 || v.out_dims().size() != x.size())) continue;
    Offer o;
    o.label = "native_reduce_f32";
    o.inputs = {layout, Layout::plain};
    o.outputs = {layout};
    o.consumed = {1};
    o.stages = 0;
    o.cost = 4 * move_cost(4.0 * static_cast<double>(element_count(x)));
    o.make = [kind = *kind, w = work_of(runs_of(x, flags, layout))](MakeContext&) {
      return executable([kind, w](const RunArgs& args) {
        run(kind, w, static_cast<const float*>(args.in[0]), static_cast<float*>(args.out[0]));
      });
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
