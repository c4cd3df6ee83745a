/// Resizing of pictures.
#include "ops/resize.h"

#include "formats/tensorflow/layout.h"
#include "formats/tensorflow/resampling.h"

namespace lamina::tensorflow {
namespace {

/// Pictures are NHWC; the sizes [height, width] are an input.
Values interpolate(Call& c, Interpolate op, ValueId x) {
  const Layout layout;
  op.shape_calculation_mode = ShapeCalculationMode::sizes;
  const auto known = c.known_ints(c.in(1));
  if (known && known->size() != 2) c.fail("has {} sizes, wanted 2", known->size());
  const auto sizes = known ? c.ints_constant(*known) : c.in(1);
  const auto y = c.add(op, {to_channels_first(c, x, layout), sizes, c.ints_constant({2, 3})});
  return {to_framework(c, y, layout)};
}

bool corners(const Call& c) {
  const bool corners = c.flag("align_corners");
  if (corners && c.flag("half_pixel_centers")) c.fail("has both align_corners and half_pixel_centers");
  return corners;
}

CoordinateMode coordinates(const Call& c) {
  if (corners(c)) return CoordinateMode::align_corners;
  return c.flag("half_pixel_centers") ? CoordinateMode::half_pixel : CoordinateMode::asymmetric;
}

/// The result is of f32, whatever the picture is.
Values convert_bilinear(Call& c) {
  Interpolate op;
  op.mode = InterpolateMode::linear_onnx;
  op.coordinate_transformation_mode = coordinates(c);
  return interpolate(c, op, c.convert(c.in(0), ElementType::f32));
}

/// Uses TensorFlow's own weights if sizes are known.
Values convert_bicubic(Call& c) {
  corners(c);
  const auto sizes = c.known_ints(c.in(1));
  if (const auto& shape = c.shape(c.in(0));
      sizes && shape.ranked() && shape.rank() == 4 && shape[1].known() && shape[2].known())
    return resize_bicubic(c);
  Interpolate op;
  op.mode = InterpolateMode::cubic;
  op.coordinate_transformation_mode = coordinates(c);
  const bool half = op.coordinate_transformation_mode == CoordinateMode::half_pixel;
  op.cube_coeff = half ? -0.5 : -0.75;
  op.exclude_outside = half;
  return interpolate(c, op, c.convert(c.in(0), ElementType::f32));
}

/// Coordinates are cut off, or with align_corners rounded.
Values convert_nearest(Call& c) {
  Interpolate op;
  op.mode = InterpolateMode::nearest;
  op.coordinate_transformation_mode = coordinates(c);
  op.nearest_mode = corners(c) ? NearestMode::round_prefer_ceil : NearestMode::floor;
  if (op.coordinate_transformation_mode == CoordinateMode::half_pixel)
    op.coordinate_transformation_mode = CoordinateMode::tf_half_pixel_for_nn;
  return interpolate(c, op, c.in(0));
}

}  // namespace

void register_resize(ConverterTable& t) {
  t.add("ResizeBicubic", convert_bicubic);
  t.add("ResizeBilinear", convert_bilinear);
  t.add("ResizeNearestNeighbor", convert_nearest);
}

}  // namespace lamina::tensorflow
