/// Depthwise convolutions, channels-last: a vector of channels at a time, some lines of the picture each.
#include "kernels/native/offers.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/cpu.h"
#include "base/mapped_file.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/convolution/depthwise/integer_offer.h"
#include "kernels/native/convolution/depthwise/tasks.h"
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
  depthwise::Tasks tasks{};

  /// Bytes per slot for sums that are kept in scratch memory.
  std::int64_t apart_bytes() const { return epilogue.apart_bytes(tasks.bands.size * g.out[2] * g.outputs); }
};

std::int64_t channel_of(const Depthwise& d, std::int64_t vector) {
  return depthwise::first_channel(vector, d.g.outputs, d.kernels->lanes);
}

Cost cost_of(const Machine& machine, const Geometry& g) {
  const double bytes = 4.0 * static_cast<double>(g.images * (g.in_points() + g.out_points()) * g.outputs);
  return cost_of(machine, g.stride[2] == 1 ? Family::native_depthwise : Family::depthwise_strided,
                 g.multiply_adds_by_channel(), bytes);
}

void run_task(const Depthwise& d, const RunArgs& args, const depthwise::Task& task, std::int64_t slot,
              StageRun* stages) {
  const auto& g = d.g;
  const auto lanes = d.kernels->lanes, channel = channel_of(d, task.vector);
  Lines s{depthwise::line_geometry(g)};
  s.first = task.line;
  s.count = task.lines;
  const std::int64_t point = (task.image * g.out[1] + s.first) * g.out[2];
  s.in = d.in.at<const float>(args.in[0], task.image * g.in_points(), channel);
  s.in_point = d.in.step;
  s.in_line = g.in[2] * d.in.step;
  s.weights = d.weights.data<float>().data() + task.vector * g.taps() * lanes;
  s.bias = d.bias.valid() ? d.bias.data<float>().data() + task.vector * lanes : nullptr;
  const auto sums = d.epilogue.sums(args.out[0], {point, s.count * g.out[2], 0, g.outputs},
                                    static_cast<std::byte*>(args.scratch) + slot * d.apart_bytes());
  s.out = sums.data() + channel;
  s.out_point = sums.row();
  s.out_line = g.out[2] * sums.row();
  s.add = d.epilogue.add_at(args, point, channel);
  s.add_point = d.epilogue.added.step;
  s.add_line = g.out[2] * s.add_point;
  s.vectors = task.vectors;
  s.last = channel_of(d, task.vector + task.vectors - 1) - channel;
  s.channels = g.outputs;
  s.finish = d.epilogue.finish;
  d.kernel(s);
  if (stages) sums.apply(*stages);
}

void run(const Depthwise& d, const RunArgs& args) {
  d.epilogue.run(args.in, d.tasks.partition, [&](auto begin, auto end, auto slot, StageRun* stages) {
    for (auto i = begin; i < end; ++i) run_task(d, args, d.tasks.at(i), slot, stages);
  });
}

Verdict takes_shapes(const NodeView& v) {
  const auto* back = v.op<ConvolutionBackpropData>();
  const auto groups = back ? back->groups : v.op<Convolution>()->groups;
  if (!v.constant(1)) return Verdict::no("weights are not constant");
  const auto w = v.dims(1);
  if (v.rank(0) < 3 || v.rank(0) > 5) return Verdict::no("rank {}, wanted 3 to 5", v.rank(0));
  if (groups == 1 || w[1] != 1 || w[0] != groups)
    return Verdict::no("{} groups of {} input and {} output channels, wanted one of each", groups,
                       back ? w[0] / groups : w[1], back ? w[1] : w[0] / groups);
  if (v.rank(0) == 5 && (w[2] != 1 || v.dims(0)[2] != 1)) return Verdict::no("three spatial axes");
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0) return Verdict::no("empty tensors");
  const auto g = windows::geometry_of(v);
  if (g.pad[0] != 0 || g.out[0] != 1) return Verdict::no("padded depth");
  return Verdict::yes();
}

/// A transposed convolution without strides as the convolution that it is, with its taps the other way round;
/// nothing where that would leave out borders of the picture.
std::optional<Geometry> turned(Geometry g) {
  if (!g.transposed) return g;
  g.transposed = false;
  for (std::size_t i = 0; i < 3; ++i) {
    g.pad[i] = g.dilation[i] * (g.kernel[i] - 1) - g.pad[i];
    if (g.stride[i] != 1 || g.pad[i] < 0) return std::nullopt;
  }
  return g;
}

/// Taps of all channels, as vectors of channels.
Tensor packed_taps(const Tensor& w, const Geometry& g, std::int64_t lanes, bool turn) {
  const auto source = aligned_once(w);
  const auto floats = source.data<float>();
  if (!turn) return depthwise::by_vectors(floats.data(), g.taps(), g.outputs, lanes);
  std::vector<float> taps(floats.begin(), floats.end());
  for (std::int64_t c = 0; c < g.outputs; ++c)
    std::reverse(taps.begin() + c * g.taps(), taps.begin() + (c + 1) * g.taps());
  return depthwise::by_vectors(taps.data(), g.taps(), g.outputs, lanes);
}

Verdict takes_floats(const NodeView& v) {
  if (!v.all(ElementType::f32)) return Verdict::no("element types other than f32");
  if (v.op<ConvolutionBackpropData>() && !turned(windows::geometry_of(v)))
    return Verdict::no("a transposed depthwise convolution with strides, or pads beyond its window");
  if (v.has(2) && !v.constant(2)) return Verdict::no("bias is not constant");
  if (v.has(3) || v.has(4)) return Verdict::no("zero points");
  return Verdict::yes();
}

}  // namespace

void offer_native_depthwise(const NodeView& v, Answers& answers) {
  if (const auto verdict = takes_shapes(v); !verdict) return answers.refuse("native", "{}", verdict.reason());
  if (is_integer(v.element(0))) return offer_integer_depthwise(v, answers);
  if (const auto verdict = takes_floats(v); !verdict) return answers.refuse("native", "{}", verdict.reason());
  std::string why;
  const auto epilogue = Epilogue::of(v, Layout::channels_last, why);
  if (!epilogue) return answers.refuse("native", "{}", why);
  Depthwise d{*turned(windows::geometry_of(v)), *epilogue, {}, {}};
  const bool turn = v.op<ConvolutionBackpropData>() != nullptr;
  d.kernels = &depthwise::kernels_for(v.machine().isa(), d.g.outputs);
  d.kernel = depthwise::kernel_for(d.g, *d.kernels);
  d.in = {ElementType::f32, Layout::channels_last, d.g.outputs};
  d.tasks = depthwise::tasks_of(v.machine(), d.g,
                                {cost_of(v.machine(), d.g).us(), 4, ceil_div(d.g.outputs, d.kernels->lanes),
                                 epilogue->registers_only()});
  Offer o;
  o.label = fmt::format("native_depthwise_{}_f32", name_of(v.machine().isa()));
  epilogue->add_to(o, v);
  o.inputs[0] = Layout::channels_last;
  o.consumed.push_back(1);
  o.packed = {1};
  if (v.has(2)) o.consumed.push_back(2);
  o.wide_inputs.push_back(0);
  o.scratch = static_cast<std::size_t>(d.tasks.partition.slots * d.apart_bytes());
  o.cost += cost_of(v.machine(), d.g);
  o.make = [d, turn, weights = *v.constant(1), bias = v.has(2) ? *v.constant(2) : Tensor()](
               MakeContext& context) mutable -> std::unique_ptr<Executable> {
    d.in = context.input(0, d.in);
    d.epilogue.lay(context);
    d.bias = depthwise::bias_by_vectors(bias, d.g.outputs, d.kernels->lanes, context.weights);
    d.weights = context.weights.packed(
        weights, fmt::format("native_depthwise{} {}", turn ? " turned" : "", d.kernels->lanes),
        depthwise::size_by_vectors(d.g.taps(), d.g.outputs, d.kernels->lanes),
        [&](const Tensor& w) { return packed_taps(w, d.g, d.kernels->lanes, turn); });
    return executable([d](const RunArgs& args) { run(d, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
