#include "kernels/native/offers.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/convolution/pair/run.h"
#include "ops/convolution_depthwise.h"
#include "ops/decompose.h"

namespace lamina {
namespace {

using conv_depthwise::Columns;
using conv_depthwise::Pair;
using conv_depthwise::Parent;
using windows::Geometry;

/// Bytes of a buffer of lines that stays in L2 beside the weights; long lines may exceed it up to this limit.
std::int64_t buffer_bytes(const Pair& c) { return static_cast<std::int64_t>(c.machine->l2 / 4); }
std::int64_t most_buffer_bytes(const Pair& c) { return static_cast<std::int64_t>(c.machine->l2 / 4 * 3); }
/// Longer lines are cut in columns of so many outputs or more, since some are made twice at each cut.
constexpr std::int64_t kLeastColumns = 64;
/// Bytes of the output from which on no cache keeps it.
double stream_bytes(const Pair& c) { return static_cast<double>(c.machine->last_cache()); }
/// Bytes of the lines that are made at a time.
std::int64_t step_bytes(const Pair& c) { return static_cast<std::int64_t>(c.machine->l2 / 16); }
/// Lines of the buffer besides those that the next step reads too: then moving these is cheap.
constexpr std::int64_t kGoodLines = 3, kBestLines = 6;
/// Tasks per thread from which on it does not matter much when some threads have one more.
constexpr std::int64_t kManyTasks = 4;

double out_bytes(const Pair& c) {
  return static_cast<double>(c.second.images * c.second.out_points() * c.second.outputs) * 4;
}

/// Channels of a task's widest block when there are so many panels in it.
std::int64_t widest(const Parent& p, std::int64_t block) {
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < p.panels(); i += block)
    most = std::max(most, p.channel(std::min(i + block, p.panels())) - p.channel(i));
  return most;
}

std::int64_t good_lines(const Pair& c, std::int64_t lines = kGoodLines) {
  return std::min(c.first.out[1], c.extent() - std::min(c.extent(), c.second.stride[1]) + lines);
}

/// Cuts lines in about so many columns.
void cut_columns(Pair& c, std::int64_t count) {
  const auto& g = c.second;
  const auto width = g.out[2], each = std::min(width, round_up(ceil_div(width, count), 8));
  const auto inside = [&](std::int64_t x) { return std::clamp<std::int64_t>(x, 0, c.first.out[2]); };
  c.columns.clear();
  c.width = 1;
  for (std::int64_t first = 0; first < width; first += each) {
    Columns columns{first, std::min(each, width - first), 0, 1};
    const auto at = first * g.stride[2] - g.pad[2];
    columns.from = std::min(inside(at), c.first.out[2] - 1);
    const auto reach = (columns.count - 1) * g.stride[2] + (g.kernel[2] - 1) * g.dilation[2] + 1;
    columns.width = std::max<std::int64_t>(1, inside(at + reach) - columns.from);
    c.width = std::max(c.width, columns.width);
    c.columns.push_back(std::move(columns));
  }
}

/// Cuts the channels into so many blocks, with as many lines at a time as fit.
void cut_blocks(Pair& c, std::int64_t blocks) {
  const auto panels = c.parent->panels();
  c.block = ceil_div(panels, blocks);
  // The last vector of windows begins before its panel where that is no whole vector, but not before its
  // block.
  const auto narrow = [&] {
    const auto last = (panels - 1) / c.block * c.block;
    return last != 0 && c.parent->channel(panels) - c.parent->channel(last) < c.kernels->lanes;
  };
  while (narrow()) ++c.block;
  c.blocks = ceil_div(panels, c.block);
  c.row = widest(*c.parent, c.block);
  const auto line_bytes = c.width * c.row * 4, height = c.band;
  c.step = std::min(height, std::max<std::int64_t>(2, step_bytes(c) / (line_bytes * c.second.stride[1])));
  while (c.step > 1 && c.lines_for(c.step) * line_bytes > most_buffer_bytes(c)) --c.step;
  c.step = ceil_div(height, ceil_div(height, c.step));
  if (c.step % 2 == 1 && c.step > 2 && c.step < height) --c.step;  // windows go by two lines
  const auto lines =
      std::max(buffer_bytes(c) / line_bytes, std::min(good_lines(c), most_buffer_bytes(c) / line_bytes));
  c.capacity = std::clamp(lines, c.lines_for(c.step), c.first.out[1]);
}

/// About so many bands of lines; each makes at least `share` times the lines that it makes twice.
void cut_bands(Pair& c, std::int64_t bands, std::int64_t share) {
  const auto height = c.second.out[1], stride = c.second.stride[1],
             more = std::max<std::int64_t>(0, c.extent() - stride);
  const auto lines = std::max({ceil_div(height, bands), share * more / stride, std::int64_t{4}});
  c.band = std::min(height, round_up(lines, 2));
  c.bands = ceil_div(height, c.band);
  c.step = std::min(c.step, c.band);
  c.capacity = std::min(c.capacity, c.lines_for(c.band));
}

/// `microseconds`: of the whole on one thread, roughly.
void partition(Pair& c, double microseconds) {
  c.band = c.second.out[1];
  c.bands = 1;
  const auto fits = [&] {
    const bool good = c.capacity >= good_lines(c) || !c.between.registers_only();  // stages like whole lines
    return good && c.buffer_bytes() <= most_buffer_bytes(c);
  };
  const auto most = c.parent->panels();
  const auto point_bytes = c.first.outputs * 4;
  const auto wide = buffer_bytes(c) / (good_lines(c, kBestLines) * point_bytes * c.second.stride[2]);
  cut_columns(c, ceil_div(c.second.out[2], std::max(kLeastColumns, wide)));
  cut_blocks(c, 1);
  for (std::int64_t n = 2; n <= most && !fits(); ++n) cut_blocks(c, n);
  // Each thread should get one piece of the tasks.
  const auto wanted = std::min<std::int64_t>(threads_here(), units_wanted(microseconds, threads_here()));
  const auto even = [&] { return c.tasks() % wanted == 0 || c.tasks() >= kManyTasks * wanted; };
  if (wanted > 1 && !even()) cut_bands(c, wanted, 6);
  if (wanted > 1 && !even() && c.between.registers_only() && c.after.registers_only()) {
    const auto blocks = std::min(ceil_div(kManyTasks * wanted, c.tasks() / c.blocks), most / 2);
    if (blocks > c.blocks) cut_blocks(c, blocks);
  }
  if (c.tasks() < wanted) cut_bands(c, wanted, 3);
  c.shares = partitioned_here(c.tasks(), microseconds);
}

/// Tensors larger than these bytes lie in farther memory. Blocks of channels write their parts of each point
/// there one after the other, and read x anew.
Cost apart_cost(const Machine& machine, double in, double out, std::int64_t blocks) {
  return blocks == 1 ? Cost() : far_cost(machine, out + in * static_cast<double>(blocks - 1)) * 2;
}

/// What other kernels take for far memory besides their costs, which are for tensors nearby: here x is
/// fetched ahead, and a large output is not read before it is written.
Cost far_gain(const Pair& c) {
  const bool stream = c.stream && c.kernels->lanes == 16;
  return cost_of(*c.machine, Family::fetched, 0, c.parent->fetched_bytes(), 0) +
         cost_of(*c.machine, Family::streamed, 0, stream ? out_bytes(c) : 0, 0);
}

/// The estimate for one thread, without the last epilogue.
Cost cost_of(const Pair& c) {
  const auto images = static_cast<double>(c.first.images);
  const double between = static_cast<double>(c.first.out_points() * c.first.outputs) * images * 4,
               out = out_bytes(c);
  const auto more = static_cast<double>(std::max<std::int64_t>(0, c.extent() - c.second.stride[1]));
  const auto lines = static_cast<double>(c.first.out[1]);
  const double twice = more * static_cast<double>(c.bands - 1) / lines;  // made twice
  const double steps = static_cast<double>(c.tasks()) * static_cast<double>(ceil_div(c.band, c.step));
  const double turns = static_cast<double>(c.tasks()) * lines / static_cast<double>(c.bands) /
                       std::max(1.0, static_cast<double>(c.capacity) - more);
  const double moved = turns * more * static_cast<double>(c.width * c.row) * 4;
  Cost cost = c.parent->cost(c, 1 + twice) + apart_cost(*c.machine, c.parent->read_bytes(), out, c.blocks);
  cost += cost_of(*c.machine, Family::native_depthwise, c.second.multiply_adds_by_channel(), between + out);
  cost += move_cost(*c.machine, 2 * moved) + calls_of(*c.machine, Family::pair_step, steps);
  if (c.between.stages) cost += c.between.stages->cost(*c.machine);
  if (c.between.stages && c.blocks > 1)  // point by point
    cost += cost_of(*c.machine, Family::product_stages,
                    static_cast<double>(c.blocks * c.first.out_points()) * images, 0, 0);
  return cost - std::min(far_gain(c), cost * 0.25);
}

Verdict takes(const NodeView& v, const NodeView& first, const NodeView& second, const Graph& parts) {
  if (parts.node_count() != 2 || first.node().inputs[0] != parts.inputs().at(0))
    return Verdict::no("{} nodes before, wanted one", parts.node_count() - 1);
  if (!second.all(ElementType::f32)) return Verdict::no("element types other than f32");
  if (v.rank(0) > 4) return Verdict::no("three spatial axes");
  for (const auto* part : {&first, &second}) {
    if (!part->constant(1)) return Verdict::no("weights are not constant");
    if (part->has(2) && !part->constant(2)) return Verdict::no("bias is not constant");
    if (element_count(part->out_dims()) == 0 || element_count(part->dims(0)) == 0)
      return Verdict::no("empty tensors");
  }
  return Verdict::yes();
}

/// Whether the first convolution's epilogue reads nothing at run time: the node has no such inputs.
bool reads_nothing(const NodeView& first, const Epilogue& between) {
  Offer o;
  between.add_to(o, first);
  for (std::size_t i = base_inputs(first.node()); i < first.inputs(); ++i)
    if (std::find(o.consumed.begin(), o.consumed.end(), i) == o.consumed.end()) return false;
  return true;
}

Offer offer_of(const NodeView& v, const NodeView& second, Pair code) {
  Offer o;
  o.label = code.parent->label();
  const auto layout = code.parent->layout();
  code.after.add_to(o, v);
  o.inputs[0] = layout;
  o.consumed.push_back(1);
  if (v.has(2)) o.consumed.push_back(2);
  if (layout == Layout::channels_last) o.wide_inputs.push_back(0);
  o.cost += cost_of(code);
  o.scratch = static_cast<std::size_t>(conv_depthwise::scratch_bytes(code));
  o.make = [code = std::move(code), w = *second.constant(1),
            bias = second.has(2) ? *second.constant(2)
                                 : Tensor()](MakeContext& context) mutable -> std::unique_ptr<Executable> {
    if (code.between.stages) code.between.stages = code.between.stages->made(context);
    code.after.lay(context);
    code.stream = code.stream && code.after.out.step % 16 == 0 && code.second.outputs % 16 == 0;
    code.parent = code.parent->made(code, context);
    const auto lanes = code.kernels->lanes;
    code.window_bias = depthwise::bias_by_vectors(bias, code.second.outputs, lanes, context.weights);
    code.window_weights =
        context.weights.packed(w, fmt::format("native_depthwise {}", lanes),
                               depthwise::size_by_vectors(code.second.taps(), code.second.outputs, lanes),
                               [&](const Tensor& weights) {
                                 return depthwise::by_vectors(aligned_once(weights).data<float>().data(),
                                                              code.second.taps(), code.second.outputs, lanes);
                               });
    return executable([code](const RunArgs& args) { conv_depthwise::run(code, args); });
  };
  return o;
}

/// All ways to make the tensor between, or none and a sentence in `why`.
conv_depthwise::Parents parents_of(const NodeView& first, std::string& why) {
  if (first.op<Convolution>()) return conv_depthwise::product_parents(first, why);
  if (first.op<BinaryConvolution>()) return conv_depthwise::binary_parents(first, why);
  why = fmt::format("a {} before", first.node().op.name());
  return {};
}

}  // namespace

void offer_native_conv_depthwise(const NodeView& v, Answers& answers) {
  const auto parts = decomposition_of(v.graph(), v.id());
  const NodeView first(parts.graph, parts.nodes.front(), v.machine()),
      second(parts.graph, parts.nodes.back(), v.machine());
  if (const auto verdict = takes(v, first, second, parts.graph); !verdict)
    return answers.refuse("native", "{}", verdict.reason());
  std::string why;
  const auto between = Epilogue::of(first, Layout::channels_last, why);
  const auto after = between ? Epilogue::of(v, Layout::channels_last, why) : std::nullopt;
  if (!after) return answers.refuse("native", "{}", why);
  if (!reads_nothing(first, *between))
    return answers.refuse("native", "the first convolution's epilogue reads a whole tensor");
  Pair code;
  code.machine = &v.machine();
  code.first = windows::geometry_of(first);
  code.second = windows::geometry_of(second);
  code.between = *between;
  code.after = *after;
  code.kernels = &depthwise::kernels_for(v.machine().isa(), code.second.outputs);
  code.kernel = depthwise::kernel_for(code.second, *code.kernels);
  const auto parents = parents_of(first, why);
  if (parents.empty()) return answers.refuse("native", "{}", why);
  for (const auto& parent : parents) {
    Pair c = code;
    c.parent = parent;
    c.stream = out_bytes(c) > stream_bytes(c);
    cut_columns(c, 1);
    parent->partition(c);  // one line at a time: what tells how to divide
    partition(c, cost_of(c).us());
    parent->partition(c);
    const auto buffer = c.buffer_bytes();
    if (buffer > most_buffer_bytes(c)) {
      answers.refuse("native", "{} lines between take {} KiB, wanted at most {}", c.capacity, buffer >> 10,
                     most_buffer_bytes(c) >> 10);
      continue;
    }
    answers.offers.push_back(offer_of(v, second, std::move(c)));
  }
}

}  // namespace lamina
