/// Resizing of pictures.
#include "ops/resize.h"

#include "formats/caffe/call.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace lamina::caffe {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

Interpolate to_sizes(InterpolateMode mode, CoordinateMode coordinates) {
  Interpolate op;
  op.mode = mode;
  op.coordinate_transformation_mode = coordinates;
  op.nearest_mode = NearestMode::floor;
  return op;
}

/// What is left of a size behind a pad or crop, shrunk, then zoomed.
std::int64_t interpolated(const Call& c, const Params& p, std::int64_t size) {
  const auto shrink = p.count("shrink_factor", 1), zoom = p.count("zoom_factor", 1);
  if (shrink < 1 || zoom < 1) c.fail("shrink_factor {} and zoom_factor {}, wanted 1 or more", shrink, zoom);
  size = (size - 1) / shrink + 1;
  if (size > 1 && zoom > kLargest / size) c.fail("zoom_factor {} of the size {}", zoom, size);
  return size + (size - 1) * (zoom - 1);
}

/// Corners on corners; pads, where they are negative, crop first.
Values convert_interp(const Call& c) {
  const auto p = c.params("interp_param");
  if (c.known_rank(c.in(0)) != 4)
    c.fail("the bottom has shape {}, wanted rank 4", to_string(c.shape(c.in(0))));
  const auto begin = p.integer("pad_beg", 0), end = p.integer("pad_end", 0);
  if (begin > 0 || end > 0) c.fail("pad_beg {} and pad_end {}, wanted 0 or less", begin, end);
  auto x = c.in(0);
  if (begin != 0 || end != 0)
    x = c.add(Pad{},
              {x, c.ints_constant({0, 0, begin, begin}), c.ints_constant({0, 0, end, end}), c.number(0)});
  const auto op = to_sizes(InterpolateMode::linear_onnx, CoordinateMode::align_corners);
  if (c.inputs() > 1) return {c.add(op, {x, c.slice(c.shape_of(c.in(1)), 0, 2, 4), c.ints_constant({2, 3})})};
  Ints sizes;
  const bool given = !p.has("shrink_factor") && !p.has("zoom_factor");
  for (std::size_t axis = 2; axis < 4; ++axis) {
    sizes.push_back(given ? p.count(axis == 2 ? "height" : "width", 0) : interpolated(c, p, c.size(x, axis)));
    if (sizes.back() < 1 || sizes.back() > kLargest)
      c.fail("asks for the size {}, wanted 1 or more", sizes.back());
  }
  return {c.add(op, {x, c.ints_constant(sizes), c.ints_constant({2, 3})})};
}

/// The Model Optimizer's: a factor or sizes, nearest or linear.
Values convert_resample(const Call& c) {
  const auto p = c.params("resample_param");
  const auto kind = p.choice("type", {"", "NEAREST", "LINEAR", "CUBIC", "AREA"}, 2);
  if (kind > 2) c.unsupported("a Resample of type {}", kind == 3 ? "CUBIC" : "AREA");
  auto op = to_sizes(kind == 1 ? InterpolateMode::nearest : InterpolateMode::linear,
                     kind == 1 ? CoordinateMode::asymmetric : CoordinateMode::half_pixel);
  op.antialias = kind == 2 && p.flag("antialias", true);
  if (const auto factor = p.number("factor", 0); factor > 0) {
    op.shape_calculation_mode = ShapeCalculationMode::scales;
    return {c.add(op, {c.in(0), c.floats({2}, {factor, factor}), c.ints_constant({2, 3})})};
  }
  if (c.inputs() > 1)
    return {c.add(op, {c.in(0), c.slice(c.shape_of(c.in(1)), 0, 2, 4), c.ints_constant({2, 3})})};
  const Ints sizes{p.count("height", 0), p.count("width", 0)};
  if (sizes[0] < 1 || sizes[1] < 1) c.fail("has no factor, height and width, or second bottom");
  return {c.add(op, {c.in(0), c.ints_constant(sizes), c.ints_constant({2, 3})})};
}

}  // namespace

void register_resize(ConverterTable& t) {
  t.add("Interp", convert_interp);
  t.add("Resample", convert_resample);
}

}  // namespace lamina::caffe
