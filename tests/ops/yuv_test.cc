#include "ops/yuv.h"

#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

Tensor bytes(Dims dims, const Ints& values) { return of_type(ElementType::u8, std::move(dims), values); }
TensorType u8(Shape shape) { return {ElementType::u8, std::move(shape)}; }

constexpr YuvToRgb kNv12{}, kNv12Bgr{YuvFormat::nv12, ColourOrder::bgr}, kI420{YuvFormat::i420};

TEST(YuvToRgb, reads_pairs_of_colours) {
  // black, a grey, white and beyond; U and V in the middle
  const auto y = bytes({1, 2, 2, 1}, {16, 126, 235, 255}), uv = bytes({1, 1, 1, 2}, {128, 128});
  const std::vector<double> greys{0, 0, 0, 128, 128, 128, 255, 255, 255, 255, 255, 255};
  expect_values(evaluate(kNv12, {y, uv}), {1, 2, 2, 3}, greys);
  expect_values(evaluate(kNv12, {bytes({1, 3, 2, 1}, {16, 126, 235, 255, 128, 128})}), {1, 2, 2, 3}, greys);
  expect_values(evaluate(kI420, {y, bytes({1, 1, 1, 1}, {128}), bytes({1, 1, 1, 1}, {128})}), {1, 2, 2, 3},
                greys);
}

TEST(YuvToRgb, orders_colours) {
  const auto one = [](float y, float u, float v) {
    return std::vector<Tensor>{floats({1, 2, 2, 1}, {y, y, y, y}), floats({1, 1, 1, 2}, {u, v})};
  };
  const auto rgb = to_doubles(evaluate(kNv12, one(116, 138, 108))),
             bgr = to_doubles(evaluate(kNv12Bgr, one(116, 138, 108)));
  EXPECT_NEAR(rgb[0], 116.4 - 1.596 * 20, 1e-4);
  EXPECT_NEAR(rgb[1], 116.4 - 0.391 * 10 + 0.813 * 20, 1e-4);
  EXPECT_NEAR(rgb[2], 116.4 + 2.018 * 10, 1e-4);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rgb[i], bgr[2 - i]);
  EXPECT_EQ(to_doubles(evaluate(kNv12, one(255, 128, 255)))[0], 255);
  EXPECT_EQ(to_doubles(evaluate(kNv12, one(0, 128, 0)))[0], 0);
}

TEST(YuvToRgb, finds_the_colours_of_each_pixel) {
  // A picture of 2 x 4 whose left half is red and whose right half is blue, in one plane
  const auto reds = [](const Tensor& t) {
    const auto v = to_doubles(t);
    std::vector<bool> out;
    for (std::size_t i = 0; i < v.size(); i += 3) out.push_back(v[i] > v[i + 2]);
    return out;
  };
  const std::vector<bool> wanted{true, true, false, false, true, true, false, false};
  const Ints grey(8, 100);
  const auto with = [&](const Ints& colours) {
    Ints all = grey;
    all.insert(all.end(), colours.begin(), colours.end());
    return bytes({1, 3, 4, 1}, all);
  };
  EXPECT_EQ(reds(evaluate(kNv12, {with({90, 200, 200, 90})})), wanted);
  EXPECT_EQ(reds(evaluate(kI420, {with({90, 200, 200, 90})})), wanted);
  const auto two =
      evaluate(kI420, {bytes({2, 3, 2, 1}, {16, 16, 16, 16, 128, 200, 16, 16, 16, 16, 128, 90})});
  EXPECT_GT(to_doubles(two)[0], 0);  // each picture of a batch has its own
  EXPECT_EQ(to_doubles(two)[12], 0);
}

TEST(YuvToRgb, infers_pictures) {
  EXPECT_EQ(infer(kNv12, {u8({dim("N"), 720, 640, 1})}), "u8[N,480,640,3]");
  EXPECT_EQ(infer(kNv12, {f32({1, 480, dim("W"), 1}), f32({1, dim("h"), 320, 2})}), "f32[1,480,640,3]");
  EXPECT_EQ(infer(kI420, {f32(Shape()), f32(Shape()), f32({2, 4, 5, 1})}), "f32[2,8,10,3]");
}

TEST(YuvToRgb, refuses) {
  EXPECT_ERROR(infer(kNv12, {u8({1, 4, 2, 1})}), "wanted a height that is a multiple of 3");
  EXPECT_ERROR(infer(kNv12, {u8({1, 3, 3, 1})}), "wanted an even width");
  EXPECT_ERROR(infer(kNv12, {u8({1, 3, 2, 1}), u8({1, 1, 1, 2})}), "wanted an even height");
  EXPECT_ERROR(infer(kNv12, {u8({1, 4, 4, 1}), u8({1, 1, 2, 2})}), "which is of a picture [1,2,4,3]");
  EXPECT_ERROR(infer(kNv12, {u8({1, 4, 4, 1}), u8({1, 2, 2, 1})}), "wanted 2 channels");
  EXPECT_ERROR(infer(kNv12, {u8({1, 6, 4})}), "wanted rank 4");
  EXPECT_ERROR(infer(kI420, {u8({1, 4, 4, 1}), u8({1, 2, 2, 1})}), "has 2 inputs, wanted 1 or 3");
  EXPECT_ERROR(infer(kNv12, {u8({1, 4, 4, 1}), f32({1, 2, 2, 2})}), "planes have types u8 and f32");
  EXPECT_ERROR(infer(kNv12, {TensorType{ElementType::i32, {1, 6, 4, 1}}}), "wanted u8 or a float type");
}

}  // namespace
}  // namespace lamina::testing
