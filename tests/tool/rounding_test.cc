#include "tool/rounding.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/text.h"
#include "ops/operators.h"

namespace lamina::tool {
namespace {

Tensor floats(const Dims& dims, const std::vector<float>& values) {
  Tensor t(ElementType::f32, dims);
  std::copy(values.begin(), values.end(), t.data<float>().begin());
  return t;
}

std::optional<std::vector<double>> radius_of(const std::string& text, const std::vector<Tensor>& in) {
  const auto g = parse_graph(text, operators());
  return undecided(g, g.order().at(0), in);
}

/// x0 + x1, rounded to integers from -8 to 7.
const std::string kRounded = R"(graph (x: f32[1,2,1,3], w: f32[1,2,1,1]) -> (y) {
  y = Convolution(x, w) {
    body graph (r: f32[1,1,1,3]) -> (q) {
      low = const f32[] {-8}
      high = const f32[] {7}
      q = FakeQuantize(r, low, high, low, high) levels=16
    }
  }
}
)";

TEST(Rounding, a_sum_at_the_border_of_two_levels_is_undecided) {
  const auto radius =
      radius_of(kRounded, {floats({1, 2, 1, 3}, {1, 1, 1, 1.5f, 1.25f, 2}), floats({1, 2, 1, 1}, {1, 1})});
  ASSERT_TRUE(radius);
  EXPECT_EQ((*radius)[0], 1);  // 2.5: 2 or 3
  EXPECT_EQ((*radius)[1], 0);
  EXPECT_EQ((*radius)[2], 0);
}

TEST(Rounding, reaches_through_the_convolution_behind) {
  const auto radius = radius_of(R"(graph (x: f32[1,1,1,2], v: f32[1,1,1,2]) -> (y) {
  y = ConvolutionDepthwise(x, v) {
    body graph (r: f32[1,1,1,1]) -> (q) {
      q = Relu(r)
    }
    body graph (x: f32[1,1,1,2]) -> (t) {
      w = const f32[1,1,1,1] {1}
      t = Convolution(x, w) {
        body graph (r: f32[1,1,1,2]) -> (q) {
          low = const f32[] {-8}
          high = const f32[] {7}
          q = FakeQuantize(r, low, high, low, high) levels=16
        }
      }
    }
  }
}
)",
                                {floats({1, 1, 1, 2}, {2.5f, 3}), floats({1, 1, 1, 2}, {-3, 10})});
  ASSERT_TRUE(radius);
  EXPECT_NEAR((*radius)[0], 3, 1e-3);  // -3 * (2 or 3) + 10 * 3
}

TEST(Rounding, nothing_is_undecided_where_nothing_is_rounded) {
  EXPECT_FALSE(radius_of("graph (x: f32[1,2,1,3], w: f32[1,2,1,1]) -> (y) {\n y = Convolution(x, w)\n}\n",
                         {floats({1, 2, 1, 3}, {1, 1, 1, 1.5f, 1.25f, 2}), floats({1, 2, 1, 1}, {1, 1})}));
}

}  // namespace
}  // namespace lamina::tool
