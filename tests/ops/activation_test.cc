#include "ops/activation.h"

#include "op_testing.h"

namespace lamina::testing {
namespace {

TEST(Activation, WithoutParameters) {
  const struct {
    Op op;
    std::vector<double> y;  // of -4, -1, 0, 1, 4
  } cases[] = {
      {Relu{}, {0, 0, 0, 1, 4}},
      {Sigmoid{}, {0.0179862, 0.2689414, 0.5, 0.7310586, 0.9820138}},
      {Tanh{}, {-0.9993293, -0.7615942, 0, 0.7615942, 0.9993293}},
      {HSwish{}, {0, -1.0 / 3, 0, 2.0 / 3, 4}},
      {HSigmoid{}, {0, 1.0 / 3, 0.5, 2.0 / 3, 1}},
      {Mish{}, {-0.0725917, -0.3034015, 0, 0.8650984, 3.9974128}},
      {SoftPlus{}, {0.0181499, 0.3132617, 0.6931472, 1.3132617, 4.0181499}},
      {SoftSign{}, {-0.8, -0.5, 0, 0.5, 0.8}},
      {Elu{.alpha = 2}, {2 * (0.0183156 - 1), 2 * (0.3678794 - 1), 0, 1, 4}},
      {Gelu{}, {-0.0001267, -0.1586553, 0, 0.8413447, 3.9998733}},
      {Gelu{.approximation_mode = GeluMode::tanh}, {-0.0000702, -0.1588080, 0, 0.8411920, 3.9999298}},
      {Swish{}, {-0.0719449, -0.2689414, 0, 0.7310586, 3.9280552}},
      {Clamp{.min = -1.5, .max = 2}, {-1.5, -1, 0, 1, 2}},
      {PowerStatic{.power = 2, .scale = 0.5, .shift = -1}, {9, 2.25, 1, 0.25, 1}},
      {PowerStatic{.power = 0}, {1, 1, 1, 1, 1}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op.name());
    expect_values(evaluate(c.op, {floats({-4, -1, 0, 1, 4})}), {5}, c.y, 1e-6);
  }
}

TEST(Activation, NothingOverflowsFarOut) {
  expect_values(evaluate(SoftPlus{}, {floats({-1000, 1000})}), {2}, {0, 1000});
  expect_values(evaluate(Mish{}, {floats({-1000, 1000})}), {2}, {0, 1000});
  expect_values(evaluate(Swish{}, {floats({-1000, 1000})}), {2}, {0, 1000});
}

TEST(Activation, PowerStaticTakesNoStepsThatChangeNothing) {
  const auto y = to_floats(evaluate(PowerStatic{}, {floats({-0.0, 0, 3e38})}));
  EXPECT_TRUE(std::signbit(y[0]));  // adding 0 would lose the sign
  EXPECT_FALSE(std::signbit(y[1]));
  EXPECT_EQ(y[2], 3e38f);
  // Steps are rounded: 3e38 * 10 is no f32, its root would be.
  expect_values(evaluate(PowerStatic{.power = 0.5, .scale = 10}, {floats({3e38})}), {1}, {INFINITY});
  EXPECT_ERROR(infer(PowerStatic{}, {ints({1})}), "floating-point");
}

TEST(Activation, WithParameterInputs) {
  const Tensor x = floats({-1, 0, 2});
  const Tensor a = Tensor::scalar(0.5f), b = floats({3});
  expect_values(evaluate(Selu{}, {x, a, b}), {3}, {3 * 0.5 * (0.3678794 - 1), 0, 6}, 1e-6);
  expect_values(evaluate(HardSigmoid{}, {x, a, Tensor::scalar(0.25f)}), {3}, {0, 0.25, 1});
  expect_values(evaluate(Swish{}, {x, Tensor::scalar(2.0f)}), {3}, {-0.1192029, 0, 1.9640276}, 1e-6);
  EXPECT_ERROR(infer(Selu{}, {f32({3}), f32({2}), f32({1})}), "wanted one element");
  EXPECT_ERROR(infer(HardSigmoid{}, {f32({3}), ints({1}), f32({1})}), "wanted floating-point");
  EXPECT_EQ(infer(Swish{}, {f32({dim("N")}), f32(Shape())}), "f32[N]");
}

TEST(Clamp, OnIntegersBoundsAreRoundedInwards) {
  const auto i8 = [](const Ints& v) {
    return of_type(ElementType::i8, {static_cast<std::int64_t>(v.size())}, v);
  };
  expect_values(evaluate(Clamp{.min = -1.5, .max = 2.5}, {i8({-5, -1, 2, 5})}), {4}, {-1, -1, 2, 2});
  expect_values(evaluate(Clamp{.min = -1e300, .max = 1e300}, {i8({-128, 127})}), {2}, {-128, 127});
  EXPECT_ERROR(infer(Clamp{.min = 2, .max = 1}, {f32({1})}), "wanted min <= max");
}

TEST(Relu, OnIntegers) { expect_values(evaluate(Relu{}, {ints({-3, 4})}), {2}, {0, 4}); }

TEST(PRelu, SlopeOfOneDimensionLiesAlongAxisOne) {
  const Tensor x = floats({1, 2, 2}, {-1, -1, -1, 1});
  expect_values(evaluate(PRelu{}, {x, floats({2, 3})}), {1, 2, 2}, {-2, -2, -3, 1});
  expect_values(evaluate(PRelu{}, {x, floats({2, 1}, {2, 3})}), {1, 2, 2}, {-2, -2, -3, 1});
  expect_values(evaluate(PRelu{}, {x, floats({1, 1, 2}, {2, 3})}), {1, 2, 2}, {-2, -3, -2, 1});
  expect_values(evaluate(PRelu{}, {x, floats({0.5f})}), {1, 2, 2}, {-0.5, -0.5, -0.5, 1});
  expect_values(evaluate(PRelu{}, {floats({-1, -2}), floats({2, 3})}), {2}, {-2, -6});
  // Not C elements: numpy broadcasting along the last axis.
  expect_values(evaluate(PRelu{}, {floats({1, 2, 3}, {-1, -1, -1, 1, -1, 1}), floats({1, 2, 3})}), {1, 2, 3},
                {-1, -2, -3, 1, -2, 1});
}

TEST(PRelu, SlopeMustNotEnlargeTheInput) {
  EXPECT_EQ(infer(PRelu{}, {f32({dim("N"), 3, 4}), f32({3})}), "f32[N,3,4]");
  EXPECT_EQ(infer(PRelu{}, {f32({dim("N"), dim("C"), 4}), f32({3})}), "f32[N,C,4]");
  EXPECT_ERROR(infer(PRelu{}, {f32({2, 3, 4}), f32({5})}), "does not broadcast to");
  EXPECT_ERROR(infer(PRelu{}, {f32({1, 3}), f32({2, 3})}), "does not broadcast to");
  EXPECT_ERROR(infer(PRelu{}, {f32({3}), ints({1})}), "slope is i64");
}

TEST(PRelu, SlopeShape) {
  EXPECT_EQ(to_string(prelu_slope_shape({1, 3, 4, 4}, {3})), "[3,1,1]");
  EXPECT_EQ(to_string(prelu_slope_shape({1, 3, 4, 4}, {4})), "[4]");
  EXPECT_EQ(to_string(prelu_slope_shape({1, 3, 4, 4}, {1})), "[1]");
  EXPECT_EQ(to_string(prelu_slope_shape({1, 3}, {3})), "[3]");
  EXPECT_EQ(to_string(prelu_slope_shape({1, Dim(), 4}, {4})), "[...]");
  EXPECT_EQ(to_string(prelu_slope_shape({1, 3, 4}, {3, 1})), "[3,1]");
}

}  // namespace
}  // namespace lamina::testing
