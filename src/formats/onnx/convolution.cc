/// Conv, ConvTranspose, DeformConv, ConvInteger, Col2Im.
#include "ops/convolution.h"

#include "formats/col2im.h"
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/window.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// Number of spatial axes, from the weights, the input or kernel_shape; checks that kernel_shape agrees with
/// the weights.
std::size_t spatial_axes(const Call& c, ValueId x, ValueId w) {
  const auto kernel = read_kernel(c);
  auto rank = c.rank(w);
  if (!rank) rank = c.rank(x);
  if (!rank && !kernel.empty()) rank = kernel.size() + 2;
  if (!rank) c.unsupported("the rank of \"{}\" is not known", c.graph().value(x).name);
  if (*rank < 3) c.fail("weights or input have rank {}, wanted 3 or more", *rank);
  if (!kernel.empty() && kernel.size() != *rank - 2)
    c.fail("kernel_shape has {} values, wanted {}", kernel.size(), *rank - 2);
  const auto& shape = c.type(w).shape;
  for (std::size_t i = 0; shape.ranked() && i < kernel.size(); ++i)
    if (!shape[i + 2].fits(Dim(kernel[i])))
      c.fail("kernel_shape has {} on axis {}, the weights are {}", kernel[i], i, to_string(shape));
  return *rank - 2;
}

Values convert_conv(Call& c) {
  return {c.add(read_convolution(c, c.in(0), c.in(1)),
                c.has(2) ? Values{c.in(0), c.in(1), c.in(2)} : Values{c.in(0), c.in(1)})};
}

/// A zero point of the weights is a scalar or [O].
Values convert_conv_integer(Call& c) {
  require_same_type(c, 2, 0);
  require_same_type(c, 3, 1);
  Values inputs{c.in(0), c.in(1), ValueId{}, c.maybe(2), c.maybe(3)};
  if (inputs[3].valid()) inputs[3] = c.to_scalar(inputs[3]);
  while (!inputs.back().valid()) inputs.pop_back();
  return {c.add(read_convolution(c, c.in(0), c.in(1)), std::move(inputs))};
}

/// Explicit pads, and more output padding where pads would be negative, for an output of `wanted`.
void pad_for(ConvolutionBackpropData& op, std::size_t axis, std::int64_t total, bool more_at_end) {
  if (total < 0) {
    op.output_padding[axis] -= total;
    total = 0;
  }
  const auto half = total / 2;
  op.pads_begin[axis] = more_at_end ? half : total - half;
  op.pads_end[axis] = total - op.pads_begin[axis];
}

/// A size or pad small enough to compute with.
std::int64_t bounded(const Call& c, std::int64_t v) {
  if (v <= -(std::int64_t{1} << 30) || v >= (std::int64_t{1} << 30))
    c.fail("the size or pad {} is out of range", v);
  return v;
}

/// auto_pad and output_shape become explicit pads.
void resolve_pads(const Call& c, ConvolutionBackpropData& op, std::size_t spatial) {
  const auto& w = c.type(c.in(1)).shape;
  const auto& x = c.type(c.in(0)).shape;
  auto wanted = c.ints("output_shape");
  if (wanted.size() == spatial + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);  // some exporters give all axes
  if (!wanted.empty() && wanted.size() != spatial)
    c.fail("output_shape has {} values, wanted {}", wanted.size(), spatial);
  const bool same = op.auto_pad == AutoPad::same_upper || op.auto_pad == AutoPad::same_lower;
  const bool more_at_end = op.auto_pad == AutoPad::same_upper;
  if (!same && wanted.empty()) return;
  op.auto_pad = AutoPad::explicit_;
  op.pads_begin.assign(spatial, 0);
  op.pads_end.assign(spatial, 0);
  op.output_padding.resize(spatial, 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    if (!w.ranked() || !w[i + 2].known()) c.unsupported("auto_pad with weights of unknown size");
    const auto stride = op.strides.empty() ? 1 : bounded(c, op.strides[i]);
    const auto dilation = op.dilations.empty() ? 1 : bounded(c, op.dilations[i]);
    const auto extent = (bounded(c, w[i + 2].size()) - 1) * dilation + 1 + bounded(c, op.output_padding[i]);
    if (wanted.empty()) {
      pad_for(op, i, extent - stride, more_at_end);  // (in - 1) * stride + extent - in * stride
    } else {
      if (!x.ranked() || !x[i + 2].known()) c.unsupported("output_shape with an input of unknown size");
      pad_for(op, i, (bounded(c, x[i + 2].size()) - 1) * stride + extent - bounded(c, wanted[i]),
              more_at_end);
    }
  }
}

Values convert_conv_transpose(Call& c) {
  const auto spatial = spatial_axes(c, c.in(0), c.in(1));
  if (const auto rank = c.rank(c.in(0)); rank && *rank != spatial + 2)
    c.fail("input has rank {}, weights {}", *rank, spatial + 2);
  ConvolutionBackpropData op;
  read_window(c, op, spatial);
  op.groups = c.i("group", 1);
  op.output_padding = c.ints("output_padding");
  if (!op.output_padding.empty() && op.output_padding.size() != spatial)
    c.fail("output_padding has {} values, wanted {}", op.output_padding.size(), spatial);
  resolve_pads(c, op, spatial);
  return {c.add(op, c.has(2) ? Values{c.in(0), c.in(1), c.in(2)} : Values{c.in(0), c.in(1)})};
}

Values convert_deform_conv(Call& c) {
  if (spatial_axes(c, c.in(0), c.in(1)) != 2) c.unsupported("only 2-D images are supported");
  DeformableConvolution op;
  read_window(c, op, 2);
  op.group = c.i("group", 1);
  op.deformable_group = c.i("offset_group", 1);
  op.bilinear_interpolation_pad = true;
  Values inputs{c.in(0), c.in(2), c.in(1)};
  if (c.has(4)) inputs.push_back(c.in(4));
  const auto y = c.add(op, std::move(inputs));
  return {c.has(3) ? add(c, y, c.reshape(c.in(3), Ints{1, -1, 1, 1})) : y};
}

Ints known_sizes(const Call& c, std::size_t input, const char* what) {
  const auto values = c.known_ints(c.in(input));
  if (!values) c.unsupported("a {} that is computed", what);
  return *values;
}

/// Blocks as columns, added up where they overlap (formats/col2im.h).
Values convert_col2im(Call& c) {
  const auto x = c.in(0);
  Col2Im of;
  of.image = known_sizes(c, 1, "image_shape");
  of.block = known_sizes(c, 2, "block_shape");
  const auto spatial = of.image.size();
  of.strides = c.ints("strides", Ints(spatial, 1));
  of.dilations = c.ints("dilations", Ints(spatial, 1));
  const auto pads = c.ints("pads", Ints(2 * spatial, 0));
  if (pads.size() != 2 * spatial) c.fail("pads has {} values, wanted {}", pads.size(), 2 * spatial);
  of.pads_begin.assign(pads.begin(), pads.begin() + std::ssize(of.image));
  of.pads_end.assign(pads.begin() + std::ssize(of.image), pads.end());
  c.known_element(x);
  c.known_rank(x);
  if (const auto why = of.fault(c.type(x)); !why.empty()) c.fail("{}", why);
  if (const auto why = of.beyond(c.type(x)); !why.empty()) c.unsupported("{}", why);
  const auto columns = c.type(x).shape[1].size();
  spend(c, columns * of.block_size());
  auto grid = of.grid();
  grid.insert(grid.begin(), {0, columns});
  const auto blocks = c.add(Reshape{true}, {x, c.ints_constant(grid)});
  const auto channels = columns / of.block_size();
  return {c.add(of.convolution(channels), {blocks, c.constant(of.kernels(channels, c.known_element(x)))})};
}

}  // namespace

Convolution read_convolution(const Call& c, ValueId x, ValueId w) {
  Convolution op;
  read_window(c, op, spatial_axes(c, x, w));
  op.groups = c.i("group", 1);
  return op;
}

void register_convolution(ConverterTable& t) {
  t.add("Col2Im", convert_col2im);
  t.add("Conv", convert_conv);
  t.add("ConvInteger", convert_conv_integer);
  t.add("ConvTranspose", convert_conv_transpose);
  t.add("DeformConv", convert_deform_conv);
}

}  // namespace lamina::onnx
