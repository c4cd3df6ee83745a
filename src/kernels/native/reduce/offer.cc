/// Reductions over any axes, f32, plain and channels-last.
#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/move/positions.h"
#include "kernels/native/move/strided.h"
#include "kernels/native/reduce/loops.h"
#include "ops/reduction.h"

namespace lamina {
namespace {

std::optional<ReduceKind> kind_of(const Op& op) {
  if (op.is<ReduceSum>()) return ReduceKind::sum;
  if (op.is<ReduceMean>()) return ReduceKind::mean;
  if (op.is<ReduceMax>()) return ReduceKind::max;
  if (op.is<ReduceMin>()) return ReduceKind::min;
  if (op.is<ReduceProd>()) return ReduceKind::prod;
  if (op.is<ReduceL1>()) return ReduceKind::l1;
  if (op.is<ReduceL2>()) return ReduceKind::l2;
  return std::nullopt;
}

/// Runs of axes in memory order that are all kept or all reduced.
struct AxisRun {
  std::int64_t size, stride;
  bool reduced;
};

struct Runs {
  std::vector<AxisRun> runs;
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

constexpr std::int64_t kPiece = 256;

struct Work {
  Positions<1> outer;             ///< kept positions, without the last run
  std::vector<ReduceAxis> inner;  ///< reduced axes, without it
  std::int64_t inner_count = 1;
  AxisRun last;
  std::int64_t reduced;
  WorkPartition all{};  ///< of lines, or of pieces of lines

  std::int64_t pieces() const { return last.reduced ? 1 : ceil_div(last.size, kPiece); }
};

void run(ReduceKind kind, const Work& w, const float* in, float* out) {
  const auto& loops = reduce_loops(kind);
  const auto pieces = w.pieces(), size = w.last.size;
  const auto lines_of = [&](std::int64_t group, std::int64_t from) {
    return ReduceLines{in + w.outer[group][0] + from, w.inner.data(), static_cast<int>(w.inner.size()),
                       w.inner_count, static_cast<double>(w.reduced)};
  };
  if (w.last.reduced)
    return parallel_for(w.all, [&](std::int64_t begin, std::int64_t end) {
      for (auto g = begin; g < end; ++g) out[g] = loops.lines(lines_of(g, 0), size);
    });
  parallel_for(w.all, [&](std::int64_t begin, std::int64_t end) {
    for (auto p = begin; p < end; ++p) {
      const auto g = p / pieces, from = p % pieces * kPiece;
      loops.columns(lines_of(g, from), std::min(kPiece, size - from), out + g * size + from);
    }
  });
}

Work work_of(const Runs& s) {
  Work w;
  auto runs = s.runs;
  w.last = runs.empty() ? AxisRun{1, 1, true} : runs.back();
  if (!runs.empty()) runs.pop_back();
  for (const auto& r : runs)
    if (r.reduced) {
      w.inner.push_back({r.size, r.stride});
      w.inner_count *= r.size;
    } else {
      w.outer.add(r.size, {r.stride});
    }
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
    o.label = fmt::format("native_reduce_{}_f32", name_of(v.machine().isa()));
    o.inputs = {layout, Layout::plain};
    o.outputs = {layout};
    o.consumed = {1};
    o.stages = 0;
    auto w = work_of(runs_of(x, flags, layout));
    if (w.inner.size() > kMostReduceAxes)
      return answers.refuse("native", "{} reduced axes apart from each other", w.inner.size());
    o.cost = move_cost(v.machine(), 8.0 * static_cast<double>(element_count(x)), 2);
    if (w.last.reduced)
      o.cost += calls_of(v.machine(), Family::reduce_line, static_cast<double>(w.outer.count()));
    w.all = partitioned_here(w.outer.count() * w.pieces(), o.cost.us());
    o.make = [kind = *kind, w = std::move(w)](MakeContext&) {
      return executable([kind, w](const RunArgs& args) {
        run(kind, w, static_cast<const float*>(args.in[0]), static_cast<float*>(args.out[0]));
      });
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
