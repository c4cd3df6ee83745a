#pragma once
/// Resizing of pictures.
#include "ops/eval.h"

namespace lamina {

enum class InterpolateMode : std::uint8_t {
  nearest,
  linear,
  linear_onnx,
  cubic,
  bilinear_pillow,
  bicubic_pillow
};
template <>
inline constexpr std::array enum_names<InterpolateMode> = {
    std::string_view("nearest"), std::string_view("linear"),          std::string_view("linear_onnx"),
    std::string_view("cubic"),   std::string_view("bilinear_pillow"), std::string_view("bicubic_pillow")};

/// With rounded_scales sizes are input times scale rounded to nearest, halves up (ONNX's
/// keep_aspect_ratio_policy); with scales they are rounded down.
enum class ShapeCalculationMode : std::uint8_t { sizes, scales, rounded_scales };
template <>
inline constexpr std::array enum_names<ShapeCalculationMode> = {
    std::string_view("sizes"), std::string_view("scales"), std::string_view("rounded_scales")};

/// The last two are ONNX's.
enum class CoordinateMode : std::uint8_t {
  half_pixel,
  pytorch_half_pixel,
  asymmetric,
  tf_half_pixel_for_nn,
  align_corners,
  half_pixel_symmetric,
  tf_crop_and_resize,
};
template <>
inline constexpr std::array enum_names<CoordinateMode> = {
    std::string_view("half_pixel"),        std::string_view("pytorch_half_pixel"),
    std::string_view("asymmetric"),        std::string_view("tf_half_pixel_for_nn"),
    std::string_view("align_corners"),     std::string_view("half_pixel_symmetric"),
    std::string_view("tf_crop_and_resize")};

enum class NearestMode : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil, simple };
template <>
inline constexpr std::array enum_names<NearestMode> = {
    std::string_view("round_prefer_floor"), std::string_view("round_prefer_ceil"), std::string_view("floor"),
    std::string_view("ceil"), std::string_view("simple")};

/// Inputs: x, sizes (integers) or scales (floats) of the resized axes, axes? (default: all), roi? (starts
/// then ends of the resized axes, as fractions; for tf_crop_and_resize only). The picture is first padded
/// with zeros. Coordinates are exact (ops/resize_coordinates.h). `linear` is OpenVINO's triangle filter,
/// `linear_onnx` ONNX's; antialias widens the filters of linear, linear_onnx and cubic when shrinking. With
/// exclude_outside, weights outside the picture are dropped instead of read at its border (linear_onnx and
/// cubic). Outside the picture tf_crop_and_resize gives extrapolation_value. On integers `linear` and
/// Pillow's modes round to the nearest, halves away from zero; linear_onnx and cubic truncate.
struct Interpolate {
  static constexpr OpInfo info{"Interpolate",
                               2,
                               4,
                               1,
                               Trait::epilogue | Trait::sums,
                               "Resizes along axes: nearest, linear or cubic",
                               1,
                               OpFamily::pooling};
  InterpolateMode mode = InterpolateMode::nearest;
  ShapeCalculationMode shape_calculation_mode = ShapeCalculationMode::sizes;
  CoordinateMode coordinate_transformation_mode = CoordinateMode::half_pixel;
  NearestMode nearest_mode = NearestMode::round_prefer_floor;
  bool antialias = false;
  Ints pads_begin, pads_end;
  double cube_coeff = -0.75;
  bool exclude_outside = false;
  double extrapolation_value = 0;
  template <class V>
  void visit(V& v) {
    v("mode", mode);
    v("shape_calculation_mode", shape_calculation_mode);
    v("coordinate_transformation_mode", coordinate_transformation_mode);
    v("nearest_mode", nearest_mode);
    v("antialias", antialias);
    v("pads_begin", pads_begin);
    v("pads_end", pads_end);
    v("cube_coeff", cube_coeff);
    v("exclude_outside", exclude_outside, Owner::lamina);
    v("extrapolation_value", extrapolation_value, Owner::lamina);
  }
  bool by_scales() const { return shape_calculation_mode != ShapeCalculationMode::sizes; }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 4 * c.out()}; }
};

}  // namespace lamina
