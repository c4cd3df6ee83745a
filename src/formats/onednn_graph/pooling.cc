/// Poolings, and pictures of other sizes.
#include "ops/pooling.h"

#include <cmath>

#include "formats/onednn_graph/call.h"
#include "ops/resize.h"

namespace lamina::onednn_graph {
namespace {

/// A last window that is not full reaches into padding that is there for it alone.
void round_up(Window& w, const Ints& kernel, const Shape& x) {
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (!x[i + 2].known() || w.pads_begin.empty()) continue;
    const auto extent = (kernel[i] - 1) * w.dilations[i] + 1;
    const auto over = x[i + 2].size() + w.pads_begin[i] + w.pads_end[i] - extent;
    if (over > 0 && over % w.strides[i] != 0) w.pads_end[i] += w.strides[i] - over % w.strides[i];
  }
}

template <class O>
O pooling(const Call& c, ValueId& x) {
  x = c.to_channels_first(c.in(0));
  O op;
  const auto spatial = c.spatial_axes(x);
  static_cast<Window&>(op) = c.window(spatial);
  op.kernel = c.spatial_list("kernel", spatial, 1);
  x = c.without_negative_pads(x, op);
  if (c.choice("rounding_type", "floor", {"floor", "ceil"}) == 1) {
    op.rounding_type = RoundingType::ceil;
    round_up(op, op.kernel, c.shape(x));
  }
  return op;
}

Values convert_max_pool(const Call& c) {
  ValueId x;
  auto op = pooling<MaxPool>(c, x);
  return {c.to_framework(c.add(op, {x}))};
}

Values convert_avg_pool(const Call& c) {
  ValueId x;
  auto op = pooling<AvgPool>(c, x);
  op.exclude_pad = c.flag("exclude_pad", false);
  if (op.rounding_type == RoundingType::ceil && !op.exclude_pad)
    for (std::size_t i = 0; i < op.kernel.size(); ++i)
      if (!c.shape(x)[i + 2].known()) c.unsupported("rounding_type ceil for axes of unknown size");
  return {c.to_framework(c.add(op, {x}))};
}

/// Sizes of the result's spatial axes: as said, or by what they are multiplied with.
Ints wanted_sizes(const Call& c, ValueId x, std::size_t spatial) {
  if (c.has("sizes") && !c.ints("sizes").empty()) return c.spatial_list("sizes", spatial, 1);
  const auto scales = c.floats("scales");
  if (scales.size() != spatial)
    c.fail("attribute \"scales\" has {} numbers, wanted {}", scales.size(), spatial);
  Ints sizes;
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto& size = c.shape(x)[i + 2];
    if (!size.known()) c.unsupported("scales for axes of unknown size");
    const auto wanted = std::floor(static_cast<float>(size.size()) * static_cast<float>(scales[i]));
    if (!(wanted >= 1) || wanted > 0x1p40F)
      c.fail("attribute \"scales\" makes {} of {}, wanted 1..2^40", wanted, size.size());
    sizes.push_back(static_cast<std::int64_t>(wanted));
  }
  return sizes;
}

Values convert_interpolate(const Call& c) {
  const auto x = c.to_channels_first(c.in(0));
  const auto spatial = c.spatial_axes(x);
  Interpolate op;
  op.mode = c.choice("mode", "", {"nearest", "linear", "bilinear", "trilinear"}) == 0
                ? InterpolateMode::nearest
                : InterpolateMode::linear_onnx;
  op.coordinate_transformation_mode =
      c.choice("coordinate_transformation_mode", "half_pixel", {"half_pixel", "align_corners"}) == 1
          ? CoordinateMode::align_corners
          : CoordinateMode::half_pixel;
  op.nearest_mode = NearestMode::round_prefer_ceil;
  const auto sizes =
      c.has(1) ? c.convert(c.in(1), ElementType::i64) : c.ints_constant(wanted_sizes(c, x, spatial));
  Ints axes;
  for (std::size_t i = 0; i < spatial; ++i) axes.push_back(static_cast<std::int64_t>(i + 2));
  return {c.to_framework(c.add(op, {x, sizes, c.ints_constant(axes)}))};
}

}  // namespace

void register_pooling(ConverterTable& t) {
  t.add("AvgPool", convert_avg_pool);
  t.add("Interpolate", convert_interpolate);
  t.add("MaxPool", convert_max_pool);
}

}  // namespace lamina::onednn_graph
