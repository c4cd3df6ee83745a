/// Conv, ConvTranspose, DeformConv, ConvInteger, Col2Im.
#include "ops/convolution.h"

#include <algorithm>

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
  Values inputs{c.in(0), c.in(1), ValueId{}, c.maybe(2), c.maybe(3)};
  if (inputs[3].valid()) inputs[3] = to_scalar(c, inputs[3]);
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
  if (spatial_axes(c, c.in(0), c.in(1)) != 2) c.unsupported("only pictures are supported");
  DeformableConvolution op;
  read_window(c, op, 2);
  op.group = c.i("group", 1);
  op.deformable_group = c.i("offset_group", 1);
  op.bilinear_interpolation_pad = true;
  Values inputs{c.in(0), c.in(2), c.in(1)};
  if (c.has(4)) inputs.push_back(c.in(4));
  const auto y = c.add(op, std::move(inputs));
  return {c.has(3) ? add(c, y, reshape(c, c.in(3), Ints{1, -1, 1, 1})) : y};
}

constexpr std::int64_t kLargestBlock = 1 << 10;

/// The window's list attribute, `otherwise` for each axis when it is absent.
Ints window_list(const Call& c, const char* name, std::size_t size, std::int64_t otherwise) {
  auto values = c.ints(name, Ints(size, otherwise));
  if (values.size() != size) c.fail("{} has {} values, wanted {}", name, values.size(), size);
  for (auto v : values)
    if (v < otherwise || v >= 1 << 30) c.fail("{} has {}, wanted {} or more", name, v, otherwise);
  return values;
}

Ints known_sizes(const Call& c, std::size_t input, const char* what) {
  const auto values = c.known_ints(c.in(input));
  if (!values) c.unsupported("a {} that is computed", what);
  for (auto v : *values)
    if (v < 1 || v >= 1 << 30) c.fail("{} has {}, wanted 1 or more", what, v);
  return *values;
}

/// One kernel for each place of a block, which is 1 there: [channels * block, 1, block...].
Tensor block_kernels(std::int64_t channels, const Ints& block, ElementType type) {
  const auto size = static_cast<std::int64_t>(element_count(block));
  std::vector<double> w(static_cast<std::size_t>(channels * size * size));
  for (std::int64_t i = 0; i < channels * size; ++i) w[static_cast<std::size_t>(i * size + i % size)] = 1;
  Ints dims{channels * size, 1};
  dims.insert(dims.end(), block.begin(), block.end());
  return from_doubles(type, dims, w);
}

/// Blocks as columns, added up where they overlap: a transposed convolution of each channel by itself.
Values convert_col2im(Call& c) {
  const auto x = c.in(0);
  const auto type = c.known_element(x);
  if (!is_float(type)) c.unsupported("elements of type {}", name_of(type));
  const auto image = known_sizes(c, 1, "image_shape"), block = known_sizes(c, 2, "block_shape");
  const auto spatial = image.size();
  if (block.size() != spatial) c.fail("image_shape has {} values, block_shape {}", spatial, block.size());
  if (spatial < 1 || spatial > 3) c.unsupported("pictures with {} axes", spatial);
  std::int64_t size = 1;
  for (auto b : block)
    if ((size *= b) > kLargestBlock) c.unsupported("blocks of more than {} elements", kLargestBlock);
  const auto shape = c.type(x).shape;
  if (c.known_rank(x) != 3) c.fail("the input has rank {}, wanted 3", c.known_rank(x));
  if (!shape[1].known()) c.unsupported("an unknown number of channels");
  if (shape[1].size() < size || shape[1].size() % size != 0)
    c.fail("{} channels for blocks of {}", shape[1].size(), size);
  const auto channels = shape[1].size() / size;
  if (shape[1].size() > 1 << 20) c.unsupported("{} channels", shape[1].size());
  spend(c, shape[1].size() * size);

  ConvolutionBackpropData op;
  op.groups = channels;
  op.strides = window_list(c, "strides", spatial, 1);
  op.dilations = window_list(c, "dilations", spatial, 1);
  const auto pads = window_list(c, "pads", 2 * spatial, 0);
  Ints columns{0, shape[1].size()};
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < spatial; ++i) {
    op.pads_begin.push_back(pads[i]);
    op.pads_end.push_back(pads[spatial + i]);
    const auto room = image[i] + pads[i] + pads[spatial + i] - op.dilations[i] * (block[i] - 1) - 1;
    if (room < 0) c.fail("axis {} of the padded picture is smaller than a block", i);
    op.output_padding.push_back(room % op.strides[i]);
    columns.push_back(room / op.strides[i] + 1);
    if (columns.back() > (std::int64_t{1} << 40) / blocks) c.fail("the picture is too large");
    blocks *= columns.back();
  }
  if (!shape[2].fits(Dim(blocks))) c.fail("has {} blocks, wanted {}", to_string(shape[2]), blocks);
  const auto grid = c.add(Reshape{true}, {x, c.ints_constant(columns)});
  return {c.add(op, {grid, c.constant(block_kernels(channels, block, type))})};
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
