#include "kernels/native/offers.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/move/strided.h"
#include "kernels/native/pooling/run.h"
#include "ops/pooling.h"

namespace lamina {
namespace {

using pooling::Three;
using pooling::Windows;

Three spatial(const Dims& x) {
  Three out{1, 1, 1};
  std::copy(x.begin() + 2, x.end(), out.end() - static_cast<std::ptrdiff_t>(x.size() - 2));
  return out;
}

// What the windows are.

PoolRange clipped(std::int64_t first, std::int64_t count, std::int64_t step, std::int64_t in,
                  std::int64_t frame_end) {
  const auto before = [&](std::int64_t limit) {  // positions before it
    return limit <= first ? 0 : std::min(count, ceil_div(limit - first, step));
  };
  const auto skipped = before(0), inside = before(in) - skipped;
  PoolRange r;
  r.begin = static_cast<std::int32_t>(inside > 0 ? first + skipped * step : first);
  r.count = static_cast<std::int32_t>(inside);
  r.step = static_cast<std::int32_t>(step);
  r.framed = static_cast<std::int32_t>(before(frame_end));
  return r;
}

void set_windows(Windows& c, const Window& window, const Ints& kernel, const Dims& x) {
  const auto w = resolve(window, std::vector<Dim>(x.begin() + 2, x.end()), kernel);
  const std::size_t absent = 3 - kernel.size();
  for (std::size_t a = 0; a < 3; ++a) {
    const bool has = a >= absent;
    const auto of = [&](const Ints& list, std::int64_t otherwise) {
      return has ? list[a - absent] : otherwise;
    };
    const auto size = of(kernel, 1), step = of(w.dilations, 1), stride = of(w.strides, 1);
    const auto before = of(w.pads_begin, 0), after = of(w.pads_end, 0);
    for (std::int64_t o = 0; o < c.out[a]; ++o)
      c.ranges[a].push_back(clipped(o * stride - before, size, step, c.in[a], c.in[a] + after));
    if (a < 2) continue;
    c.stride = stride;
    c.pad = before;
    const auto whole = [&](std::int64_t o) {
      return o * stride >= before && o * stride - before + (size - 1) * step < c.in[a];
    };
    while (c.whole_begin < c.out[a] && !whole(c.whole_begin)) ++c.whole_begin;
    c.whole_end = c.whole_begin;
    while (c.whole_end < c.out[a] && whole(c.whole_end)) ++c.whole_end;
  }
}

void set_adaptive_windows(Windows& c) {
  for (std::size_t a = 0; a < 3; ++a)
    for (std::int64_t o = 0; o < c.out[a]; ++o) {
      PoolRange r;
      r.begin = static_cast<std::int32_t>(o * c.in[a] / c.out[a]);
      r.count = static_cast<std::int32_t>(ceil_div((o + 1) * c.in[a], c.out[a])) - r.begin;
      r.framed = r.count;
      c.ranges[a].push_back(r);
    }
}

// What is offered.

/// What windows give, before any stage.
ElementType made_of(const NodeView& v) {
  const auto* windows = v.op<AvgPool>();
  const auto* adaptive = v.op<AdaptiveAvgPool>();
  const auto sums = windows ? windows->sums : adaptive ? adaptive->sums : ElementType::undefined;
  return sums == ElementType::undefined ? v.element(0) : sums;
}

PoolLoops::Run rows_of(const Machine& machine, ElementType type, ElementType made, bool mean, Layout layout) {
  const auto& loops = pool_loops(machine.isa());
  const bool last = layout == Layout::channels_last;
  if (made != type) {
    const auto& means = byte_means(machine.isa());
    if (!last || made != ElementType::f32) return nullptr;
    return type == ElementType::u8 ? means.u8 : type == ElementType::i8 ? means.i8 : nullptr;
  }
  if (type == ElementType::f32)
    return mean ? (last ? loops.mean_pixels_f32 : loops.mean_line_f32)
                : (last ? loops.max_pixels_f32 : loops.max_line_f32);
  if (type == ElementType::bf16 && last) return mean ? loops.mean_pixels_bf16 : loops.max_pixels_bf16;
  if (mean) return nullptr;
  if (type == ElementType::u8) return last ? loops.max_pixels_u8 : loops.max_line_u8;
  if (type == ElementType::i8) return last ? loops.max_pixels_i8 : loops.max_line_i8;
  return nullptr;
}

void describe(const NodeView& v, Windows& c) {
  const auto x = v.dims(0);
  c.batch = x[0];
  c.channels = x[1];
  c.in = spatial(x);
  c.out = spatial(v.out_dims());
  if (const auto* op = v.op<MaxPool>()) {
    set_windows(c, *op, op->kernel, x);
    c.column_major = op->storage_order == 1;
    c.wide_indices = op->index_element_type == ElementType::i64;
    for (auto i = normalize_axis(op->axis, x.size(), "axis"); i < x.size(); ++i) c.index_range *= x[i];
  } else if (const auto* mean = v.op<AvgPool>()) {
    set_windows(c, *mean, mean->kernel, x);
    c.mean = true;
    c.exclude_pad = mean->exclude_pad;
  } else {
    set_adaptive_windows(c);
    c.mean = v.op<AdaptiveAvgPool>() != nullptr;
    if (const auto* max = v.op<AdaptiveMaxPool>()) {
      c.wide_indices = max->index_element_type == ElementType::i64;
      for (std::size_t i = 2; i < x.size(); ++i) c.index_range *= x[i];
    }
  }
}

/// Cost of outputs line by line: each position of their windows is begun for every line, however short that
/// is.
Cost lines_cost(const Machine& machine, const Windows& c, std::size_t bytes) {
  const auto lanes = pool_loops(machine.isa()).lanes * 4 / static_cast<std::int64_t>(bytes);
  const auto vectors = static_cast<double>(ceil_div(c.out[2], lanes));
  const double starts = pooling::work_of(c) / static_cast<double>(c.out[2]);
  return calls_of(machine, Family::pool_start, starts) +
         calls_of(machine, Family::pool_vector, starts * vectors);
}

Offer offer_of(const NodeView& v, Layout layout, std::string label) {
  Offer o(v, std::move(label), layout);
  if ((v.op<AdaptiveAvgPool>() || v.op<AdaptiveMaxPool>()) && v.constant(1)) o.consumed = {1};
  return o;
}

void offer_rows(const NodeView& v, const Windows& described, Layout layout, Answers& answers) {
  auto code = std::make_shared<Windows>(described);
  const auto made = made_of(v);
  code->rows = rows_of(v.machine(), v.element(0), made, code->mean, layout);
  if (!code->rows)
    return answers.refuse("native", "{}: no vector code for {}", name_of(layout), name_of(v.element(0)));
  Offer o = offer_of(v, layout,
                     fmt::format("native_{}pool_{}_{}", code->mean ? "avg" : "max",
                                 name_of(v.machine().isa()), name_of(v.element(0))));
  const auto bytes = whole_bytes(v.element(0));
  const auto moved =
      static_cast<double>(bytes * element_count(v.dims(0)) + whole_bytes(made) * element_count(v.out_dims()));
  // oneDNN's poolings are as fast, but its maxima begin with the lowest finite number: -inf gets lost.
  const double wide = v.element(0) == ElementType::bf16 ? 4 : static_cast<double>(bytes);
  const double work = pooling::work_of(*code) * wide / 4;
  const bool slow = layout == Layout::plain ? code->stride > 2 : code->channels < 4;
  const bool pixels = layout == Layout::channels_last;
  const auto family = code->mean ? (pixels ? Family::pool_mean_pixels : Family::pool_mean_lines)
                                 : (pixels ? Family::pool_max_pixels : Family::pool_max_lines);
  o.cost = slow ? cost_of(v.machine(), Family::scalar, pooling::work_of(*code), moved)
                : std::max(cost_of(v.machine(), family, 0, moved), cost_of(v.machine(), family, work));
  if (layout == Layout::plain) o.cost = std::max(o.cost, lines_cost(v.machine(), *code, bytes));
  code->piece = pooling::outputs_of_piece(*code, layout);
  const auto planes = code->batch * (layout == Layout::plain ? code->channels : 1);
  code->all = partitioned_here(planes * code->out[0] * code->out[1], o.cost.us());
  std::string why;
  const auto pixel = layout == Layout::channels_last ? code->channels : 1;
  const auto out_bytes = whole_bytes(v.out_element());
  if (out_bytes == whole_bytes(made) || (out_bytes > 0 && pixel <= pooling::kTile))
    code->stages = StageProgram::of_epilogue(v, layout, why);
  if (code->stages)
    code->stages->add_to(o, v.machine());
  else
    o.stages = 0;
  code->x = Rows::of(v.element(0), v.dims(0), layout);
  code->made = Rows::of(made, v.out_dims(), layout);
  code->y = Rows::of(code->stages ? v.out_element() : made, v.out_dims(), layout);
  o.make = [code](MakeContext& context) {
    const auto made = std::make_shared<Windows>(*code);
    if (made->stages) made->stages = made->stages->made(context);
    return executable([made](const RunArgs& args) { pooling::run_rows(*made, args); });
  };
  answers.offers.push_back(std::move(o));
}

void offer_planes(const NodeView& v, const Windows& described, Answers& answers) {
  const auto run = pooling::planes_of(v.element(0));
  if (!run || described.mean) return answers.refuse("native", "plain: pooling of {}", name_of(v.element(0)));
  auto code = std::make_shared<Windows>(described);
  code->with_indices = v.outputs() > 1;
  Offer o = offer_of(v, Layout::plain, fmt::format("native_maxpool_{}", name_of(v.element(0))));
  o.stages = 0;
  o.cost = cost_of(v.machine(), Family::scalar, pooling::work_of(*code));
  code->all = partitioned_here(code->batch * code->channels * code->out[0] * code->out[1], o.cost.us());
  o.make = [code, run](MakeContext&) {
    return executable([code, run](const RunArgs& args) { run(*code, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace

bool is_pooling(const Op& op) {
  return op.is<MaxPool>() || op.is<AvgPool>() || op.is<AdaptiveAvgPool>() || op.is<AdaptiveMaxPool>();
}

void offer_native_pooling(const NodeView& v, Answers& answers) {
  const auto x = v.dims(0), y = v.out_dims();
  if (element_count(x) == 0 || element_count(y) == 0) return answers.refuse("native", "empty tensors");
  if (*std::max_element(x.begin() + 2, x.end()) > INT32_MAX / 2)
    return answers.refuse("native", "an axis of {}", *std::max_element(x.begin() + 2, x.end()));
  Windows code;
  describe(v, code);
  if (v.outputs() == 1) {
    offer_rows(v, code, Layout::channels_last, answers);
    const auto type = v.element(0);
    const bool lines = type == ElementType::f32 || (!code.mean && bits_of(type) == 8 && is_integer(type));
    if (lines) return offer_rows(v, code, Layout::plain, answers);
  }
  offer_planes(v, code, answers);
}

}  // namespace lamina
