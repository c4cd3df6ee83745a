// Convolutions and poolings. Where an automatic padding or rounding leaves open how many windows there are,
// the sizes of the file's ports say it.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/work_partition.h"
#include "formats/ir/legacy/lowering.h"
#include "formats/ir/text.h"
#include "ops/convolution.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/pooling.h"
#include "ops/require.h"

namespace lamina::ir::legacy {
namespace {

/// The attributes that windows share, an element per spatial axis.
struct Geometry {
  Ints kernel, strides, dilations, pads_begin, pads_end;
  AutoPad auto_pad = AutoPad::explicit_;
  std::size_t axes() const { return kernel.size(); }
  std::int64_t extent(std::size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  template <class Op>
  void give(Op& op) const {
    op.strides = strides;
    op.dilations = dilations;
    op.pads_begin = pads_begin;
    op.pads_end = pads_end;
    op.auto_pad = auto_pad;
  }
};

/// A list for the spatial axes with numbers of at least `low`; `fallback` when it is missing.
Ints axis_list(Lowering& c, const char* name, const Ints& fallback, std::int64_t low) {
  Ints given = c.has(name) ? c.integers(name) : Ints();
  if (given.empty()) return fallback;
  c.require(given.size() == fallback.size(), "{} has {} elements, wanted {}", name, given.size(),
            fallback.size());
  for (const auto item : given)
    c.require(item >= low && item <= 1 << 20, "{} contains {}, wanted {} to 2^20", name, item, low);
  return given;
}

/// Version 2: an attribute for x and one for y.
Ints pair_list(Lowering& c, const char* x, const char* y, const Ints& fallback, std::int64_t low) {
  Ints out = {c.integer(y, fallback[0]), c.integer(x, fallback[1])};
  for (const auto item : out)
    c.require(item >= low && item <= 1 << 20, "{} or {} is {}, wanted {} to 2^20", x, y, item, low);
  return out;
}

/// Strides and dilations of 0 meant 1 in version 2.
void zeros_are_ones(Ints& list) { std::replace(list.begin(), list.end(), std::int64_t{0}, std::int64_t{1}); }

AutoPad auto_pad(Lowering& c) {
  const std::string word = c.word("auto_pad");
  if (word.empty() || word == "explicit" || word == "notset") return AutoPad::explicit_;
  if (word == "valid") return AutoPad::valid;
  if (word == "same_upper") return AutoPad::same_upper;
  c.require(word == "same_lower", "auto_pad=\"{}\", wanted explicit, valid, same_upper or same_lower",
            word.substr(0, 80));
  return AutoPad::same_lower;
}

Geometry geometry(Lowering& c, bool dilated) {
  c.require(c.rank(0) >= 3, "input 0 has the shape {}, wanted [N, C, ...]", to_string(c.shape(0)));
  const std::size_t axes = c.rank(0) - 2;
  const Ints ones(axes, 1), zeros(axes, 0);
  Geometry g;
  g.auto_pad = auto_pad(c);
  g.dilations = ones;
  if (!c.integers("kernel").empty()) {
    g.kernel = axis_list(c, "kernel", ones, 1);
    g.strides = axis_list(c, "strides", ones, 1);
    if (dilated) g.dilations = axis_list(c, "dilations", ones, 0);
    g.pads_begin = axis_list(c, "pads_begin", zeros, 0);
    g.pads_end = axis_list(c, "pads_end", g.pads_begin, 0);
  } else {
    c.require(c.has("kernel-x") && c.has("kernel-y"), "kernel is missing");
    c.require(axes == 2, "kernel-x and kernel-y for an input of {}", to_string(c.shape(0)));
    g.kernel = pair_list(c, "kernel-x", "kernel-y", ones, 1);
    g.strides = pair_list(c, "stride-x", "stride-y", ones, 0);
    if (dilated) g.dilations = pair_list(c, "dilation-x", "dilation-y", ones, 0);
    g.pads_begin = pair_list(c, "pad-x", "pad-y", zeros, 0);
    g.pads_end = pair_list(c, "pad-r", "pad-b", g.pads_begin, 0);
    zeros_are_ones(g.strides);
  }
  zeros_are_ones(g.dilations);
  return g;
}

void split_padding(Geometry& g, std::size_t axis, std::int64_t total) {
  const std::int64_t less = total / 2, more = total - less;
  const bool upper = g.auto_pad == AutoPad::same_upper;
  g.pads_begin[axis] = upper ? less : more;
  g.pads_end[axis] = upper ? more : less;
}

/// The axes whose outputs are rounded down. Old versions of the Inference Engine did so for same_lower, later
/// ones rounded up: the file's sizes tell which it was. An axis whose sizes do not tell is rounded down if
/// another one is.
std::vector<bool> rounded_down(Lowering& c, const Geometry& g) {
  std::vector<std::optional<bool>> told(g.axes());
  for (std::size_t i = 0; i < g.axes(); ++i) {
    const auto file = c.declared_sizes(i + 2);
    if (!file) continue;
    const std::int64_t floor = file->in / g.strides[i], ceil = ceil_div(file->in, g.strides[i]);
    c.require(file->out == floor || file->out == ceil,
              "an output of {} along axis {} from an input of {} with stride {} and automatic padding",
              file->out, i + 2, file->in, g.strides[i]);
    if (floor != ceil) told[i] = file->out == floor;
  }
  const bool any = std::find(told.begin(), told.end(), true) != told.end();
  std::vector<bool> out;
  for (const auto& axis : told) out.push_back(axis.value_or(any));
  return out;
}

/// Where outputs are rounded down, the first windows are those of the number rounded up, and the last one is
/// left out. The end padding is then exact, and negative where pixels behind the last window are in no
/// window.
void make_same_explicit(Lowering& c, Geometry& g) {
  if (g.auto_pad == AutoPad::explicit_) return;
  g.pads_begin.assign(g.axes(), 0);
  g.pads_end.assign(g.axes(), 0);
  if (g.auto_pad == AutoPad::valid) return;
  const auto down = rounded_down(c, g);
  if (std::find(down.begin(), down.end(), true) == down.end()) return;
  for (std::size_t i = 0; i < g.axes(); ++i) {
    const std::int64_t in = c.known_size(0, i + 2), stride = g.strides[i], all = ceil_div(in, stride);
    split_padding(g, i, std::max<std::int64_t>((all - 1) * stride + g.extent(i) - in, 0));
    if (!down[i]) continue;
    const std::int64_t out = in / stride;
    c.require(out > 0, "a stride of {} and automatic padding give no output from an input of {}", stride, in);
    g.pads_end[i] = (out - 1) * stride + g.extent(i) - in - g.pads_begin[i];
  }
  g.auto_pad = AutoPad::explicit_;
}

/// The input as f32, without the pixels that negative end paddings take away.
ValueId picture(Lowering& c, Geometry& g) {
  Ints taken;
  for (auto& end : g.pads_end) {
    taken.push_back(std::max<std::int64_t>(-end, 0));
    end = std::max<std::int64_t>(end, 0);
  }
  return c.cropped(c.real(0), Ints(taken.size(), 0), taken);
}

std::int64_t known_channels(Lowering& c) {
  c.require(c.shape(0)[1].known(), "input 0 has the shape {}, wanted known channels", to_string(c.shape(0)));
  return c.shape(0)[1].size();
}

/// [a, b, kernel...]
Dims weights_shape(std::int64_t a, std::int64_t b, const Geometry& g) {
  Dims out = {a, b};
  out.insert(out.end(), g.kernel.begin(), g.kernel.end());
  return out;
}

/// Input `i` with these sizes, or the blob when there is no such input.
ValueId operand(Lowering& c, std::size_t i, const char* name, const Dims& dims) {
  if (c.inputs() <= i) return c.blob(name, dims);
  const ValueId value = c.real(i);
  if (c.shape(i).known() && c.sizes(i) == dims) return value;
  return c.reshaped(value, Ints(dims.begin(), dims.end()), name);
}

ValueId biases(Lowering& c, std::size_t i, std::int64_t count) {
  return c.inputs() > i || c.has_blob("biases") ? operand(c, i, "biases", {count}) : ValueId();
}

struct Channels {
  std::int64_t in = 0, out = 0, groups = 1;
};

Channels grouped(Lowering& c) {
  Channels n{known_channels(c), c.integer("output"), c.integer("group", 1)};
  c.require(n.groups >= 1 && n.in % n.groups == 0, "{} groups of {} input channels", n.groups, n.in);
  c.require(n.out >= 1 && n.out <= 1 << 30 && n.out % n.groups == 0, "{} groups of {} output channels",
            n.groups, n.out);
  return n;
}

void convolution(Lowering& c) {
  c.want_inputs(1, 3);
  Geometry g = geometry(c, true);
  const Channels n = grouped(c);
  make_same_explicit(c, g);
  const ValueId x = picture(c, g);
  Convolution op;
  g.give(op);
  op.groups = n.groups;
  std::vector<ValueId> inputs = {x, operand(c, 1, "weights", weights_shape(n.out, n.in / n.groups, g))};
  if (const ValueId bias = biases(c, 2, n.out); bias.valid()) inputs.push_back(bias);
  c.finish(op, inputs);
}

/// Automatic paddings of a transposed convolution: what its full result has too much.
void make_transposed_explicit(Lowering& c, Geometry& g, Ints& output_padding) {
  output_padding.assign(g.axes(), 0);
  if (g.auto_pad == AutoPad::explicit_) return;
  for (std::size_t i = 0; i < g.axes(); ++i) {
    g.pads_begin[i] = g.pads_end[i] = 0;
    if (g.auto_pad == AutoPad::valid) continue;
    const std::int64_t in = c.known_size(0, i + 2), full = g.strides[i] * (in - 1) + g.extent(i);
    const auto file = c.declared_sizes(i + 2);
    const std::int64_t more = file ? file->out - file->in * g.strides[i] : 0;
    const std::int64_t out = in * g.strides[i] + more;
    if (out <= full)
      split_padding(g, i, full - out);
    else
      output_padding[i] = std::min(out - full, g.strides[i] - 1);
  }
  g.auto_pad = AutoPad::explicit_;
}

void deconvolution(Lowering& c) {
  c.want_inputs(1, 3);
  Geometry g = geometry(c, true);
  const Channels n = grouped(c);
  ConvolutionBackpropData op;
  make_transposed_explicit(c, g, op.output_padding);
  g.give(op);
  op.groups = n.groups;
  std::vector<ValueId> inputs = {c.real(0),
                                 operand(c, 1, "weights", weights_shape(n.in, n.out / n.groups, g))};
  if (const ValueId bias = biases(c, 2, n.out); bias.valid()) inputs.push_back(bias);
  c.finish(op, inputs);
}

/// A bias for operators that have none of their own.
void finish_with_bias(Lowering& c, Op op, std::vector<ValueId> inputs, std::size_t bias_input,
                      std::int64_t count, std::size_t axes) {
  const ValueId bias = biases(c, bias_input, count);
  if (!bias.valid()) return c.finish(std::move(op), std::move(inputs));
  Ints pattern(axes + 1, 1);
  pattern[0] = count;
  const ValueId y = c.add(std::move(op), std::move(inputs), "without_bias");
  c.finish(Add{}, {y, c.reshaped(bias, pattern, "bias")});
}

void deformable_convolution(Lowering& c) {
  c.want_inputs(2, 4);
  Geometry g = geometry(c, true);
  const Channels n = grouped(c);
  make_same_explicit(c, g);
  for (const auto end : g.pads_end)  // taps may lie anywhere, so no pixels can be left out
    c.require(end >= 0, "automatic padding that leaves out {} pixels of {}", -end, to_string(c.shape(0)));
  DeformableConvolution op;
  g.give(op);
  op.group = n.groups;
  op.deformable_group = c.integer("deformable_group", c.integer("num_deformable_group", 1));
  const ValueId weights = operand(c, 2, "weights", weights_shape(n.out, n.in / n.groups, g));
  finish_with_bias(c, op, {c.real(0), c.real(1), weights}, 3, n.out, g.axes());
}

void binary_convolution(Lowering& c) {
  c.want_inputs(1, 1);
  Geometry g = geometry(c, true);
  const Channels n = grouped(c);
  make_same_explicit(c, g);
  const ValueId x = picture(c, g);
  const auto in = c.integer("input", n.in);
  c.require(in == n.in, "input=\"{}\", but the input has {} channels", in, n.in);
  const std::string mode = c.word("mode", "xnor-popcount");
  c.require(mode == "xnor-popcount", "mode=\"{}\", wanted xnor-popcount", mode.substr(0, 80));
  BinaryConvolution op;
  g.give(op);
  op.groups = n.groups;
  op.pad_value = c.number("pad_value", 0);
  const ValueId weights = c.constant(c.bits("weights", weights_shape(n.out, n.in / n.groups, g)), "weights");
  finish_with_bias(c, op, {x, weights}, 1, n.out, g.axes());
}

WindowRounding counting(RoundingType rounding) {
  return rounding == RoundingType::floor  ? WindowRounding::floor
         : rounding == RoundingType::ceil ? WindowRounding::ceil
                                          : WindowRounding::torch;
}

/// The rounding gives the file's sizes.
bool counts(Lowering& c, const Geometry& g, RoundingType rounding) {
  for (std::size_t i = 0; i < g.axes(); ++i)
    if (const auto file = c.declared_sizes(i + 2))
      if (!window_count(file->in, g.kernel[i], g.strides[i], 1, g.pads_begin[i], g.pads_end[i],
                        counting(rounding))
               .fits(file->out))
        return false;
  return true;
}

/// What is written, and without that up; a window beyond the picture is none. Poolings that the Model
/// Optimizer inserted say nothing and were rounded down.
RoundingType rounding(Lowering& c, const Geometry& g) {
  const std::string word = c.word("rounding_type", c.word("rounding-type", "ceil"));
  c.require(word == "floor" || word == "ceil", "rounding_type=\"{}\", wanted floor or ceil",
            word.substr(0, 80));
  const RoundingType written = word == "floor" ? RoundingType::floor : RoundingType::ceil_torch;
  if (g.auto_pad != AutoPad::explicit_) return RoundingType::floor;
  for (const auto type : {written, RoundingType::ceil_torch, RoundingType::floor, RoundingType::ceil})
    if (counts(c, g, type)) return type;
  return written;
}

void pooling(Lowering& c) {
  c.want_inputs(1, 1);
  Geometry g = geometry(c, false);
  const RoundingType type = rounding(c, g);
  make_same_explicit(c, g);
  const ValueId x = picture(c, g);
  const std::string method = c.word("pool-method", "max");
  c.require(method == "max" || method == "avg", "pool-method=\"{}\", wanted max or avg",
            method.substr(0, 80));
  if (method == "max") {
    MaxPool op;
    g.give(op);
    op.kernel = g.kernel;
    op.rounding_type = type;
    return c.finish(op, {x});
  }
  AvgPool op;
  g.give(op);
  op.kernel = g.kernel;
  op.rounding_type = type;
  op.exclude_pad = c.boolean("exclude-pad", false);
  c.finish(op, {x});
}

}  // namespace

void register_windows(LoweringTable& t) {
  t.add("Convolution", convolution);
  t.add("Deconvolution", deconvolution);
  t.add("DeformableConvolution", deformable_convolution);
  t.add("BinaryConvolution", binary_convolution);
  t.add("Pooling", pooling);
}

}  // namespace lamina::ir::legacy
