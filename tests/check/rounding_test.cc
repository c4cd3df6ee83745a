#include "check/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "ops/operators.h"

namespace lamina::checking {
namespace {

Tensor floats(const Dims& dims, const std::vector<float>& values) {
  Tensor t(ElementType::f32, dims);
  std::copy(values.begin(), values.end(), t.data<float>().begin());
  return t;
}

std::optional<std::vector<double>> radius_of(const std::string& text, const std::vector<Tensor>& in) {
  const auto g = parse_graph(text, operators());
  const auto id = g.order().at(0);
  return undecided(g, id, in, interpret_node(g.node(id), in).at(0));
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

/// What lies between two roundings is rounded too: -1 passes exactly, Gelu of it is -0.158655 within 2^-20.
TEST(Rounding, a_function_at_the_border_of_two_levels_is_undecided) {
  const auto radius = radius_of(R"(graph (x: f32[1,1,1,3], w: f32[1,1,1,1]) -> (y) {
  y = Convolution(x, w) {
    body graph (r: f32[1,1,1,3]) -> (q) {
      low = const f32[] {-8}
      high = const f32[] {7}
      t = FakeQuantize(r, low, high, low, high) levels=16
      g = Gelu(t)
      below = const f32[] {-2.53848404}
      above = const f32[] {2.22117354}
      q = FakeQuantize(g, below, above, below, above) levels=16
    }
  }
}
)",
                                {floats({1, 1, 1, 3}, {-1, -2, 1.25f}), floats({1, 1, 1, 1}, {1})});
  ASSERT_TRUE(radius);
  EXPECT_NEAR((*radius)[0], 0.317311, 1e-5);  // 0 or -1 level
  EXPECT_EQ((*radius)[1], 0);
  EXPECT_EQ((*radius)[2], 0);
}

/// x0 + x1 as whole numbers; whether it is more than 2.5.
TEST(Rounding, a_sum_that_becomes_another_type_may_be_a_step_off) {
  for (const std::string stage :
       {"q = Convert(r) destination_type=u8", "limit = const f32[] {3}\n q = GreaterEqual(r, limit)"}) {
    const auto radius = radius_of(
        "graph (x: f32[1,2,1,3], w: f32[1,2,1,1]) -> (y) {\n y = Convolution(x, w) {\n body graph (r: "
        "f32[1,1,1,3]) -> (q) {\n " +
            stage + "\n }\n }\n}\n",
        {floats({1, 2, 1, 3}, {1, 1, 1, 2, 1.25f, 4}), floats({1, 2, 1, 1}, {1, 1})});
    ASSERT_TRUE(radius) << stage;
    EXPECT_EQ((*radius)[0], 1);  // 3: or a little less
    EXPECT_EQ((*radius)[1], 0);
    EXPECT_EQ((*radius)[2], stage.starts_with("q") ? 1 : 0);  // 5
  }
}

TEST(Rounding, sums_of_integers_are_exact) {
  Tensor a(ElementType::i16, {1, 1});
  a.data<std::int16_t>()[0] = 30000;
  EXPECT_FALSE(radius_of(R"(graph (a: i16[1,1], b: i16[1,1]) -> (y) {
  y = MatMul(a, b) {
    body graph (r: i32[1,1]) -> (q) {
      f = Convert(r) destination_type=f32
      low = const f32[] {0}
      high = const f32[] {3.6e9}
      q = FakeQuantize(f, low, high, low, high) levels=3
    }
  }
}
)",
                         {a, a}));
}

TEST(Rounding, nothing_is_undecided_where_nothing_is_rounded) {
  const std::vector<Tensor> in{floats({1, 1, 2, 2}, {1, 1.5f, 1.25f, 2})};
  EXPECT_FALSE(radius_of("graph (x: f32[1,1,2,2]) -> (y) {\n y = Abs(x)\n}\n", in));
  EXPECT_FALSE(radius_of("graph (x: f32[1,1,2,2]) -> (y) {\n y = MaxPool(x) kernel=[2,2]\n}\n", in));
}

/// What is left of a sum when most of it is subtracted has the sum's rounding.
TEST(Rounding, a_difference_of_large_sums) {
  const std::string stage =
      " {\n body graph (r: f32[1,1,1,1]) -> (q) {\n much = const f32[] {1e6}\n q = Subtract(r, much)\n }\n "
      "}\n}\n";
  const auto mean = radius_of("graph (x: f32[1,1,2,2]) -> (y) {\n y = AvgPool(x) kernel=[2,2]" + stage,
                              {floats({1, 1, 2, 2}, {1e6f, 1e6f, 1e6f + 1, 1e6f})});
  const auto product =
      radius_of("graph (x: f32[1,1,1,1], w: f32[1,1,1,1]) -> (y) {\n y = Convolution(x, w)" + stage,
                {floats({1, 1, 1, 1}, {5e5f}), floats({1, 1, 1, 1}, {2})});
  for (const auto& radius : {mean, product}) {
    ASSERT_TRUE(radius);
    EXPECT_GT((*radius)[0], 0.0625);
    EXPECT_LT((*radius)[0], 1.5);
  }
}

/// 3e38 + 3e38 - 3e38 is a number or infinity, as the terms are ordered; Winograd's transforms may add up
/// more.
TEST(Rounding, a_sum_that_passes_the_range_of_f32_on_the_way) {
  const auto w = floats({3, 1}, {1, 1, -1});
  const auto open = [&](const std::vector<float>& x) {
    const auto radius = radius_of("graph (x: f32[2,3], w: f32[3,1]) -> (y) {\n y = MatMul(x, w)\n}\n",
                                  {floats({2, 3}, x), w});
    EXPECT_FALSE(std::isinf((*radius).at(1)));  // 1 + 2 - 3
    return std::isinf((*radius).at(0));
  };
  EXPECT_TRUE(open({3e38f, 3e38f, 3e38f, 1, 2, 3}));
  EXPECT_TRUE(open({1e36f, 1, 1, 1, 2, 3}));
  EXPECT_FALSE(open({1e35f, 1, 1, 1, 2, 3}));
  // An infinite operand, or a NaN, decides the sum in any order.
  EXPECT_FALSE(open({std::numeric_limits<float>::infinity(), 1, std::nanf(""), 1, 2, 3}));
}

/// -6e38 is HardSwish's NaN if it is an infinity, and -0 if it is a number in the kernel's order.
TEST(Rounding, a_function_of_a_sum_that_may_be_anything) {
  for (const std::string stage : {"HSwish", "Swish", "Sigmoid", "Relu"}) {
    const auto radius = radius_of(
        "graph (x: f32[1,3,1,2], w: f32[1,3,1,1]) -> (y) {\n y = Convolution(x, w) {\n "
        "body graph (r: f32[1,1,1,2]) -> (q) {\n q = " +
            stage + "(r)\n }\n }\n}\n",
        {floats({1, 3, 1, 2}, {-3e38f, 1, -3e38f, 2, 1e38f, 3}), floats({1, 3, 1, 1}, {1, 1, 1})});
    ASSERT_TRUE(radius) << stage;
    EXPECT_TRUE(std::isinf((*radius)[0])) << stage;
    EXPECT_LT((*radius)[1], 1e-4) << stage;
  }
}

/// Kernels add up products of f16 in f32: 90000 - 90000 is a number.
TEST(Rounding, sums_of_halves_may_cancel) {
  const auto halves = [](const Dims& dims, const std::vector<double>& v) {
    return from_doubles(ElementType::f16, dims, v);
  };
  const auto radius = radius_of("graph (x: f16[1,2], w: f16[2,1]) -> (y) {\n y = MatMul(x, w)\n}\n",
                                {halves({1, 2}, {300, 300}), halves({2, 1}, {300, -300})});
  ASSERT_TRUE(radius);
  EXPECT_NEAR((*radius)[0], 180000 * 0x1p-20, 1e-6);
}

TEST(Rounding, gates_of_a_sequence_whose_sums_pass_the_range_of_f32) {
  const auto open = [](float value) {
    return radius_of(
        "graph (x: f32[2,1,2], h: f32[2,1,1], w: f32[1,3,2], r: f32[1,3,1]) -> (y) {\n y, s = GRUSequence(x, "
        "h, _, "
        "w, r) hidden_size=1\n}\n",
        {floats({2, 1, 2}, {1, 2, value, 1}), floats({2, 1, 1}, {0, 0}), Tensor(),
         floats({1, 3, 2}, {1, 2, 1, 2, 1, 2}), floats({1, 3, 1}, {1, 1, 1})});
  };
  EXPECT_FALSE(open(1e35f));
  ASSERT_TRUE(open(3e38f));
  EXPECT_EQ((*open(3e38f))[0], 0);  // the other sequence
  EXPECT_TRUE(std::isinf((*open(3e38f))[1]));
}

TEST(Rounding, a_mean_is_a_sum_first) {
  const auto open = [](float value) {
    const auto g = parse_graph(
        "graph (x: f32[1,4096]) -> (y) {\n a = const i64[1] {1}\n y = ReduceMean(x, a)\n}\n", operators());
    const auto id = g.order().at(0);
    const auto x = floats({1, 4096}, std::vector<float>(4096, value));
    const std::vector<Tensor> in{x, *g.constant(g.node(id).inputs[1])};
    return std::isinf(undecided(g, id, in, interpret_node(g.node(id), in).at(0))->at(0));
  };
  EXPECT_TRUE(open(1e35f));
  EXPECT_FALSE(open(1e31f));
}

TEST(Rounding, windows_of_a_mean_may_overlap) {
  const auto open = [](float value) {
    const auto radius = radius_of(
        "graph (x: f32[1,1,40,40]) -> (y) {\n y = AvgPool(x) kernel=[39,39] pads_begin=[19,19] "
        "pads_end=[19,19]\n}\n",
        {floats({1, 1, 40, 40}, std::vector<float>(1600, value))});
    return std::isinf(radius->at(820));
  };
  EXPECT_TRUE(open(2.5e35f));
  EXPECT_FALSE(open(1e32f));
}

/// 1e30 * 1e30 * 1e-30 * 1e-30 is 1, infinity or 0.
TEST(Rounding, a_product_that_passes_the_range_of_f32_on_the_way) {
  const auto open = [](const std::vector<float>& x) {
    const auto radius =
        radius_of("graph (x: f32[1,4]) -> (y) {\n a = const i64[1] {1}\n y = ReduceProd(x, a)\n}\n",
                  {floats({1, 4}, x), Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{1})});
    return radius && std::isinf(radius->at(0));
  };
  EXPECT_TRUE(open({1e30f, 1e30f, 1e-30f, 1e-30f}));
  EXPECT_TRUE(open({1e30f, 1e30f, 0, 1}));
  EXPECT_TRUE(open({1e-30f, 1e-30f, 1e30f, 1}));
  EXPECT_FALSE(open({1e30f, 1e30f, 1e30f, 1}));  // infinity in any order
  EXPECT_FALSE(open({1e-30f, 1e-30f, 1e-30f, 1}));
  EXPECT_FALSE(open({1e20f, -1e18f, 0, 3}));
  EXPECT_FALSE(open({std::nanf(""), 1e30f, 1, 1}));
}

}  // namespace
}  // namespace lamina::checking
