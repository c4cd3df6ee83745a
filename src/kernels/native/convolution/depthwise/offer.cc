/// Depthwise convolutions, channels-last: a vector of channels at a time, some lines of the picture each.
#include "kernels/native/offers.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/divide.h"
#include "base/mapped_file.h"
#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/native/convolution/depthwise/window.h"
#include "kernels/native/stages/epilogue.h"
#include "ops/convolution.h"

namespace lamina {
namespace {

using depthwise::Lines;
using windows::Geometry;

struct Depthwise {
  Geometry g;
  Epilogue epilogue;
  Tensor weights, bias;
  const depthwise::Kernels* kernels = nullptr;
  void (*kernel)(const Lines&) = nullptr;
  Rows in{};
  std::int64_t vectors = 1;  ///< of channels
  Parts bands{}, parts{};    ///< lines and vectors of a task
  Division tasks{};

  /// Of a slot, for sums that lie apart.
  std::int64_t apart_bytes() const { return epilogue.apart_bytes(bands.size * g.out[2] * g.outputs); }
};

std::int64_t channel_of(const Depthwise& d, std::int64_t vector) {
  return depthwise::first_channel(vector, d.g.outputs, d.kernels->lanes);
}

double multiply_adds(const Geometry& g) {
  return static_cast<double>(g.images * g.out_points() * g.outputs) * static_cast<double>(g.taps());
}

Cost cost_of(const Machine& machine, const Geometry& g) {
  const double bytes = 4.0 * static_cast<double>(g.images * (g.in_points() + g.out_points()) * g.outputs);
  return cost_of(machine, g.stride[2] == 1 ? Family::native_depthwise : Family::depthwise_strided,
                 multiply_adds(g), bytes);
}

/// Of a task, where nothing else asks for less.
constexpr double kTaskMicroseconds = 40;

/// Cuts the work: bands of lines whose input stays in L2, then vectors of channels.
void divide(const Machine& machine, Depthwise& d) {
  const auto& g = d.g;
  const double total = cost_of(machine, g).us(), line_us = total / static_cast<double>(g.images * g.out[1]);
  const std::int64_t line_bytes = 4 * g.in[2] * g.outputs * g.stride[1];
  const auto by_cache = std::max<std::int64_t>(
      4, static_cast<std::int64_t>(machine.l2 / 8 * 3) / std::max<std::int64_t>(1, line_bytes));
  const auto wanted = units_wanted(total, threads_here());
  // Small pictures of many channels: lines share input, channels do not. But stages want whole points.
  const bool by_channels = d.epilogue.registers_only();
  const double task_us =
      by_channels ? kTaskMicroseconds : std::min(kTaskMicroseconds, total / static_cast<double>(wanted));
  d.bands = even_parts(
      g.out[1], std::clamp<std::int64_t>(static_cast<std::int64_t>(task_us / line_us) / 2 * 2, 2, by_cache));
  d.parts.size = d.vectors;
  const auto have = g.images * d.bands.number;
  if (by_channels && have < wanted) {
    d.parts = even_parts(d.vectors, d.vectors * have / wanted);
    // Vectors that overlap stay in one task.
    if (d.parts.number > 1 && d.vectors - (d.parts.number - 1) * d.parts.size == 1) --d.parts.number;
  }
  d.tasks = divided_here(have * d.parts.number, total);
}

void run_task(const Depthwise& d, const RunArgs& args, std::int64_t index, std::int64_t slot,
              StageRun* stages) {
  const auto& g = d.g;
  const std::int64_t part = index % d.parts.number, band = index / d.parts.number % d.bands.number,
                     image = index / d.parts.number / d.bands.number;
  const std::int64_t first = part * d.parts.size,
                     end = part + 1 == d.parts.number ? d.vectors : first + d.parts.size;
  const auto lanes = d.kernels->lanes, channel = channel_of(d, first);
  auto s = depthwise::lines_of(g);
  s.first = band * d.bands.size;
  s.count = std::min(d.bands.size, g.out[1] - s.first);
  const std::int64_t point = (image * g.out[1] + s.first) * g.out[2];
  s.in = d.in.at<const float>(args.in[0], image * g.in_points(), channel);
  s.in_point = d.in.step;
  s.in_line = g.in[2] * d.in.step;
  s.weights = d.weights.data<float>().data() + first * g.taps() * lanes;
  s.bias = d.bias.valid() ? d.bias.data<float>().data() + first * lanes : nullptr;
  const auto sums = d.epilogue.sums(args.out[0], {point, s.count * g.out[2], 0, g.outputs},
                                    static_cast<std::byte*>(args.scratch) + slot * d.apart_bytes());
  s.out = sums.data() + channel;
  s.out_point = sums.row();
  s.out_line = g.out[2] * sums.row();
  s.add = d.epilogue.add_at(args, point, channel);
  s.add_point = d.epilogue.added.step;
  s.add_line = g.out[2] * s.add_point;
  s.vectors = end - first;
  s.last = channel_of(d, end - 1) - channel;
  s.channels = g.outputs;
  s.finish = d.epilogue.finish;
  d.kernel(s);
  if (stages) sums.apply(*stages);
}

void run(const Depthwise& d, const RunArgs& args) {
  d.epilogue.run(args.in, d.tasks, [&](auto begin, auto end, auto slot, StageRun* stages) {
    for (auto i = begin; i < end; ++i) run_task(d, args, i, slot, stages);
  });
}

Verdict takes(const NodeView& v) {
  const auto& op = *v.op<Convolution>();
  if (!v.all(ElementType::f32)) return Verdict::no("element types other than f32");
  if (!v.constant(1)) return Verdict::no("weights are not constant");
  const auto w = v.dims(1);
  if (v.rank(0) < 3 || v.rank(0) > 5) return Verdict::no("rank {}, wanted 3 to 5", v.rank(0));
  if (op.groups == 1 || w[1] != 1 || w[0] != op.groups)
    return Verdict::no("{} groups of {} input and {} output channels, wanted one of each", op.groups, w[1],
                       w[0] / op.groups);
  if (v.rank(0) == 5 && (w[2] != 1 || v.dims(0)[2] != 1)) return Verdict::no("three spatial axes");
  if (v.has(2) && !v.constant(2)) return Verdict::no("bias is not constant");
  if (v.has(3) || v.has(4)) return Verdict::no("zero points");
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0) return Verdict::no("empty tensors");
  return Verdict::yes();
}

}  // namespace

void offer_native_depthwise(const NodeView& v, Answers& answers) {
  if (const auto verdict = takes(v); !verdict) return answers.refuse("native", "{}", verdict.reason());
  std::string why;
  const auto epilogue = Epilogue::of(v, Layout::channels_last, why);
  if (!epilogue) return answers.refuse("native", "{}", why);
  Depthwise d{windows::geometry_of(v), *epilogue, {}, {}};
  if (d.g.pad[0] != 0 || d.g.out[0] != 1) return answers.refuse("native", "padded depth");
  d.kernels = &depthwise::kernels_for(v.machine().isa(), d.g.outputs);
  d.kernel = depthwise::kernel_for(d.g, *d.kernels);
  d.vectors = ceil_div(d.g.outputs, d.kernels->lanes);
  d.in = {ElementType::f32, Layout::channels_last, d.g.outputs};
  divide(v.machine(), d);
  Offer o;
  o.label = fmt::format("native_depthwise_{}_f32", name_of(v.machine().isa()));
  epilogue->add_to(o, v);
  o.inputs[0] = Layout::channels_last;
  o.consumed.push_back(1);
  o.packed = {1};
  if (v.has(2)) o.consumed.push_back(2);
  o.wide_inputs.push_back(0);
  o.scratch = static_cast<std::size_t>(d.tasks.slots * d.apart_bytes());
  o.cost += cost_of(v.machine(), d.g);
  o.make = [d, weights = *v.constant(1), bias = v.has(2) ? *v.constant(2) : Tensor()](
               MakeContext& context) mutable -> std::unique_ptr<Executable> {
    d.in = context.input(0, d.in);
    d.epilogue.lay(context);
    d.bias = depthwise::bias_by_vectors(bias, d.g.outputs, d.kernels->lanes, context.weights);
    d.weights = context.weights.packed(
        weights, fmt::format("native_depthwise {}", d.kernels->lanes), [&](const Tensor& w) {
          return depthwise::by_vectors(aligned_once(w).data<float>().data(), d.g.taps(), d.g.outputs,
                                       d.kernels->lanes);
        });
    return executable([d](const RunArgs& args) { run(d, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
