/// BinaryConvolution: the picture is packed to bits first (packing.h), then differences to the weights
/// are counted (lines.h).
#include "kernels/native/offers.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/binary/depthwise.h"
#include "kernels/native/binary/depthwise_lines.h"
#include "kernels/native/binary/packing.h"
#include "kernels/native/binary/stages.h"
#include "kernels/native/binary/windows.h"
#include "ops/convolution.h"

namespace lamina {
namespace {

using binary::Frame;
using binary::Kernels;
using binary::Packing;
using binary::Panel;

constexpr double kTaskMicroseconds = 8;  ///< of a task, where nothing else asks for less

struct BinaryConvolved : Packing, Frame {
  Tensor limit{};           ///< differences with which signs change
  Parts chunks{}, parts{};  ///< points and panels of a task
  WorkPartition tasks{};

  /// Bytes per slot for sums that are kept in scratch memory.
  std::int64_t apart_bytes() const { return epilogue.apart_bytes(chunks.size * g.outputs); }
};

Cost cost_of(const Machine& machine, const BinaryConvolved& b) {
  const auto& g = b.g;
  const double moved = static_cast<double>(b.in.bytes(g.images * g.in_points() * g.inputs) +
                                           b.epilogue.out.bytes(g.images * g.out_points() * g.outputs));
  return cost_of(machine, Family::native_binary, b.work(machine), moved);
}

/// Cuts the work: points that share weights in a cache, then panels.
void partition(const Machine& machine, BinaryConvolved& b) {
  const auto& g = b.g;
  const double total = cost_of(machine, b).us(), points = static_cast<double>(g.images * g.out_points());
  const auto wanted = units_wanted(total, threads_here());
  const bool by_panels = b.epilogue.registers_only();  // stages want whole points
  const double task_us =
      by_panels ? kTaskMicroseconds : std::min(kTaskMicroseconds, total / static_cast<double>(wanted));
  const auto points_of_task = static_cast<std::int64_t>(task_us * points / total);
  const auto near_sums =
      static_cast<std::int64_t>(machine.l2 / sizeof(float) / 16);  // until they are results
  const auto most = b.epilogue.apart()
                        ? std::clamp<std::int64_t>(near_sums / g.outputs, 1, binary::Windows::kMost)
                        : binary::Windows::kMost;
  b.chunks = even_parts(g.out_points(), std::clamp<std::int64_t>(points_of_task, 1, most));
  const auto panels = static_cast<std::int64_t>(b.panels.size()), have = g.images * b.chunks.number;
  b.parts.size = panels;
  if (by_panels && have < wanted) b.parts = even_parts(panels, panels * have / wanted);
  b.tasks = partitioned_here(have * b.parts.number, total);
}

void run_panel(const BinaryConvolved& b, const RunArgs& args, const Panel& panel,
               const binary::Windows& windows, std::int64_t point, const Sums& sums) {
  const auto channel = panel.group * b.outputs() + panel.vector * b.kernels->lanes;
  binary::Tile t{};
  if (b.thresholds) {
    t.signs = b.signs(args, point, channel), t.out_step = b.sign_row();
  } else if (b.epilogue.integers) {
    t.bytes = reinterpret_cast<std::uint8_t*>(sums.memory()) + channel, t.out_step = sums.row_bytes();
    t.byte_finish = &b.epilogue.integers->finish(), t.first = channel;
  } else {
    t.out = sums.data() + channel, t.out_step = sums.row();
  }
  t.bits = b.epilogue.out.bits();
  t.add = b.epilogue.add_at(args, point, channel);
  t.add_step = b.epilogue.added.step;
  t.finish = b.epilogue.finish;
  windows.run(panel, t);
}

void run_task(const BinaryConvolved& b, const RunArgs& args, std::int64_t index, std::int64_t slot,
              StageRun* stages) {
  const std::int64_t part = index % b.parts.number, chunk = index / b.parts.number % b.chunks.number,
                     image = index / b.parts.number / b.chunks.number;
  const std::int64_t first = chunk * b.chunks.size, count = std::min(b.chunks.size, b.g.out_points() - first),
                     point = image * b.g.out_points() + first;
  binary::Windows windows(b, b.packed, b.start, b.limit);
  windows.find(b.source(args.in[0], args.scratch) + image * b.image, 0, b.g.out[2], first, count);
  const auto sums = b.sums(args, point, count, slot, b.apart_bytes());
  const auto panels = static_cast<std::int64_t>(b.panels.size()),
             end = std::min((part + 1) * b.parts.size, panels);
  for (auto i = part * b.parts.size; i < end; ++i)
    run_panel(b, args, b.panels[static_cast<std::size_t>(i)], windows, point, sums);
  if (end == panels) b.clear_tails(args, point, count);
  if (stages) sums.apply(*stages);
}

void run(const BinaryConvolved& b, const RunArgs& args) {
  b.pack(b.in, args.in[0], args.scratch);
  b.epilogue.run(args.in, b.tasks, [&](auto begin, auto end, auto slot, StageRun* stages) {
    for (auto i = begin; i < end; ++i) run_task(b, args, i, slot, stages);
  });
}

Verdict takes_binary(const NodeView& v) {
  const auto& op = *v.op<BinaryConvolution>();
  if (const auto type = v.element(0); type != ElementType::f32 && type != ElementType::boolean)
    return Verdict::no("element type {}, wanted f32 or boolean", name_of(type));
  if (v.rank(0) < 3 || v.rank(0) > 5) return Verdict::no("rank {}, wanted 3 to 5", v.rank(0));
  if (!v.constant(1)) return Verdict::no("weights are not constant");
  if (op.pad_value != -1 && op.pad_value != 0 && op.pad_value != 1)
    return Verdict::no("pad_value is {}, wanted -1, 0 or 1", op.pad_value);
  const auto w = v.dims(1);
  if (const auto terms = element_count(w) / std::max<std::size_t>(1, static_cast<std::size_t>(w[0]));
      terms > static_cast<std::size_t>(binary::kMostExact))
    return Verdict::no("sums of {} products, exact are at most {}", terms, binary::kMostExact);
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0 || element_count(v.dims(1)) == 0)
    return Verdict::no("empty tensors");
  return Verdict::yes();
}

void offer_with(const NodeView& v, Answers& answers, BinaryConvolved b) {
  static_cast<Packing&>(b) = b.reading(b.in);
  partition(v.machine(), b);
  auto o =
      b.offer(v, b.kernels->name, b.scratch_bytes(), b.tasks.slots, b.apart_bytes(), cost_of(v.machine(), b));
  o.make = [b, weights = *v.constant(1)](MakeContext& context) mutable -> std::unique_ptr<Executable> {
    b.make(context, weights,
           {fmt::format("native_binary {} {}", b.kernels->name, b.g.groups), b.starts_key(), b.weights_size(),
            b.starts_size(), [&](const Tensor& w) { return b.weights(w); },
            [&](const Tensor& w) { return b.starts(w); }, b.outputs(), b.vectors * b.kernels->lanes});
    if (b.thresholds) b.limit = b.limits(b.start);
    return executable([b](const RunArgs& args) { run(b, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace

void offer_binary_convolution(const NodeView& v, Answers& answers) {
  if (const auto verdict = takes_binary(v); !verdict) return answers.refuse("native", "{}", verdict.reason());
  const auto g = windows::geometry_of(v);
  const auto counted = g.taps() * (g.inputs / g.groups);
  // One less, so that there is a limit above all counts, where the sign is the same for every sum.
  const auto thresholds = counted < binary::kMostCounted ? binary::thresholds_of(v, counted) : std::nullopt;
  std::string why;
  const bool depthwise =
      g.groups > 1 && g.groups == g.inputs && g.groups == g.outputs && g.taps() <= binary::kMostDepthwiseTaps;
  auto epilogue = thresholds ? Epilogue(Rows::of(ElementType::boolean, v.out_dims(), Layout::channels_last))
                             : Epilogue::of(v, Layout::channels_last, why);
  if (!thresholds && !depthwise)
    if (auto bytes = binary::levels_in_registers(v)) epilogue = std::move(bytes);
  if (!epilogue) return answers.refuse("native", "{}", why);
  if (depthwise) return offer_binary_depthwise(v, answers, *epilogue, thresholds);
  std::vector<const Kernels*> list{&binary::lookup_kernels(v.machine().isa(), g.outputs / g.groups)};
  if (const auto* kernels = binary::popcount_kernels(v.machine())) list.push_back(kernels);
  for (const auto* kernels : list) {
    const auto pad_value = static_cast<int>(v.op<BinaryConvolution>()->pad_value);
    const auto packing = Packing::of(g, *kernels, pad_value);
    if (!packing) return answers.refuse("native", "windows reach far outside the input");
    const auto each = std::max<std::int64_t>(8, kernels->unit_channels);  // bits at which a group may begin
    BinaryConvolved b{*packing, Frame(v, *epilogue, thresholds)};
    b.for_layouts(g.groups == 1 || packing->in_channels() % each == 0,
                  g.groups == 1 || packing->outputs() % 8 == 0, [&](bool bits_in, bool bits_out) {
                    b.lay(bits_in, bits_out);
                    offer_with(v, answers, b);
                  });
  }
}

}  // namespace lamina
