/// Conv2D, DepthwiseConv2dNative, Conv3D.
#include "ops/convolution.h"

#include "formats/tensorflow/layout.h"

namespace lamina::tensorflow {
namespace {

/// Weights are spatial..., I, O there; groups follow from the number of input channels.
std::int64_t groups_of(const Call& c, ValueId x, const Layout& layout, std::size_t spatial) {
  const auto &data = c.shape(x), &weights = c.shape(c.in(1));
  if (weights.ranked() && weights.rank() != spatial + 2)
    c.fail("the filter is {}, wanted rank {}", to_string(weights), spatial + 2);
  if (data.ranked() && data.rank() != layout.rank())
    c.fail("the input is {}, wanted rank {}", to_string(data), layout.rank());
  if (!data.ranked() || !weights.ranked()) return 1;
  const auto &channels = data[layout.channel_axis()], &wanted = weights[spatial];
  if (!channels.known() || !wanted.known() || wanted.size() == 0) return 1;
  if (channels.size() % wanted.size() != 0)
    c.fail("the input has {} channels, the filter {}", channels.size(), wanted.size());
  return std::max<std::int64_t>(channels.size() / wanted.size(), 1);
}

Ints weights_order(std::size_t spatial) {
  const auto n = static_cast<std::int64_t>(spatial);
  Ints order{n + 1, n};
  for (std::int64_t i = 0; i < n; ++i) order.push_back(i);
  return order;
}

Convolution window_of(const Call& c, const Layout& layout) {
  Convolution op;
  op.strides = read_spatial(c, layout, "strides", true);
  op.dilations = read_spatial(c, layout, "dilations", false);
  read_padding(c, layout, op);
  return op;
}

template <std::size_t kSpatial>
Values convert_conv(Call& c) {
  const auto layout = read_layout(c, kSpatial);
  auto op = window_of(c, layout);
  op.groups = groups_of(c, c.in(0), layout, kSpatial);
  const auto x = to_channels_first(c, c.in(0), layout);
  const auto w = transposed_weights(c, c.in(1), weights_order(kSpatial));
  return {to_framework(c, c.add(op, {x, w}), layout)};
}

/// The filter is [h, w, C, M]: channel c gives the channels c * M + m.
Values convert_depthwise(Call& c) {
  const auto layout = read_layout(c, 2);
  const auto& filter = c.shape(c.in(1));
  if (!filter.ranked() || !filter[filter.rank() - 1].known()) c.unsupported("a filter of unknown size");
  if (filter.rank() != 4) c.fail("the filter is {}, wanted rank 4", to_string(filter));
  if (!filter.known()) c.unsupported("a filter of unknown size");
  const auto size = filter.sizes();
  auto op = window_of(c, layout);
  op.groups = size[2];
  if (op.groups < 1) c.fail("the filter is {}, wanted channels", to_string(filter));
  const auto x = to_channels_first(c, c.in(0), layout);
  const auto w =
      c.reshape(transposed_weights(c, c.in(1), {2, 3, 0, 1}), {size[2] * size[3], 1, size[0], size[1]});
  return {to_framework(c, c.add(op, {x, w}), layout)};
}

}  // namespace

void register_convolution(ConverterTable& t) {
  t.add("Conv2D", convert_conv<2>);
  t.add("Conv3D", convert_conv<3>);
  t.add("DepthwiseConv2dNative", convert_depthwise);
}

}  // namespace lamina::tensorflow
