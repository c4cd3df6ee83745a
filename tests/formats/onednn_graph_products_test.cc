// Convolutions and matrix products of oneDNN Graph: layouts, pads, groups.
#include <gtest/gtest.h>

#include "tests/formats/onednn_graph_operations.h"

namespace lamina::testing {
namespace {

/// The direct sum, in N, C, H, W and OIX.
Floats convolution(const Tensor& x, const Tensor& w, std::int64_t groups, std::int64_t stride,
                   std::int64_t pad) {
  const auto a = to_doubles(x), b = to_doubles(w);
  const auto &s = x.shape(), &k = w.shape();
  const auto h = (s[2] + 2 * pad - k[2]) / stride + 1, v = (s[3] + 2 * pad - k[3]) / stride + 1;
  Floats out;
  for (std::int64_t n = 0; n < s[0]; ++n)
    for (std::int64_t o = 0; o < k[0]; ++o)
      for (std::int64_t p = 0; p < h; ++p)
        for (std::int64_t q = 0; q < v; ++q) {
          double sum = 0;
          for (std::int64_t i = 0; i < k[1]; ++i)
            for (std::int64_t dy = 0; dy < k[2]; ++dy)
              for (std::int64_t dx = 0; dx < k[3]; ++dx) {
                const auto c = o / (k[0] / groups) * k[1] + i, y = p * stride - pad + dy,
                           z = q * stride - pad + dx;
                if (y < 0 || z < 0 || y >= s[2] || z >= s[3]) continue;
                sum += a[static_cast<std::size_t>(((n * s[1] + c) * s[2] + y) * s[3] + z)] *
                       b[static_cast<std::size_t>(((o * k[1] + i) * k[2] + dy) * k[3] + dx)];
              }
          out.push_back(sum);
        }
  return out;
}

Tensor moved(const Tensor& t, const Dims& order) {
  Dims shape;
  for (const auto a : order) shape.push_back(t.shape()[static_cast<std::size_t>(a)]);
  return run_to(shape, "StaticTranspose", {t}, {list("order", order)});
}

const std::vector<std::string> kWindow{list("strides", {2, 2}), list("dilations", {1, 1}),
                                       list("pads_begin", {1, 1}), list("pads_end", {1, 1}),
                                       integer("groups", 2)};

TEST(OneDnnGraph, ConvolutionInAllLayouts) {
  const auto x = random({2, 4, 5, 6}, 1), w = random({6, 2, 3, 2}, 2), bias = random({6}, 3);
  auto wanted = convolution(x, w, 2, 2, 1);
  const Dims shape{2, 6, 3, 4};
  const auto ncx = [&](const Tensor& weights, const std::string& format) {
    return run_to(shape, "Convolution", {x, weights},
                  with(kWindow, {word("data_format", "NCX"), word("weights_format", format)}));
  };
  expect_near(ncx(w, "OIX"), wanted);
  expect_near(ncx(moved(w, {1, 0, 2, 3}), "IOX"), wanted);
  expect_near(ncx(moved(w, {2, 3, 1, 0}), "XIO"), wanted);
  expect_near(ncx(moved(w, {2, 3, 0, 1}), "XOI"), wanted);
  const auto last =
      run_to({2, 3, 4, 6}, "Convolution", {moved(x, {0, 2, 3, 1}), moved(w, {2, 3, 1, 0}), bias}, kWindow);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += to_doubles(bias)[i / 12 % 6];
  expect_near(moved(last, {0, 3, 1, 2}), wanted);
}

TEST(OneDnnGraph, AutoPadInAnyCase) {
  const auto x = random({1, 1, 5, 5}, 1), w = random({1, 1, 2, 2}, 2);
  const auto padded = [&](const std::string& mode, const Dims& shape) {
    return run_to(shape, "Convolution", {x, w},
                  {list("strides", {1, 1}), list("dilations", {1, 1}), list("pads_begin", {7, 7}),
                   list("pads_end", {7, 7}), word("auto_pad", mode), word("data_format", "ncx"),
                   word("weights_format", "oix")});
  };
  const auto whole = convolution(x, w, 1, 1, 1);  // [6,6]
  Floats upper, lower;
  for (std::size_t i = 0; i < 36; ++i) {
    if (i / 6 > 0 && i % 6 > 0) upper.push_back(whole[i]);
    if (i / 6 < 5 && i % 6 < 5) lower.push_back(whole[i]);
  }
  expect_near(padded("same_upper", {1, 1, 5, 5}), upper);
  expect_near(padded("SAME_LOWER", {1, 1, 5, 5}), lower);
  expect_near(padded("Valid", {1, 1, 4, 4}), convolution(x, w, 1, 1, 0));
}

/// Each element of x puts the kernel, times itself, into the result.
TEST(OneDnnGraph, TransposedConvolution) {
  const auto x = floats({1, 2, 2}, {1, 2, 3, 4});
  const auto run_it = [&](const Tensor& w, const Dims& shape, const std::vector<std::string>& attributes) {
    return run_to(shape, "ConvTranspose", {x, w},
                  with({list("dilations", {1}), word("data_format", "NCX"), word("weights_format", "IOX")},
                       attributes));
  };
  const auto w = floats({2, 1, 3}, {1, 10, 100, 1, 10, 100});
  // channels 1 2 and 3 4, stride 2: their sums 4 and 6 at places 0 and 2
  const auto pads = [](std::int64_t begin, std::int64_t end) {
    return std::vector<std::string>{list("strides", {2}), list("pads_begin", {begin}),
                                    list("pads_end", {end})};
  };
  expect_near(run_it(w, {1, 1, 5}, pads(0, 0)), {4, 40, 406, 60, 600});
  expect_near(run_it(w, {1, 1, 3}, pads(1, 1)), {40, 406, 60});
  expect_near(run_it(w, {1, 1, 4}, with(pads(1, 1), {list("output_padding", Dims(12, 1))})),
              {40, 406, 60, 600});
  expect_near(run_it(w, {1, 1, 4}, with(pads(0, 0), {word("auto_pad", "SAME_UPPER")})), {4, 40, 406, 60});
  expect_near(run_it(w, {1, 1, 4}, with(pads(0, 0), {word("auto_pad", "SAME_LOWER")})), {40, 406, 60, 600});
  expect_near(run_it(w, {1, 2, 5}, with(pads(0, 0), {integer("groups", 2)})),
              {1, 10, 102, 20, 200, 3, 30, 304, 40, 400});
}

/// Weights [I, O/groups] have scales for all output channels: those of the first group, then of the second.
TEST(OneDnnGraph, ScalesOfGroupsOfTransposedConvolutions) {
  const auto run_it = [](const Dims& weights, const std::string& format, int axis) {
    const auto text =
        OneDnnGraph()
            .op("Dequantize", {logical(1, "s8", weights)}, {f32(2, weights)},
                {word("qtype", "per_channel"), integer("axis", axis), numbers("scales", {1, 10, 100, 1000}),
                 list("zps", {0, 0, 1, 0})})
            .op("ConvTranspose", {f32(0, {1, 4, 1}), f32(2, weights)}, {f32(3, {1, 4, 1})},
                {list("strides", {1}), list("pads_begin", {0}), list("pads_end", {0}), list("dilations", {1}),
                 integer("groups", 2), word("data_format", "NCX"), word("weights_format", format)})
            .text();
    Tensor w(ElementType::i8, weights);
    for (std::size_t i = 0; i < w.size(); ++i) w.raw()[i] = std::byte{2};
    return run_onednn(text, {w, floats({1, 4, 1}, {1, 2, 3, 4})}).at(0);
  };
  // 1 + 2 and 3 + 4, times 2, of the third channel times 2 - 1
  expect_near(run_it({4, 2, 1}, "IOX", 1), {6, 60, 700, 14000});
  expect_near(run_it({1, 2, 4}, "XOI", 1), {6, 60, 700, 14000});
}

TEST(OneDnnGraph, MatMul) {
  const auto a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({2, 2}, {1, 0, 0, 2}),
             bias = floats({2}, {10, 20});
  expect_near(run_to({3, 2}, "MatMul", {a, b, bias}, {flag("transpose_a", true)}), {11, 28, 12, 30, 13, 32});
  expect_near(run_to({3, 2}, "MatMul", {moved(a, {1, 0}), b}, {flag("transpose_b", true)}),
              {1, 8, 2, 10, 3, 12});
}

/// A product of halves that is f32 is not rounded to a half between.
TEST(OneDnnGraph, ProductsOfHalvesMayBeF32) {
  const auto text =
      OneDnnGraph()
          .op("MatMul", {logical(0, "bf16", {1, 2}), logical(1, "bf16", {2, 1})}, {f32(2, {1, 1})})
          .text();
  EXPECT_EQ(to_doubles(run_onednn(text, {floats({1, 2}, {256, 1}), floats({2, 1}, {1, 1})}).at(0)),
            Floats{257});
}

}  // namespace
}  // namespace lamina::testing
