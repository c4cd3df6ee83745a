/// Depthwise convolutions of u8 and i8, channels-last, exact: a vector of channels at a time, some lines of
/// the picture each.
#include "kernels/native/convolution/depthwise/integer_offer.h"

#include <cstring>

#include "base/element_types.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/convolution/depthwise/integer_lines.h"
#include "kernels/native/convolution/depthwise/integer_weights.h"
#include "kernels/native/convolution/depthwise/spread.h"
#include "kernels/native/convolution/depthwise/tasks.h"
#include "kernels/native/convolution/depthwise/window.h"
#include "kernels/native/stages/epilogue.h"
#include "kernels/zero_points.h"

namespace lamina {
namespace {

using depthwise::IntegerLines;
using windows::Geometry;

struct IntegerDepthwise {
  Geometry g;
  Epilogue epilogue;
  const depthwise::IntegerKernels* kernels = nullptr;
  void (*kernel)(const IntegerLines&) = nullptr;
  std::int64_t lines = 1;  ///< lines that the kernel makes at once
  Rows in{};
  depthwise::Tasks tasks{};
  Tensor words{}, sums{};                    ///< of weights
  std::optional<std::int32_t> zero_point{};  ///< nothing: it is that input
  std::size_t zero_input = 3;
  std::optional<depthwise::Spread> spread{};  ///< of a transposed one; it lies in front of what lies apart
  Rows given{};                               ///< rows of the input

  bool copies() const { return spread && spread->copies(); }
  std::int64_t copy_bytes() const { return copies() ? round_up(spread->bytes(), std::int64_t{64}) : 0; }

  /// Bytes per slot for sums that are kept in scratch memory.
  std::int64_t apart_bytes() const { return epilogue.apart_bytes(tasks.bands.size * g.out[2] * g.outputs); }
  bool is_signed() const { return in.element == ElementType::i8; }
  std::int64_t channel_of(std::int64_t vector) const {
    return depthwise::first_channel(vector, g.outputs, kernels->lanes);
  }
};

void choose_kernel(IntegerDepthwise& d) {
  const auto& g = d.g;
  const auto taps = g.kernel[2], stride = g.stride[2];
  const auto& k = *d.kernels;
  const bool narrow = g.outputs < k.lanes, follow = g.stride[1] == 1 && g.dilation[1] == 1;
  d.kernel = narrow ? k.part : k.any;
  if (narrow || g.dilation[2] != 1 || (taps != 3 && taps != 5)) return;
  if (stride == 2) d.kernel = taps == 3 ? k.three_by_two : k.five_by_two;
  if (stride != 1 || !follow) return;
  d.kernel = taps == 3 ? k.three : k.five;
  d.lines = depthwise::kLinesAtOnce;
}

/// Multiply-adds, and what comes behind them as so many for each output. Windows that do not follow each
/// other share no columns.
double work_of(const Geometry& g) {
  constexpr double kBehind = 8, kApart = 2;
  const auto taps = static_cast<double>(g.taps());
  return static_cast<double>(g.images * g.out_points() * g.outputs) *
         (taps * (g.stride[2] == 1 ? 1 : kApart) + kBehind);
}

Cost cost_of(const Machine& machine, const Geometry& g, ElementType result) {
  const auto points = static_cast<double>(g.images * g.outputs);
  const double bytes = points * (static_cast<double>(g.in_points()) +
                                 static_cast<double>(g.out_points()) * bits_of(result) / 8.0);
  return cost_of(machine, Family::depthwise_int8, work_of(g), bytes);
}

/// What a run gives beside the tensors.
std::int32_t zero_point_of(const IntegerDepthwise& d, const RunArgs& args) {
  if (d.zero_point) return *d.zero_point;
  const auto byte = *static_cast<const std::uint8_t*>(args.in[d.zero_input]);
  return d.is_signed() ? static_cast<std::int8_t>(byte) : byte;
}

/// The window, the picture's type and what surrounds it.
IntegerLines lines_of(const IntegerDepthwise& d, const RunArgs& args) {
  const auto& g = d.g;
  const auto zero_point = zero_point_of(d, args);
  IntegerLines s{depthwise::line_geometry(g)};
  s.in = static_cast<const std::uint8_t*>(d.copies() ? args.scratch : args.in[0]);
  s.in_point = d.in.bytes(d.in.step);
  s.in_line = g.in[2] * s.in_point;
  s.flip = d.is_signed() ? 0x80808080u : 0;
  std::memset(s.outside, zero_point, sizeof s.outside);
  s.zero_point = zero_point + (d.is_signed() ? 128 : 0);
  s.channels = g.outputs;
  s.finish = d.epilogue.integer_finish();
  return s;
}

void run_task(const IntegerDepthwise& d, const RunArgs& args, const IntegerLines& all,
              const depthwise::Task& task, std::int64_t slot, StageRun* stages) {
  const auto& g = d.g;
  auto s = all;
  s.first = task.line;
  s.count = task.lines;
  s.vectors = task.vectors;
  s.channel = d.channel_of(task.vector);
  s.last = d.channel_of(task.vector + task.vectors - 1) - s.channel;
  const auto lanes = d.kernels->lanes, groups = ceil_div(g.kernel[1] + d.lines - 1, d.kernels->rows);
  s.weights = d.words.data<std::int32_t>().data() + task.vector * groups * d.lines * g.kernel[2] * lanes;
  s.weight_sums = d.sums.data<std::int32_t>().data() + task.vector * lanes;
  s.in = d.in.at<const std::uint8_t>(all.in, task.image * g.in_points(), s.channel);
  const std::int64_t point = (task.image * g.out[1] + s.first) * g.out[2];
  const auto sums =
      d.epilogue.sums(args.out[0], {point, s.count * g.out[2], 0, g.outputs},
                      static_cast<std::byte*>(args.scratch) + d.copy_bytes() + slot * d.apart_bytes());
  s.out_size = d.epilogue.apart() ? 4 : d.epilogue.out.bytes(1);
  s.out = sums.memory() + s.channel * s.out_size;
  s.out_point = sums.row_bytes();
  s.out_line = g.out[2] * s.out_point;
  const auto& added = d.epilogue.added;
  s.add = static_cast<const std::byte*>(d.epilogue.added_at(args, point, s.channel));
  s.add_size = s.finish.added_bytes();
  s.add_point = added.bytes(added.step);
  s.add_line = g.out[2] * s.add_point;
  d.kernel(s);
  if (stages) sums.apply(*stages);
}

void run(const IntegerDepthwise& d, const RunArgs& args) {
  const auto all = lines_of(d, args);
  if (d.copies())
    d.spread->run(d.given, args.in[0], zero_point_of(d, args), static_cast<std::byte*>(args.scratch));
  d.epilogue.run(args.in, d.tasks.partition, [&](auto begin, auto end, auto slot, StageRun* stages) {
    for (auto i = begin; i < end; ++i) run_task(d, args, all, d.tasks.at(i), slot, stages);
  });
}

Verdict takes_types(const NodeView& v, ZeroPoints& zeros) {
  const bool wide = v.element(1) == ElementType::i16;
  if (!is_byte(v.element(0)) || !(is_byte(v.element(1)) || wide))
    return Verdict::no("integers of {} and {}, wanted u8 or i8, or weights of i16", name_of(v.element(0)),
                       name_of(v.element(1)));
  if (v.has(2)) return Verdict::no("int8: a bias of integers");
  if (auto verdict = zero_points_of(v, zeros); !verdict) return verdict;
  if (zeros.weights_at_run) return Verdict::no("int8: zero points of weights that are given at run time");
  if (!zeros.weights.empty() && wide) return Verdict::no("int8: zero points of weights of i16");
  return Verdict::yes();
}

}  // namespace

void offer_integer_depthwise(const NodeView& v, Answers& answers) {
  ZeroPoints zeros;
  if (const auto verdict = takes_types(v, zeros); !verdict)
    return answers.refuse("native", "{}", verdict.reason());
  std::string why;
  const auto epilogue = Epilogue::of(v, Layout::channels_last, why);
  if (!epilogue) return answers.refuse("native", "int8: {}", why);
  IntegerDepthwise d{windows::geometry_of(v), *epilogue};
  if (d.g.transposed) {
    d.spread = depthwise::spread_of(v.machine(), d.g);
    if (!d.spread)
      return answers.refuse("native",
                            "int8: the strides are too large, or more is cut off than a window reaches");
    d.g = d.spread->as;
  }
  d.zero_input = zeros.source_input;
  if (!zeros.source_at_run) d.zero_point = zeros.source;
  const depthwise::IntegerWeights weights(*v.constant(1), zeros.weights, d.g, d.spread.has_value());
  d.kernels = &depthwise::integer_kernels_for(v.machine(), d.g.outputs, weights.bytes());
  choose_kernel(d);
  d.in = d.given = {v.element(0), Layout::channels_last, d.g.outputs};
  const auto cost = cost_of(v.machine(), d.g, v.out_element());
  d.tasks = depthwise::tasks_of(
      v.machine(), d.g, {cost.us(), 1, ceil_div(d.g.outputs, d.kernels->lanes), epilogue->registers_only()});
  Offer o;
  o.label = fmt::format("native_{}depthwise_{}_int8", d.spread ? "transposed_" : "", d.kernels->name);
  epilogue->add_to(o, v);
  o.inputs[0] = Layout::channels_last;
  o.wide_inputs.push_back(0);
  o.consumed.push_back(1);  // not o.packed: what is offered depends on the numbers
  o.consumed.insert(o.consumed.end(), zeros.constants.begin(), zeros.constants.end());
  if (d.spread && v.has(3)) o.consumed.push_back(3);
  o.scratch = static_cast<std::size_t>(d.copy_bytes() + d.tasks.partition.slots * d.apart_bytes());
  o.cost += cost;
  if (d.spread) o.cost += d.spread->cost(v.machine());
  o.make = [d, weights](MakeContext& context) mutable -> std::unique_ptr<Executable> {
    d.given = context.input(0, d.given);
    if (!d.copies()) d.in = d.given;
    d.epilogue.lay(context);
    d.words = weights.words(context.weights, d.kernels->lanes, d.kernels->rows, d.lines);
    d.sums = weights.sums(context.weights, d.kernels->lanes);
    return executable([d](const RunArgs& args) { run(d, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
