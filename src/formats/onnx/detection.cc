/// Boxes and regions.
#include "ops/detection.h"

#include <limits>

#include "formats/onnx/build.h"

namespace lamina::onnx {
namespace {

/// Absent: no boxes at all, no overlap allowed, any score.
Values convert_non_max_suppression(Call& c) {
  NonMaxSuppression op;
  op.box_encoding = c.flag("center_point_box") ? BoxEncoding::center : BoxEncoding::corner;
  op.sort_result_descending = false;
  const auto most = c.has(2) ? c.to_scalar(c.in(2)) : c.int_constant(0);
  const auto overlap = c.has(3) ? c.to_scalar(c.in(3)) : c.number(0, ElementType::f32);
  const auto score =
      c.has(4) ? c.to_scalar(c.in(4)) : c.number(std::numeric_limits<float>::lowest(), ElementType::f32);
  return {c.add(op, {c.in(0), c.in(1), most, overlap, score})};
}

Values convert_roi_align(Call& c) {
  ROIAlign op;
  op.pooled_h = c.i("output_height", 1);
  op.pooled_w = c.i("output_width", 1);
  op.sampling_ratio = c.i("sampling_ratio", 0);
  op.spatial_scale = c.f("spatial_scale", 1);
  const auto mode = c.s("mode", "avg");
  if (mode == "max")
    op.mode = RoiAlignMode::max_corner;
  else if (mode != "avg")
    c.fail("mode is \"{}\", wanted avg or max", mode);
  const auto shift =
      c.version() < 16 ? "output_half_pixel" : c.s("coordinate_transformation_mode", "half_pixel");
  if (shift == "half_pixel")
    op.aligned_mode = AlignedMode::half_pixel_for_nn;  // scales, then shifts
  else if (shift != "output_half_pixel")
    c.fail("coordinate_transformation_mode is \"{}\"", shift);
  return {c.add(op, {c.in(0), c.in(1), c.in(2)})};
}

Values convert_max_roi_pool(Call& c) {
  const auto size = c.ints("pooled_shape");
  if (size.size() != 2) c.fail("pooled_shape has {} values, wanted 2", size.size());
  ROIPooling op;
  op.pooled_h = size[0];
  op.pooled_w = size[1];
  op.spatial_scale = c.f("spatial_scale", 1);
  return {c.add(op, {c.in(0), c.in(1)})};
}

}  // namespace

void register_detection(ConverterTable& t) {
  t.add("MaxRoiPool", convert_max_roi_pool);
  t.add("NonMaxSuppression", convert_non_max_suppression);
  t.add("RoiAlign", convert_roi_align);
}

}  // namespace lamina::onnx
