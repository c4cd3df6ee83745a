// Operations of oneDNN Graph over several elements: poolings, sizes, movement, reductions, normalisations.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/formats/onednn_graph_operations.h"

namespace lamina::testing {
namespace {

TEST(OneDnnGraph, Poolings) {
  const auto x = floats({1, 1, 5}, {1, 2, 3, 4, 9});
  const auto pool = [&](const std::string& kind, const Dims& shape,
                        const std::vector<std::string>& attributes) {
    return run_to(shape, kind, {x},
                  with({list("strides", {2}), list("kernel", {2}), word("data_format", "NCX")}, attributes));
  };
  const auto pads = [](std::int64_t begin, std::int64_t end) {
    return std::vector<std::string>{list("pads_begin", {begin}), list("pads_end", {end})};
  };
  expect_near(pool("MaxPool", {1, 1, 2}, pads(0, 0)), {2, 4});
  expect_near(pool("MaxPool", {1, 1, 3}, with(pads(0, 0), {word("rounding_type", "ceil")})), {2, 4, 9});
  expect_near(pool("MaxPool", {1, 1, 2}, with(pads(0, 0), {list("dilations", {2})})), {3, 9});
  expect_near(pool("MaxPool", {1, 1, 3}, {word("auto_pad", "SAME_UPPER"), pads(0, 0)[0], pads(0, 0)[1]}),
              {2, 4, 9});
  expect_near(pool("AvgPool", {1, 1, 3}, with(pads(1, 0), {flag("exclude_pad", false)})), {0.5, 2.5, 6.5});
  expect_near(pool("AvgPool", {1, 1, 3}, with(pads(1, 0), {flag("exclude_pad", true)})), {1, 2.5, 6.5});
  // A window that is not full counts as many as a full one, unless padding does not count.
  expect_near(pool("AvgPool", {1, 1, 3},
                   with(pads(0, 0), {flag("exclude_pad", false), word("rounding_type", "ceil")})),
              {1.5, 3.5, 4.5});
  expect_near(pool("AvgPool", {1, 1, 3},
                   with(pads(0, 0), {flag("exclude_pad", true), word("rounding_type", "ceil")})),
              {1.5, 3.5, 9});
  // Negative pads cut.
  expect_near(pool("AvgPool", {1, 1, 2}, with(pads(1, -2), {flag("exclude_pad", true)})), {1, 2.5});
  expect_near(run_to({1, 1, 2}, "MaxPool", {floats({1, 3, 2}, {1, 6, 2, 5, 3, 4})},
                     with(pads(0, 0), {list("strides", {2}), list("kernel", {2})})),
              {2, 6});
}

TEST(OneDnnGraph, Interpolate) {
  const auto x = floats({1, 1, 2}, {0, 8});
  const auto resize = [&](const Dims& shape, const std::vector<std::string>& attributes) {
    return run_to(shape, "Interpolate", {x}, with({word("data_format", "NCX")}, attributes));
  };
  expect_near(resize({1, 1, 4}, {word("mode", "linear"), list("sizes", {4})}), {0, 2, 6, 8});
  expect_near(resize({1, 1, 4}, {word("mode", "linear"), numbers("scales", {2})}), {0, 2, 6, 8});
  expect_near(resize({1, 1, 3}, {word("mode", "linear"), list("sizes", {3}),
                                 word("coordinate_transformation_mode", "align_corners")}),
              {0, 4, 8});
  expect_near(resize({1, 1, 3}, {word("mode", "nearest"), list("sizes", {3})}),
              {0, 8, 8});  // the middle is a tie
  expect_near(run_to({1, 4, 1}, "Interpolate", {floats({1, 2, 1}, {0, 8})},
                     {word("mode", "bilinear"), list("sizes", {4})}),
              {0, 2, 6, 8});
}

TEST(OneDnnGraph, Movement) {
  const auto x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_near(run_to({3, 2}, "StaticReshape", {x}, {list("shape", {3, -1}), flag("special_zero", false)}),
              {1, 2, 3, 4, 5, 6});
  expect_near(run_to({2, 3, 1}, "StaticReshape", {x}, {list("shape", {0, 0, 1}), flag("special_zero", true)}),
              {1, 2, 3, 4, 5, 6});
  expect_near(run_to({3, 2}, "StaticTranspose", {x}, {list("order", {-1, 0})}), {1, 4, 2, 5, 3, 6});
  expect_near(run_to({2, 4}, "Concat", {x, floats({2, 1}, {7, 8})}, {integer("axis", -1)}),
              {1, 2, 3, 7, 4, 5, 6, 8});
  expect_near(run("Reorder", {x}, {}), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(to_doubles(run("GenIndex", {x}, {integer("axis", 0)}, "s32")), (Floats{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(to_doubles(run("GenIndex", {x}, {integer("axis", -1)}, "s32")), (Floats{0, 1, 2, 0, 1, 2}));
}

TEST(OneDnnGraph, Reductions) {
  const auto x = floats({2, 2}, {1, -2, 3, 5});
  const auto reduce = [&](const std::string& kind) {
    return to_doubles(run_to({2, 1}, kind, {x}, {list("axes", {-1}), flag("keep_dims", true)}));
  };
  EXPECT_EQ(reduce("ReduceSum"), (Floats{-1, 8}));
  EXPECT_EQ(reduce("ReduceMean"), (Floats{-0.5, 4}));
  EXPECT_EQ(reduce("ReduceMax"), (Floats{1, 5}));
  EXPECT_EQ(reduce("ReduceMin"), (Floats{-2, 3}));
  EXPECT_EQ(reduce("ReduceProd"), (Floats{-2, 15}));
  EXPECT_EQ(reduce("ReduceL1"), (Floats{3, 8}));
  expect_near(run_to({}, "ReduceL2", {x}, {list("axes", {})}), {std::sqrt(39.)});
}

TEST(OneDnnGraph, SoftMax) {
  const auto inf = std::numeric_limits<float>::infinity();
  const auto x = floats({2, 2}, {0, std::log(3.F), -inf, -inf});
  const auto plain = run("SoftMax", {x}, {integer("axis", -1)});
  EXPECT_TRUE(std::isnan(to_doubles(plain)[3]));
  const auto both = run_onednn_op("SoftMax", {x}, {f32(5, {2, 2}), f32(6, {2, 1})},
                                  {integer("axis", 1), word("mode", "inf_as_zero")});
  expect_near(both.at(0), {0.25, 0.75, 0, 0});
  EXPECT_NEAR(to_doubles(both.at(1))[0], std::log(4.), 1e-6);
  expect_near(run("LogSoftmax", {floats({1, 2}, {0, std::log(3.F)})}, {}), {std::log(0.25), std::log(0.75)});
}

TEST(OneDnnGraph, Normalisations) {
  const auto x = floats({2, 2}, {1, 3, 2, 6});
  const auto two = floats({2}, {2, 4}), one = floats({2}, {1, 1});
  expect_near(run("LayerNorm", {x, two, one}, {number("epsilon", 0), flag("keep_stats", false)}),
              {-1, 5, -1, 5});
  const auto stats = run_onednn_op("LayerNorm", {x}, {f32(5, {2, 2}), f32(6, {2}), f32(7, {2})},
                                   {number("epsilon", 0), flag("use_affine", false)});
  expect_near(stats.at(0), {-1, 1, -1, 1});
  expect_near(stats.at(1), {2, 4});
  expect_near(stats.at(2), {1, 4});
  expect_near(run("RMSNorm", {floats({1, 2}, {3, 4}), two}, {number("epsilon", 0)}),
              {6 / std::sqrt(12.5), 16 / std::sqrt(12.5)});
  const auto n = floats({1, 2, 2}, {1, 3, 2, 6});
  expect_near(run("GroupNorm", {n, two, one},
                  {integer("groups", 2), number("epsilon", 0), flag("keep_stats", false),
                   word("data_format", "NCX")}),
              {-1, 3, -3, 5});
  expect_near(run("GroupNorm", {n},
                  {integer("groups", 2), number("epsilon", 0), flag("keep_stats", false),
                   flag("use_affine", false), word("data_format", "NCX")}),
              {-1, 1, -1, 1});
  const auto batch = [&](const std::vector<std::string>& more) {
    return run("BatchNormInference", {n, two, one, floats({2}, {1, 2}), floats({2}, {4, 16})},
               with({number("epsilon", 0)}, more));
  };
  expect_near(batch({word("data_format", "NCX")}), {1, 3, 1, 5});
  expect_near(batch({}), {1, 2, 2, 5});
}

}  // namespace
}  // namespace lamina::testing
