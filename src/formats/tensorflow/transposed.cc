/// Conv2DBackpropInput and its kin: the sizes of the output are an input, from which the pads follow.
#include "formats/tensorflow/layout.h"
#include "graph/infer.h"
#include "ops/convolution.h"

namespace lamina::tensorflow {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 31;

/// The spatial sizes of the output, where known.
std::vector<Dim> wanted_sizes(const Call& c, const Layout& layout) {
  const auto sizes = dims_of_value(c.graph(), c.in(0));
  if (!sizes) return std::vector<Dim>(layout.spatial);
  if (sizes->size() == layout.spatial) return *sizes;
  if (sizes->size() != layout.rank())
    c.fail("has {} sizes of the output, wanted {}", sizes->size(), layout.rank());
  const auto first = sizes->begin() + static_cast<std::ptrdiff_t>(layout.first_spatial());
  return {first, first + static_cast<std::ptrdiff_t>(layout.spatial)};
}

std::int64_t bounded(const Call& c, const Dim& d) {
  if (d.size() < 0 || d.size() > kMostSize) c.fail("the size {} is out of range", d.size());
  return d.size();
}

/// Explicit pads for one axis: the smaller half begins; what the windows do not reach is added at the end.
void resolve_axis(const Call& c, ConvolutionBackpropData& op, std::size_t i, const Dim& in, const Dim& kernel,
                  const Dim& out) {
  const auto extent = (bounded(c, kernel) - 1) * op.dilations[i] + 1;
  const auto full = (bounded(c, in) - 1) * op.strides[i] + extent;
  auto total = full - bounded(c, out);
  if (op.auto_pad == AutoPad::explicit_) {
    total -= op.pads_begin[i] + op.pads_end[i];
    if (total > 0) c.fail("has pads for a larger output than {} on spatial axis {}", out.size(), i);
  } else if (op.auto_pad == AutoPad::valid && total > 0) {
    c.fail("has the size {} on spatial axis {}, wanted {} or more", out.size(), i, full);
  } else {
    op.pads_begin[i] = std::max<std::int64_t>(total, 0) / 2;
    op.pads_end[i] = std::max<std::int64_t>(total, 0) - op.pads_begin[i];
  }
  op.output_padding[i] = std::max<std::int64_t>(-total, 0);
  if (op.output_padding[i] >= std::max(op.strides[i], op.dilations[i]))
    c.fail("has the size {} on spatial axis {}, which {} windows of {} do not give", out.size(), i, in.size(),
           extent);
}

/// The sizes as input 3 of ConvolutionBackpropData.
ValueId sizes_value(Call& c, const Layout& layout) {
  const auto sizes = c.convert(c.in(0), ElementType::i64);
  const auto& shape = c.shape(sizes);
  if (shape.ranked() && shape.rank() == 1 && shape[0].is(static_cast<std::int64_t>(layout.spatial)))
    return sizes;
  const auto first = static_cast<std::int64_t>(layout.first_spatial());
  return c.part(sizes, first, first + static_cast<std::int64_t>(layout.spatial));
}

/// `weights`: I, O / groups, spatial...
Values transposed_convolution(Call& c, const Layout& layout, ValueId weights, std::int64_t groups) {
  ConvolutionBackpropData op;
  op.groups = groups;
  op.strides = read_spatial(c, layout, "strides", true);
  op.dilations = read_spatial(c, layout, "dilations", false);
  read_padding(c, layout, op);
  const auto x = to_channels_first(c, c.in(2), layout);
  const auto &in = c.shape(x), &kernel = c.shape(weights);
  if (in.ranked() && in.rank() != layout.rank())
    c.fail("the input is {}, wanted rank {}", to_string(in), layout.rank());
  const auto wanted = wanted_sizes(c, layout);
  bool known = in.ranked() && kernel.ranked();
  for (std::size_t i = 0; known && i < layout.spatial; ++i)
    known = in[i + 2].known() && kernel[i + 2].known() && wanted[i].known();
  if (!known) {
    if (op.auto_pad == AutoPad::explicit_) c.unsupported("explicit pads with sizes that are not known");
    // The smaller half of the pads is at the beginning.
    if (op.auto_pad == AutoPad::same_upper) op.auto_pad = AutoPad::same_lower;
    return {to_framework(c, c.add(op, {x, weights, ValueId{}, sizes_value(c, layout)}), layout)};
  }
  const bool given = op.auto_pad == AutoPad::explicit_;
  if (!given) op.pads_begin = op.pads_end = Ints(layout.spatial, 0);
  op.output_padding = Ints(layout.spatial, 0);
  for (std::size_t i = 0; i < layout.spatial; ++i)
    resolve_axis(c, op, i, in[i + 2], kernel[i + 2], wanted[i]);
  op.auto_pad = AutoPad::explicit_;
  return {to_framework(c, c.add(op, {x, weights}), layout)};
}

/// The filter is spatial..., O, I.
template <std::size_t kSpatial>
Values convert_backprop(Call& c) {
  const auto layout = read_layout(c, kSpatial);
  const auto n = static_cast<std::int64_t>(kSpatial);
  if (const auto& filter = c.shape(c.in(1)); filter.ranked() && filter.rank() != kSpatial + 2)
    c.fail("the filter is {}, wanted rank {}", to_string(filter), kSpatial + 2);
  Ints order{n + 1, n};
  for (std::int64_t i = 0; i < n; ++i) order.push_back(i);
  return transposed_convolution(c, layout, transposed_weights(c, c.in(1), order), 1);
}

/// The filter is [h, w, C, M]; the input has C * M channels, the output C.
Values convert_depthwise_backprop(Call& c) {
  const auto layout = read_layout(c, 2);
  const auto& filter = c.shape(c.in(1));
  if (!filter.known()) c.unsupported("a filter of unknown size");
  if (filter.rank() != 4) c.fail("the filter is {}, wanted rank 4", to_string(filter));
  const auto size = filter.sizes();
  if (size[2] < 1) c.fail("the filter is {}, wanted channels", to_string(filter));
  const auto w =
      c.reshape(transposed_weights(c, c.in(1), {2, 3, 0, 1}), {size[2] * size[3], 1, size[0], size[1]});
  return transposed_convolution(c, layout, w, size[2]);
}

}  // namespace

void register_transposed(ConverterTable& t) {
  t.add("Conv2DBackpropInput", convert_backprop<2>);
  t.add("Conv3DBackpropInputV2", convert_backprop<3>);
  t.add("DepthwiseConv2dNativeBackpropInput", convert_depthwise_backprop);
}

}  // namespace lamina::tensorflow
