#include "ops/resize.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

Interpolate make(InterpolateMode mode, CoordinateMode coordinates,
                 ShapeCalculationMode by = ShapeCalculationMode::sizes) {
  Interpolate op;
  op.mode = mode;
  op.coordinate_transformation_mode = coordinates;
  op.shape_calculation_mode = by;
  return op;
}

/// One row of numbers, resized to `size`.
std::vector<double> row(const Interpolate& op, const std::vector<float>& x, std::int64_t size) {
  const auto n = static_cast<std::int64_t>(x.size());
  return to_doubles(evaluate(op, {floats({1, n}, x), ints({size}), ints({1})}));
}

void expect_row(const std::vector<double>& found, const std::vector<double>& wanted,
                double tolerance = 1e-6) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << i;
}

TEST(Interpolate, nearest) {
  const std::vector<float> x{1, 2, 3, 4};
  auto op = make(InterpolateMode::nearest, CoordinateMode::asymmetric);
  op.nearest_mode = NearestMode::floor;
  expect_row(row(op, x, 8), {1, 1, 2, 2, 3, 3, 4, 4});
  expect_row(row(op, x, 2), {1, 3});
  op.nearest_mode = NearestMode::ceil;
  expect_row(row(op, x, 8), {1, 2, 2, 3, 3, 4, 4, 4});
  op.nearest_mode = NearestMode::round_prefer_floor;
  expect_row(row(op, x, 8), {1, 1, 2, 2, 3, 3, 4, 4});
  op.nearest_mode = NearestMode::round_prefer_ceil;
  expect_row(row(op, x, 8), {1, 2, 2, 3, 3, 4, 4, 4});
  op.nearest_mode = NearestMode::simple;
  expect_row(row(op, x, 8), {1, 1, 2, 2, 3, 3, 4, 4});
  expect_row(row(op, x, 3), {1, 3, 4});
  expect_row(row(make(InterpolateMode::nearest, CoordinateMode::half_pixel), x, 2), {1, 3});
  op = make(InterpolateMode::nearest, CoordinateMode::tf_half_pixel_for_nn);
  op.nearest_mode = NearestMode::floor;
  expect_row(row(op, x, 2), {2, 4});
}

TEST(Interpolate, linear_coordinates) {
  const std::vector<float> x{0, 10, 20, 30};
  expect_row(row(make(InterpolateMode::linear_onnx, CoordinateMode::half_pixel), x, 8),
             {0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30});
  expect_row(row(make(InterpolateMode::linear_onnx, CoordinateMode::asymmetric), x, 8),
             {0, 5, 10, 15, 20, 25, 30, 30});
  expect_row(row(make(InterpolateMode::linear_onnx, CoordinateMode::align_corners), x, 7),
             {0, 5, 10, 15, 20, 25, 30});
  expect_row(row(make(InterpolateMode::linear_onnx, CoordinateMode::align_corners), x, 1), {0});
  expect_row(row(make(InterpolateMode::linear_onnx, CoordinateMode::pytorch_half_pixel), x, 1), {0});
  expect_row(row(make(InterpolateMode::linear_onnx, CoordinateMode::half_pixel), x, 1), {15});
  // OpenVINO's linear without antialias: the same inside, and at borders, where the outer weight is dropped.
  expect_row(row(make(InterpolateMode::linear, CoordinateMode::half_pixel), x, 8),
             {0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30});
}

TEST(Interpolate, cubic) {
  const auto op = make(InterpolateMode::cubic, CoordinateMode::half_pixel);
  // Weights at 0.25 and 0.75 with a = -0.75.
  const double w0 = -0.10546875, w1 = 0.87890625, w2 = 0.26171875, w3 = -0.03515625;
  expect_row(row(op, {0, 10, 20, 30}, 8),
             {(w3 + w2 + w1) * 0 + w0 * 10, w0 * 0 + w1 * 0 + w2 * 10 + w3 * 20,
              w3 * 0 + w2 * 0 + w1 * 10 + w0 * 20, w0 * 0 + w1 * 10 + w2 * 20 + w3 * 30,
              w3 * 0 + w2 * 10 + w1 * 20 + w0 * 30, w0 * 10 + (w1 * 20) + (w2 + w3) * 30,
              w3 * 10 + w2 * 20 + (w1 + w0) * 30, w0 * 20 + (w1 + w2 + w3) * 30},
             1e-5);
  auto excluding = op;
  excluding.exclude_outside = true;
  EXPECT_NEAR(row(excluding, {0, 10, 20, 30}, 8)[0], w0 * 10 / (w1 + w0), 1e-5);
}

TEST(Interpolate, antialias_widens_the_filter) {
  auto op = make(InterpolateMode::linear_onnx, CoordinateMode::half_pixel);
  op.antialias = true;
  // Scale 1/2: position 0.5 reads triangles of width 4, weights 1 3 3 1 over 8, the border repeated.
  expect_row(row(op, {0, 8, 16, 24}, 2),
             {(1 * 0 + 3 * 0 + 3 * 8 + 16) / 8.0, (8 + 3 * 16 + 3 * 24 + 24) / 8.0});
  op.exclude_outside = true;
  expect_row(row(op, {0, 8, 16, 24}, 2), {(3 * 0 + 3 * 8 + 16) / 7.0, (8 + 3 * 16 + 3 * 24) / 7.0});
  op = make(InterpolateMode::linear, CoordinateMode::half_pixel);
  op.antialias = true;
  expect_row(row(op, {0, 8, 16, 24}, 2), {(3 * 0 + 3 * 8 + 16) / 7.0, (8 + 3 * 16 + 3 * 24) / 7.0});
  expect_row(row(make(InterpolateMode::bilinear_pillow, CoordinateMode::half_pixel), {0, 8, 16, 24}, 2),
             {(3 * 0 + 3 * 8 + 16) / 7.0, (8 + 3 * 16 + 3 * 24) / 7.0});
}

TEST(Interpolate, scales_and_sizes) {
  const auto x = counting({1, 1, 2, 3});
  auto op = make(InterpolateMode::nearest, CoordinateMode::asymmetric, ShapeCalculationMode::scales);
  op.nearest_mode = NearestMode::floor;
  EXPECT_EQ(evaluate(op, {x, floats({1, 1, 2, 1.5f})}).shape(), (Dims{1, 1, 4, 4}));
  expect_values(evaluate(op, {x, floats({2, 1}), ints({-2, -1})}), {1, 1, 4, 3},
                {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  // The given scale places the positions, not the quotient of the sizes.
  expect_values(evaluate(op, {floats({3}, {1, 2, 3}), floats({1.6f})}), {4}, {1, 1, 2, 2});
}

TEST(Interpolate, linear_on_integers_rounds) {
  // Positions 0.25, 0.75 between neighbours: 0.75 * 3 + 0.25 * 5 = 3.5, away from zero.
  const auto linear = make(InterpolateMode::linear, CoordinateMode::half_pixel);
  const auto of = [&](const Interpolate& op, const Ints& values) {
    return to_ints(evaluate(
        op, {of_type(ElementType::i8, {static_cast<std::int64_t>(values.size())}, values), ints({4})}));
  };
  EXPECT_EQ(of(linear, {3, 5}), (Ints{3, 4, 5, 5}));
  EXPECT_EQ(of(linear, {-3, -5}), (Ints{-3, -4, -5, -5}));
  EXPECT_EQ(of(make(InterpolateMode::linear_onnx, CoordinateMode::half_pixel), {3, 5}), (Ints{3, 3, 4, 5}));
}

TEST(Interpolate, crop_and_resize) {
  auto op = make(InterpolateMode::linear_onnx, CoordinateMode::tf_crop_and_resize);
  op.extrapolation_value = -7;
  const auto x = floats({1, 5}, {0, 10, 20, 30, 40});
  expect_values(evaluate(op, {x, ints({3}), ints({1}), floats({0.5f, 1})}), {1, 3}, {20, 30, 40});
  expect_values(evaluate(op, {x, ints({3}), ints({1}), floats({0.5f, 1.5f})}), {1, 3}, {20, 40, -7});
  expect_values(evaluate(op, {x, ints({1}), ints({1}), floats({0.25f, 0.75f})}), {1, 1}, {20});
}

TEST(Interpolate, symmetric_half_pixel) {
  const auto op =
      make(InterpolateMode::linear_onnx, CoordinateMode::half_pixel_symmetric, ShapeCalculationMode::scales);
  // 4 * 0.6 = 2.4, two positions: centred at 2 -+ 0.5 / 0.6.
  const auto y = to_doubles(evaluate(op, {floats({0, 10, 20, 30}), floats({0.6f})}));
  expect_row(y, {(2 - 0.5 / 0.6 - 0.5) * 10, (2 + 0.5 / 0.6 - 0.5) * 10}, 1e-4);
}

TEST(Interpolate, pads_come_first) {
  auto op = make(InterpolateMode::nearest, CoordinateMode::half_pixel);
  op.pads_begin = {0, 1};
  op.pads_end = {1, 0};
  expect_values(evaluate(op, {floats({1, 2}, {5, 6}), ints({6}), ints({1})}), {2, 6},
                {0, 0, 5, 5, 6, 6, 0, 0, 0, 0, 0, 0});
}

TEST(Interpolate, integers) {
  auto op = make(InterpolateMode::linear_onnx, CoordinateMode::asymmetric);
  const auto y = evaluate(op, {of_type(ElementType::u8, {2}, {0, 255}), ints({4})});
  EXPECT_EQ(to_ints(y), (Ints{0, 127, 255, 255}));
  const auto p = evaluate(make(InterpolateMode::bilinear_pillow, CoordinateMode::half_pixel),
                          {of_type(ElementType::u8, {2}, {0, 255}), ints({1})});
  EXPECT_EQ(to_ints(p), (Ints{128}));  // 127.5: half to even
}

TEST(Interpolate, shapes) {
  auto sizes = make(InterpolateMode::nearest, CoordinateMode::half_pixel);
  auto scales = make(InterpolateMode::nearest, CoordinateMode::half_pixel, ShapeCalculationMode::scales);
  const auto x = f32({dim("N"), 3, Dim(), 10});
  EXPECT_EQ(infer(sizes, {x, ints({20, 30}), ints({2, 3})}), "f32[N,3,20,30]");
  EXPECT_EQ(infer(scales, {x, floats({1, 2.5f}), ints({2, 3})}), "f32[N,3,?,25]");
  EXPECT_EQ(infer(scales, {x, f32({4})}), "f32[?,?,?,?]");
  EXPECT_EQ(infer(scales, {f32(Shape()), f32({4})}), "f32[...]");
  EXPECT_ERROR(infer(scales, {x, floats({0, 1}), ints({2, 3})}), "scale is 0, wanted a positive number");
  EXPECT_ERROR(infer(scales, {x, floats({1, 1e-40f}), ints({2, 3})}), "positive number that is not denormal");
  EXPECT_ERROR(infer(scales, {x, floats({1, 1e30f}), ints({2, 3})}), "wanted less than");
  EXPECT_ERROR(infer(sizes, {x, ints({20}), ints({2, 3})}), "number of sizes or scales is 1, wanted 2");
  EXPECT_ERROR(infer(sizes, {x, ints({-20}), ints({2})}), "size -20");
  EXPECT_ERROR(infer(sizes, {x, ints({20}), ints({4})}), "axis is 4");
  EXPECT_ERROR(infer(sizes, {x, floats({20}), ints({2})}), "sizes is f32, wanted integers");
  EXPECT_ERROR(infer(sizes, {f32({0}), ints({2}), ints({0})}), "an axis of size 0 is resized to 2");
  sizes.pads_begin = {-1};
  EXPECT_ERROR(infer(sizes, {x, ints({20}), ints({2})}), "pads_begin has the entry -1");
}

}  // namespace
}  // namespace lamina
