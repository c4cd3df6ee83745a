#include "ops/convolution.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

Window window(Ints strides, Ints pads, AutoPad auto_pad = AutoPad::explicit_) {
  return {std::move(strides), {}, pads, pads, auto_pad};
}

Tensor ones(const Dims& shape) { return floats(shape, std::vector<float>(element_count(shape), 1)); }

/// The definition, written out.
std::vector<double> by_definition(const Tensor& x, const Tensor& w, const Dims& y, std::int64_t groups,
                                  std::int64_t stride, std::int64_t dilation, std::int64_t pad) {
  const auto xs = x.shape(), ws = w.shape();
  const auto xv = to_doubles(x), wv = to_doubles(w);
  std::vector<double> out;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t r = 0; r < y[2]; ++r)
        for (std::int64_t c = 0; c < y[3]; ++c) {
          double sum = 0;
          for (std::int64_t i = 0; i < ws[1]; ++i)
            for (std::int64_t a = 0; a < ws[2]; ++a)
              for (std::int64_t b = 0; b < ws[3]; ++b) {
                const auto h = r * stride - pad + a * dilation, v = c * stride - pad + b * dilation;
                if (h < 0 || h >= xs[2] || v < 0 || v >= xs[3]) continue;
                const auto channel = o / (y[1] / groups) * ws[1] + i;
                sum += xv[static_cast<std::size_t>(((n * xs[1] + channel) * xs[2] + h) * xs[3] + v)] *
                       wv[static_cast<std::size_t>(((o * ws[1] + i) * ws[2] + a) * ws[3] + b)];
              }
          out.push_back(sum);
        }
  return out;
}

/// Small whole numbers, so that f32 results are exact.
Tensor pattern(const Dims& shape, std::int64_t step) {
  std::vector<float> values(element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<std::int64_t>(i) * step % 11 - 5);
  return floats(shape, values);
}

TEST(Convolution, small_by_hand) {
  // A 3x3 window of ones over 0..8 with padding 1.
  expect_values(evaluate(Convolution{window({}, {1, 1})}, {counting({1, 1, 3, 3}), ones({1, 1, 3, 3})}),
                {1, 1, 3, 3}, {8, 15, 12, 21, 36, 27, 20, 33, 24});
  expect_values(
      evaluate(Convolution{}, {counting({1, 2, 3}), floats({1, 2, 2}, {1, 2, 3, 4}), floats({1}, {100})}),
      {1, 1, 2}, {1 * 0 + 2 * 1 + 3 * 3 + 4 * 4 + 100, 1 * 1 + 2 * 2 + 3 * 4 + 4 * 5 + 100});
}

TEST(Convolution, agrees_with_the_definition) {
  for (std::int64_t groups : {1, 3, 6})
    for (std::int64_t stride : {1, 2})
      for (std::int64_t dilation : {1, 2})
        for (std::int64_t pad : {0, 2}) {
          const auto x = pattern({2, 6, 13, 11}, 7), w = pattern({12, 6 / groups, 3, 3}, 5);
          Convolution op{
              Window{{stride, stride}, {dilation, dilation}, {pad, pad}, {pad, pad}, AutoPad::explicit_},
              groups};
          const auto y = evaluate(op, {x, w});
          expect_values(y, y.shape(), by_definition(x, w, y.shape(), groups, stride, dilation, pad));
        }
}

TEST(Convolution, more_channels_and_pixels_than_a_tile) {
  const auto x = pattern({1, 40, 12, 12}, 7), w = pattern({150, 40, 3, 3}, 5);
  const auto y = evaluate(Convolution{}, {x, w});
  expect_values(y, {1, 150, 10, 10}, by_definition(x, w, y.shape(), 1, 1, 1, 0));
}

TEST(Convolution, three_spatial_axes) {
  const auto y = evaluate(Convolution{}, {counting({1, 1, 2, 2, 3}), ones({1, 1, 2, 2, 2})});
  expect_values(y, {1, 1, 1, 1, 2}, {0 + 1 + 3 + 4 + 6 + 7 + 9 + 10, 1 + 2 + 4 + 5 + 7 + 8 + 10 + 11});
}

TEST(Convolution, integers_are_exact_and_have_zero_points) {
  const auto x = of_type(ElementType::u8, {1, 1, 2, 2}, {200, 3, 4, 255}),
             w = of_type(ElementType::i8, {2, 1, 1, 1}, {-128, 127});
  const auto y = evaluate(
      Convolution{}, {x, w, {}, of_type(ElementType::u8, {}, {5}), of_type(ElementType::i8, {2}, {1, 0})});
  EXPECT_EQ(y.element_type(), ElementType::i32);
  expect_values(y, {1, 2, 2, 2},
                {195 * -129, -2 * -129, -1 * -129, 250 * -129, 195 * 127, -2 * 127, -127, 250 * 127});
  // Padding is the zero point: it counts nothing.
  expect_values(evaluate(Convolution{window({}, {0, 1})}, {of_type(ElementType::u8, {1, 1, 1, 1}, {7}),
                                                           of_type(ElementType::i8, {1, 1, 1, 3}, {1, 1, 1}),
                                                           {},
                                                           of_type(ElementType::u8, {}, {5})}),
                {1, 1, 1, 1}, {2});
  const auto big = evaluate(Convolution{}, {of_type(ElementType::i32, {1, 1, 1, 1}, {2000000001}),
                                            of_type(ElementType::i32, {1, 1, 1, 1}, {1})});
  expect_values(big, {1, 1, 1, 1}, {2000000001});
}

TEST(Convolution, auto_pad) {
  const auto x = ones({1, 1, 4, 4}), w = ones({1, 1, 2, 2});
  expect_values(evaluate(Convolution{window({2, 3}, {}, AutoPad::same_upper)}, {x, w}), {1, 1, 2, 2},
                {4, 2, 4, 2}, 0);
  const auto lower = evaluate(Convolution{window({1, 1}, {}, AutoPad::same_lower)}, {x, w});
  EXPECT_EQ(to_doubles(lower)[0], 1);
  EXPECT_EQ(to_doubles(lower)[15], 4);
  EXPECT_EQ(evaluate(Convolution{window({}, {1, 1}, AutoPad::valid)}, {x, w}).shape(), (Dims{1, 1, 3, 3}));
}

TEST(Convolution, unknown_shapes) {
  const auto w = f32({8, 3, 3, 3});
  EXPECT_EQ(infer(Convolution{window({1, 1}, {1, 1})}, {f32({dim("N"), 3, dim("H"), dim("W")}), w}),
            "f32[N,8,H,W]");
  EXPECT_EQ(infer(Convolution{window({2, 2}, {1, 1})}, {f32({dim("N"), 3, 224, Dim()}), w}).substr(0, 13),
            "f32[N,8,112,1");
  EXPECT_EQ(infer(Convolution{}, {f32(Shape()), f32(Shape())}), "f32[...]");
  EXPECT_EQ(infer(Convolution{}, {f32(Shape()), w}), "f32[?,8,?,?]");
  EXPECT_EQ(infer(Convolution{window({2, 2}, {}, AutoPad::same_upper)}, {f32({1, 3, 7, 8}), w}),
            "f32[1,8,4,4]");
}

TEST(Convolution, wrong_shapes) {
  const auto x = f32({1, 4, 8, 8}), w = f32({8, 4, 3, 3});
  EXPECT_ERROR(infer(Convolution{}, {f32({1, 3, 8, 8}), w}),
               "input has 3 channels, weights take 4 in each of 1 groups");
  EXPECT_ERROR(infer(Convolution{{}, 3}, {f32({1, 12, 8, 8}), w}), "8 output channels in 3 groups");
  EXPECT_ERROR(infer(Convolution{{}, 0}, {x, w}), "groups is 0");
  EXPECT_ERROR(infer(Convolution{}, {f32({1, 4, 8}), w}), "wanted equal ranks");
  EXPECT_ERROR(infer(Convolution{}, {f32({4, 8}), f32({8, 4})}), "wanted rank 3 to 5");
  EXPECT_ERROR(infer(Convolution{window({0, 1}, {})}, {x, w}), "strides has the entry 0");
  EXPECT_ERROR(infer(Convolution{window({}, {-1, 0})}, {x, w}), "pads_begin has the entry -1");
  EXPECT_ERROR(infer(Convolution{window({1}, {})}, {x, w}), "strides has 1 entries, wanted 2");
  EXPECT_ERROR(infer(Convolution{}, {f32({1, 4, 2, 2}), w}), "smaller than the window of 3");
  EXPECT_ERROR(infer(Convolution{}, {x, f32({8, 4, 0, 3})}), "kernel has the size 0");
  EXPECT_ERROR(infer(Convolution{}, {x, w, f32({7})}), "bias has shape [7], wanted [8]");
  EXPECT_ERROR(infer(Convolution{}, {x, TensorType{ElementType::i8, {8, 4, 3, 3}}}),
               "weights is i8, wanted f32");
  EXPECT_ERROR(infer(Convolution{window({}, {INT64_MAX, 0})}, {x, w}), "pads_begin has the entry");
  EXPECT_ERROR(infer(Convolution{}, {x, w, Tensor(), Tensor::scalar<std::uint8_t>(1)}), "has a zero point");
  const TensorType bytes{ElementType::i8, {1, 2, 4, 4}}, weights{ElementType::i8, {4, 2, 1, 1}};
  EXPECT_ERROR(infer(Convolution{}, {bytes, weights, Tensor(), Tensor::scalar<std::uint8_t>(200)}),
               "zero point of the input is u8, wanted i8");
  EXPECT_ERROR(infer(Convolution{}, {bytes, weights, Tensor(), Tensor(), Tensor::scalar<std::uint8_t>(200)}),
               "zero point of the weights is u8, wanted i8");
}

TEST(ConvolutionBackpropData, small_by_hand) {
  const auto x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), w = ones({1, 1, 2, 2});
  expect_values(evaluate(ConvolutionBackpropData{}, {x, w}), {1, 1, 3, 3}, {1, 3, 2, 4, 10, 6, 3, 7, 4});
  expect_values(evaluate(ConvolutionBackpropData{window({2, 2}, {}), {}, 1}, {x, w}), {1, 1, 4, 4},
                {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  expect_values(
      evaluate(ConvolutionBackpropData{window({2, 2}, {1, 1}), {1, 0}, 1}, {x, w, floats({1}, {10})}),
      {1, 1, 3, 2}, {11, 12, 13, 14, 13, 14});
}

TEST(ConvolutionBackpropData, is_the_transpose_of_convolution) {
  // <conv(x), y> = <x, backprop(y)> for every x and y.
  const Window win{{2, 1}, {1, 2}, {1, 0}, {0, 1}, AutoPad::explicit_};
  const auto x = pattern({1, 4, 9, 9}, 7), w = pattern({6, 2, 3, 3}, 5);
  const auto forward = evaluate(Convolution{win, 2}, {x, w});
  const auto y = pattern(forward.shape(), 3);
  auto transposed = ConvolutionBackpropData{win, {1, 0}, 2};
  const auto back = evaluate(transposed, {y, w});
  ASSERT_EQ(back.shape(), x.shape());
  double left = 0, right = 0;
  for (std::size_t i = 0; i < y.size(); ++i) left += to_doubles(forward)[i] * to_doubles(y)[i];
  for (std::size_t i = 0; i < x.size(); ++i) right += to_doubles(x)[i] * to_doubles(back)[i];
  EXPECT_EQ(left, right);
}

TEST(ConvolutionBackpropData, output_shape) {
  const auto x = ones({1, 1, 3}), w = floats({1, 1, 3}, {1, 10, 100});
  ConvolutionBackpropData op{{{2}, {}, {}, {}, AutoPad::same_lower}, {}, 1};
  expect_values(evaluate(op, {x, w, {}, ints({6})}), {1, 1, 6}, {1, 10, 101, 10, 101, 10});
  op.auto_pad = AutoPad::same_upper;
  expect_values(evaluate(op, {x, w, {}, ints({6})}), {1, 1, 6}, {10, 101, 10, 101, 10, 100});
  // Explicit pads stay as they are; the end is cut or filled up.
  op.auto_pad = AutoPad::explicit_;
  op.pads_begin = {1};
  expect_values(evaluate(op, {x, w, {}, ints({4})}), {1, 1, 4}, {10, 101, 10, 101});
  op.auto_pad = AutoPad::valid;
  expect_values(evaluate(op, {x, w, {}, ints({8})}), {1, 1, 8}, {1, 10, 101, 10, 101, 10, 100, 0});
  EXPECT_EQ(
      infer(op, {f32({dim("N"), 1, Dim()}), f32({1, 1, 3}), Tensor(), TensorType{ElementType::i64, {1}}}),
      "f32[N,1,?]");
  EXPECT_ERROR(infer(op, {f32({1, 1, 3}), f32({1, 1, 3}), Tensor(), ints({6, 6})}),
               "output shape has 2 entries, wanted 1");
}

TEST(ConvolutionBackpropData, integers_are_exact_and_have_zero_points) {
  const auto x = of_type(ElementType::u8, {1, 2, 2}, {200, 3, 4, 255}),
             w = of_type(ElementType::i8, {2, 2, 2}, {-128, 127, 1, 2, 3, 4, 5, 6}),
             x_zero = of_type(ElementType::u8, {}, {5}),
             w_zero = of_type(ElementType::i8, {4}, {1, 0, -1, 2});
  // Where nothing lands stands 0, whatever the zero points.
  const auto y = evaluate(ConvolutionBackpropData{window({3}, {}), {}, 2}, {x, w, {}, {}, x_zero, w_zero});
  EXPECT_EQ(y.element_type(), ElementType::i32);
  expect_values(y, {1, 4, 5},
                {195 * -129, 195 * 126, 0, -2 * -129, -2 * 126, 195 * 1, 195 * 2, 0, -2 * 1,  -2 * 2,
                 -1 * 4,     -1 * 5,    0, 250 * 4,   250 * 5,  -1 * 3,  -1 * 4,  0, 250 * 3, 250 * 4});
  EXPECT_ERROR(infer(ConvolutionBackpropData{window({3}, {}), {}, 2},
                     {x, w, Tensor(), Tensor(), Tensor(), of_type(ElementType::i8, {2}, {1, 0})}),
               "zero point of the weights has shape [2], wanted [4]");
  EXPECT_ERROR(infer(ConvolutionBackpropData{},
                     {f32({1, 1, 2}), f32({1, 1, 2}), Tensor(), Tensor(), Tensor::scalar<std::uint8_t>(1)}),
               "has a zero point");
}

TEST(ConvolutionBackpropData, shapes) {
  ConvolutionBackpropData op{window({2, 2}, {1, 1}), {}, 2};
  EXPECT_EQ(infer(op, {f32({dim("N"), 4, 5, 5}), f32({4, 3, 4, 4})}), "f32[N,6,10,10]");
  EXPECT_ERROR(infer(op, {f32({1, 5, 5, 5}), f32({4, 3, 4, 4})}), "number of input channels is 5, wanted 4");
  EXPECT_ERROR(infer(op, {f32({1, 3, 5, 5}), f32({3, 3, 4, 4})}), "3 input channels in 2 groups");
  EXPECT_ERROR(
      infer(ConvolutionBackpropData{window({1, 1}, {4, 4}), {}, 1}, {f32({1, 1, 2, 2}), f32({1, 1, 3, 3})}),
      "wanted 1 or more");
}

TEST(BinaryConvolution, counts_signs) {
  const auto x = floats({1, 1, 1, 3}, {0.5f, -2, 0});
  const auto w = of_type(ElementType::u1, {1, 1, 1, 3}, {1, 1, 0});
  expect_values(evaluate(BinaryConvolution{}, {x, w}), {1, 1, 1, 1}, {1 - 1 + 1});
  for (double pad : {-1.0, 0.0, 1.0})
    expect_values(
        evaluate(
            BinaryConvolution{{{}, {}, {0, 1}, {0, 0}, AutoPad::explicit_}, BinaryMode::xnor_popcount, pad},
            {x, w}),
        {1, 1, 1, 2}, {pad + 1 + 1, 1});
}

TEST(BinaryConvolution, a_window_beside_an_empty_picture_sees_the_border) {
  const auto w = of_type(ElementType::u1, {1, 1, 1, 1}, {1});
  const BinaryConvolution op{{{}, {}, {0, 0}, {1, 2}, AutoPad::explicit_}, BinaryMode::xnor_popcount, -1};
  expect_values(evaluate(op, {floats({1, 1, 0, 0}, {}), w}), {1, 1, 1, 2}, {-1, -1});
}

TEST(BinaryConvolution, groups) {
  BinaryConvolution op;
  op.groups = 2;
  expect_values(evaluate(op, {floats({1, 4, 1, 1}, {1, 1, 1, -1}),
                              of_type(ElementType::u1, {2, 2, 1, 1}, {1, 1, 1, 0})}),
                {1, 2, 1, 1}, {2, 2});
  EXPECT_ERROR(infer(op, {f32({1, 4, 1, 1}), f32({3, 2, 1, 1})}), "3 output channels in 2 groups");
  EXPECT_ERROR(infer(op, {f32({1, 3, 1, 1}), f32({2, 2, 1, 1})}), "input has 3 channels");
}

}  // namespace
}  // namespace lamina
