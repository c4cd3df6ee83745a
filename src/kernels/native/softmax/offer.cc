#include "kernels/native/offers.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/softmax/loops.h"
#include "ops/reduction.h"

namespace lamina {
namespace {

struct SoftmaxLines {
  std::int64_t outer = 1, size = 1, inner = 1;
  bool log = false;
  const SoftmaxTable* table = nullptr;
  WorkPartition all;  ///< of outer, and of pieces of inner
};

void run(const SoftmaxLines& c, const RunArgs& args) {
  const auto& table = *c.table;
  SoftmaxJob job;
  job.in = static_cast<const float*>(args.in[0]);
  job.out = static_cast<float*>(args.out[0]);
  job.size = c.size;
  job.inner = c.inner;
  job.log = c.log;
  const auto loop = c.inner > 1                  ? table.columns
                    : c.size <= table.short_line ? table.short_lines
                                                 : table.lines;
  parallel_for(c.all, [&](std::int64_t begin, std::int64_t end) { loop(job, begin, end); });
}

}  // namespace

void offer_native_softmax(const NodeView& v, Answers& answers) {
  if (v.element(0) != ElementType::f32)
    return answers.refuse("native", "softmax of {}", name_of(v.element(0)));
  const auto x = v.dims(0);
  const auto count = element_count(x);
  if (x.empty() || count == 0) return answers.refuse("native", "softmax of a scalar or an empty tensor");
  SoftmaxLines c;
  c.table = &softmax_table(v.machine().isa());
  c.log = v.op<LogSoftmax>() != nullptr;
  const auto axis =
      normalize_axis(c.log ? v.op<LogSoftmax>()->axis : v.op<Softmax>()->axis, x.size(), "axis");
  c.size = x[axis];
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && x.size() < 3) continue;
    c.inner = c.size == 1 ? 1 : strides_of(x, layout)[axis];
    c.outer = static_cast<std::int64_t>(count) / (c.size * c.inner);
    Offer o;
    o.label = fmt::format("native_softmax_{}_f32", name_of(v.machine().isa()));
    o.inputs = {layout};
    o.outputs = {layout};
    o.in_place = {{0, 0}};
    o.stages = 0;
    o.cost = cost_of(v.machine(), Family::vector_math, static_cast<double>(count),
                     12.0 * static_cast<double>(count));
    const auto pieces = c.inner > 1 ? ceil_div(c.inner, c.table->column_count) : 1;
    c.all = partitioned_here(c.outer * pieces, o.cost.us());
    o.make = [c](MakeContext&) { return executable([c](const RunArgs& args) { run(c, args); }); };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
