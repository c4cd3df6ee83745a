// Convolutions, poolings and resizing: what differs between revisions, and between IR's vocabulary and
// lamina's.
#include <algorithm>

#include "formats/col2im.h"
#include "formats/ir/converters.h"
#include "formats/ir/text.h"

namespace lamina::ir {
namespace {

/// [g, a, b, ...] -> [g*a, b, ...]: weights of a group convolution as lamina has them.
ValueId merged_weights(LayerContext& c) {
  const ValueId weights = c.in(1);
  const Shape shape = c.shape(1);
  c.require(shape.known(), "weights of the unknown shape {}", to_string(shape));
  c.require(shape.rank() >= 4, "weights have the shape {}, wanted [groups, ...] of at least 4 dimensions",
            to_string(shape));
  const Dims sizes = shape.sizes();
  c.require(sizes[0] > 0, "weights have the shape {}, wanted at least one group", to_string(shape));
  Dims merged(sizes.begin() + 1, sizes.end());
  c.require(!__builtin_mul_overflow(sizes[0], sizes[1], &merged[0]), "weights have the shape {}",
            to_string(shape));
  if (const Tensor* tensor = c.graph().constant(weights))
    return c.constant(tensor->reshaped(merged), "weights");
  const ValueId pattern = c.constant(Ints(merged.begin(), merged.end()), "weights_shape");
  return c.add(c.plain_op("Reshape"), {weights, pattern}, "weights");
}

std::int64_t groups(LayerContext& c) { return c.shape(1)[0].size(); }

void group_convolution(LayerContext& c) {
  c.want_inputs(2, 2);
  const ValueId weights = merged_weights(c);
  c.finish(c.op("Convolution", {{"groups", groups(c)}}), {c.in(0), weights});
}

void convolution(LayerContext& c) {
  c.want_inputs(2, 2);
  c.finish(c.op("Convolution"), c.all_inputs());
}

/// Input 2 is the output's spatial shape; lamina has the bias there.
void finish_backprop(LayerContext& c, Op op, ValueId weights) {
  c.want_inputs(2, 3);
  std::vector<ValueId> inputs = {c.in(0), weights};
  if (c.inputs() == 3) inputs.insert(inputs.end(), {ValueId(), c.in(2)});
  c.finish(std::move(op), std::move(inputs));
}

void convolution_backprop(LayerContext& c) { finish_backprop(c, c.op("ConvolutionBackpropData"), c.in(1)); }

void group_convolution_backprop(LayerContext& c) {
  const ValueId weights = merged_weights(c);
  finish_backprop(c, c.op("ConvolutionBackpropData", {{"groups", groups(c)}}), weights);
}

/// The weights of a BinaryConvolution are packed low bit first, unlike all other u1 constants.
void binary_convolution(LayerContext& c) {
  c.want_inputs(2, 2);
  Op op = c.op("BinaryConvolution");
  Tensor bits = c.builder().low_first_bits(c.layer().feeds[1]);
  const ValueId weights = bits.valid() ? c.constant(std::move(bits), "weights") : c.in(1);
  c.finish(std::move(op), {c.in(0), weights});
}

/// The indices are an output of their own from opset8 on, mostly unread.
void max_pool(LayerContext& c) {
  c.want_inputs(1, 1);
  const std::size_t ports = c.layer().outputs.size();
  c.require(ports == 1 || ports == 2, "has {} outputs, wanted 1 or 2", ports);
  Op op = c.op("MaxPool");
  const bool indices = c.used_outputs() > 1;
  Strings names = {output_name(c.layer(), 0)};
  if (indices) names.push_back(output_name(c.layer(), 1));
  const NodeId node =
      c.graph().add_node(std::move(op), c.all_inputs(), c.layer().name, indices ? 2 : 1, {}, names);
  const std::vector<ValueId> made = c.graph().node(node).outputs;
  for (std::size_t i = 0; i < made.size(); ++i) c.set_output(i, made[i]);
}

/// One number stands for all axes that are resized.
Ints spread_pads(LayerContext& c, const char* name, const Ints& axes) {
  Ints given = c.integers(name);
  if (given.size() != 1) return given;
  Ints out(c.rank(0), 0);
  for (const auto axis : axes) out[normalize_axis(axis, out.size(), "axis")] = given.front();
  return out;
}

bool none(const Ints& pads) {
  return std::all_of(pads.begin(), pads.end(), [](auto p) { return p == 0; });
}

/// Pictures [N, C, H, W], resized along their last two axes.
bool are_pictures(std::size_t rank, Ints axes) {
  std::sort(axes.begin(), axes.end());
  return rank == 4 && axes == Ints{2, 3};
}

/// Interpolate-0: axes are an attribute, and the formulas are those of Interpolate-4 with these modes.
void interpolate_0(LayerContext& c) {
  c.want_inputs(2, 2);
  const std::string mode = lower(c.text("mode"));
  const bool antialias = c.boolean("antialias", false);
  const Ints axes = c.integers("axes");
  c.require(!axes.empty(), "axes are missing");
  std::string new_mode = mode;
  if (mode == "linear" && !antialias && c.rank(0) < 5)
    new_mode = "linear_onnx";
  else if (mode == "area")
    throw NotSupported{"mode area"};
  const Ints pads_begin = spread_pads(c, "pads_begin", axes), pads_end = spread_pads(c, "pads_end", axes);
  const bool linear = mode == "linear" || mode == "linear_onnx";
  std::string coordinates = "asymmetric";
  if (c.boolean("align_corners", true))
    coordinates = "align_corners";
  else if (linear && none(pads_begin) && none(pads_end) && !are_pictures(c.rank(0), axes))
    coordinates = "half_pixel";
  Op op = c.op("Interpolate", {{"mode", new_mode},
                               {"shape_calculation_mode", std::string("sizes")},
                               {"nearest_mode", std::string("simple")},
                               {"coordinate_transformation_mode", coordinates},
                               {"antialias", antialias},
                               {"pads_begin", pads_begin},
                               {"pads_end", pads_end}});
  c.finish(std::move(op), {c.in(0), c.in(1), c.constant(axes, "axes")});
}

/// Only `linear` widens its filter when shrinking; ONNX's operator does so in its modes, too.
Op interpolation(LayerContext& c) {
  if (lower(c.text("mode")) == "linear") return c.op("Interpolate");
  return c.op("Interpolate", {{"antialias", false}});
}

void interpolate(LayerContext& c) {
  if (c.opset() < 4) return interpolate_0(c);
  Op op = interpolation(c);
  if (c.opset() >= 11) {
    c.want_inputs(2, 3);
    return c.finish(std::move(op), c.all_inputs());
  }
  c.want_inputs(3, 4);  // both sizes and scales, one of them read
  const bool by_scales = lower(c.text("shape_calculation_mode")) == "scales";
  std::vector<ValueId> inputs = {c.in(0), c.in(by_scales ? 2 : 1)};
  if (c.inputs() == 4) inputs.push_back(c.in(3));
  c.finish(std::move(op), std::move(inputs));
}

Ints sizes_of(LayerContext& c, std::size_t input, const char* what) {
  const auto sizes = c.constant_ints(input);
  if (!sizes) throw NotSupported{fmt::format("{} that is computed", what)};
  return *sizes;
}

/// The columns [N, ...], or of one picture without the axis N.
void col2im(LayerContext& c) {
  c.want_inputs(3, 3);
  Col2Im of;
  of.image = sizes_of(c, 1, "an output_size");
  of.block = sizes_of(c, 2, "a kernel_size");
  const auto list = [&](const char* name, std::int64_t value) {
    return c.has(name) ? c.integers(name) : Ints(of.image.size(), value);
  };
  of.strides = list("strides", 1);
  of.dilations = list("dilations", 1);
  of.pads_begin = list("pads_begin", 0);
  of.pads_end = list("pads_end", 0);
  const bool batched = c.rank(0) != 2;
  TensorType type = c.type(0);
  if (!batched) type.shape = Shape{Dim(1), type.shape[0], type.shape[1]};
  const std::string fault = of.fault(type);
  c.require(fault.empty(), "{}", fault);
  if (const std::string why = of.beyond(type); !why.empty()) throw NotSupported{why};
  const std::int64_t columns = type.shape[1].size(), channels = columns / of.block_size();
  if ((c.reading().constants_budget -= columns * of.block_size()) < 0)
    throw NotSupported{"constants of such a size"};
  Ints grid = of.grid(), image = of.image;
  grid.insert(grid.begin(), {batched ? 0 : 1, columns});
  image.insert(image.begin(), channels);
  const Op reshape = c.plain_op("Reshape", {{"special_zero", true}});
  const ValueId blocks = c.add(reshape, {c.in(0), c.constant(grid, "grid")}, "blocks");
  const ValueId kernels = c.constant(of.kernels(channels, type.element), "kernels");
  if (batched) return c.finish(of.convolution(channels), {blocks, kernels});
  const ValueId picture = c.add(of.convolution(channels), {blocks, kernels}, "picture");
  c.finish(reshape, {picture, c.constant(image, "image")});
}

}  // namespace

void register_windows(ConverterTable& t) {
  t.add("Convolution", convolution);
  t.add("GroupConvolution", group_convolution);
  t.add("ConvolutionBackpropData", convolution_backprop);
  t.add("GroupConvolutionBackpropData", group_convolution_backprop);
  t.add("BinaryConvolution", binary_convolution);
  t.add("MaxPool", max_pool);
  t.add("Col2Im", col2im);
  t.add("Interpolate", interpolate);
}

}  // namespace lamina::ir
