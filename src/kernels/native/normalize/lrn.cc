#include "kernels/native/offers.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/normalize/lrn_loops.h"
#include "ops/normalization.h"

namespace lamina {
namespace {

constexpr std::int64_t kPiece = 1024;  // elements of a row at once
constexpr std::int64_t kMostSize = 64;

/// Sums over windows along one axis of a tensor [outer][length][inner].
struct Axis {
  std::int64_t outer, length, inner;
  WorkPartition all;  ///< of lines, or of pieces of rows
  std::int64_t pieces() const { return ceil_div(inner, kPiece); }
};

struct Squares {
  std::vector<Axis> axes;
  std::int64_t count = 0;  ///< elements
  std::int64_t before = 0, after = 0;
  float bias = 1, scale = 1, beta = 1;
};

/// What becomes of the sums of a piece: kept for the next axis, or the result.
struct Sink {
  const Squares& code;
  float* sums;  ///< or null: the last axis
  const float* x;
  float* y;
  void operator()(const float* values, std::int64_t first, std::int64_t n) const {
    if (sums)
      std::copy_n(values, n, sums + first);
    else
      lrn_loops().divide(x + first, values, y + first, n, code.bias, code.scale, code.beta);
  }
};

/// Windows of rows of `inner` elements: vectors along the row.
void along_rows(const Squares& c, const Axis& a, const float* in, bool square, const Sink& sink) {
  const auto pieces = a.pieces();
  parallel_for(a.all, [&](std::int64_t begin, std::int64_t end) {
    float sums[kPiece];
    const float* rows[2 * kMostSize];
    for (auto t = begin; t < end; ++t) {
      const auto row = t / pieces, from = t % pieces * kPiece, at = row % a.length;
      const auto n = std::min(kPiece, a.inner - from);
      const auto low = std::max<std::int64_t>(0, at - c.before), high = std::min(a.length - 1, at + c.after);
      for (auto k = low; k <= high; ++k) rows[k - low] = in + (row - at + k) * a.inner + from;
      lrn_loops().sum_rows(rows, high - low + 1, square, sums, n);
      sink(sums, row * a.inner + from, n);
    }
  });
}

/// Windows in lines of neighbouring elements.
void along_lines(const Squares& c, const Axis& a, const float* in, bool square, const Sink& sink) {
  parallel_for(a.all, [&](std::int64_t begin, std::int64_t end) {
    float line[kPiece + 2 * kMostSize], sums[kPiece];
    for (auto t = begin; t < end; ++t)
      for (std::int64_t from = 0; from < a.length; from += kPiece) {
        const auto n = std::min(kPiece, a.length - from);
        const auto low = std::max<std::int64_t>(0, from - c.before),
                   high = std::min(a.length, from + n + c.after);
        float* middle = line + (low - (from - c.before));
        const float* x = in + t * a.length + low;
        std::fill(line, middle, 0.0f);
        lrn_loops().sum_rows(&x, 1, square, middle, high - low);
        std::fill(middle + (high - low), line + n + c.before + c.after, 0.0f);
        lrn_loops().sum_line(line, c.before + c.after + 1, sums, n);
        sink(sums, t * a.length + from, n);
      }
  });
}

void run(const Squares& c, const RunArgs& args) {
  const auto* x = static_cast<const float*>(args.in[0]);
  auto* scratch = static_cast<float*>(args.scratch);
  const float* in = x;
  for (std::size_t i = 0; i < c.axes.size(); ++i) {
    const bool last = i + 1 == c.axes.size();
    const Sink sink{c, last ? nullptr : scratch + (i % 2 ? c.count : 0), x, static_cast<float*>(args.out[0])};
    (c.axes[i].inner == 1 ? along_lines : along_rows)(c, c.axes[i], in, i == 0, sink);
    in = sink.sums;
  }
}

}  // namespace

void offer_lrn(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<LRN>();
  const auto x = v.dims(0);
  if (v.element(0) != ElementType::f32) return answers.refuse("native", "LRN of {}", name_of(v.element(0)));
  if (!v.constant(1)) return answers.refuse("native", "the axes are not constant");
  if (element_count(x) == 0) return answers.refuse("native", "empty tensors");
  if (op.size > kMostSize)
    return answers.refuse("native", "windows of {}, taken up to {}", op.size, kMostSize);
  std::vector<bool> flags(x.size());
  for (auto a : to_ints(*v.constant(1))) flags[normalize_axis(a, x.size(), "axis")] = true;
  if (std::find(flags.begin(), flags.end(), true) == flags.end())
    return answers.refuse("native", "LRN along no axis");
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && x.size() < 3) continue;
    Squares c;
    c.count = static_cast<std::int64_t>(element_count(x));
    c.before = (op.size - 1) / 2;
    c.after = op.size / 2;
    double area = 1;
    const auto strides = strides_of(x, layout);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (flags[i]) {
        c.axes.push_back({c.count / (x[i] * strides[i]), x[i], strides[i], {}});
        area *= static_cast<double>(op.size);
      }
    c.bias = static_cast<float>(op.bias);
    c.scale = static_cast<float>(op.alpha / area);
    c.beta = static_cast<float>(op.beta);
    Offer o;
    o.label = fmt::format("native_lrn_{}_f32", name_of(v.machine().isa()));
    o.inputs = {layout, Layout::plain};
    o.outputs = {layout};
    o.consumed = {1};
    o.stages = 0;
    const auto count = static_cast<double>(c.count);
    if (c.axes.size() > 1)
      o.scratch = static_cast<std::size_t>(c.count) * sizeof(float) * (c.axes.size() > 2 ? 2 : 1);
    const bool root = op.beta == 0.75 || op.beta == 0.5 || op.beta == 1;
    const auto windows = count * static_cast<double>(c.axes.size()) * static_cast<double>(op.size);
    o.cost = cost_of(v.machine(), Family::native_lrn, windows + 4 * count, 8 * count);
    if (!root) o.cost += cost_of(v.machine(), Family::vector_math, 2 * count);
    for (auto& a : c.axes)
      a.all = partitioned_here(a.outer * (a.inner == 1 ? 1 : a.length * a.pieces()),
                               o.cost.us() / static_cast<double>(c.axes.size()));
    o.make = [c](MakeContext&) { return executable([c](const RunArgs& args) { run(c, args); }); };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
