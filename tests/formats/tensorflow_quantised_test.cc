// Constants of TensorFlow's quantised types and Dequantize, as graphs with weights of 8 bits have them.
#include <gtest/gtest.h>

#include "ops/eval.h"
#include "tests/support/tensorflow_graph.h"

namespace lamina::testing {
namespace {

using tf::TensorflowGraph;
using List = std::vector<float>;

/// A constant whose type is DT_QINT8 (11), DT_QUINT8 (12), DT_QINT32 (13) or DT_QINT16 (15).
void add_constant(TensorflowGraph& g, const Tensor& numbers, char type) {
  auto bytes = tf::tensor_proto(numbers);
  ASSERT_EQ(bytes[0], '\x08');
  bytes[1] = type;
  g.node("Const", "w", {}, {tf::type("dtype", type), tf::tensor("value", bytes)});
}

List dequantized(const Tensor& numbers, char type, List low, List high, std::vector<tf::Attr> attributes) {
  TensorflowGraph g;
  add_constant(g, numbers, type);
  const bool one = low.size() == 1;
  const auto limit = [&](const List& v) { return Tensor::of<float>(one ? Dims{} : Dims{std::ssize(v)}, v); };
  g.constant("low", limit(low)).constant("high", limit(high));
  attributes.push_back(tf::type("T", type));
  g.node("Dequantize", "y", {"w", "low", "high"}, attributes);
  return to_floats(tf::run(g, {}).at(0));
}

TEST(TensorflowQuantised, MinCombined) {
  const auto bytes = Tensor::of<std::uint8_t>({3}, std::vector<std::uint8_t>{0, 51, 255});
  EXPECT_EQ(dequantized(bytes, 12, {-1}, {4}, {}), (List{-1, 0, 4}));
}

TEST(TensorflowQuantised, MinFirstRoundsTheSmallestValueToAStep) {
  // Steps of 0.5; -1.2 is rounded to -1.
  const auto bytes = Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{0, 10});
  const auto y = dequantized(bytes, 12, {-1.2f}, {126.3f}, {tf::word("mode", "MIN_FIRST")});
  EXPECT_NEAR(y[0], -1, 1e-5);
  EXPECT_NEAR(y[1], 4, 1e-5);
  EXPECT_EQ(dequantized(bytes, 12, {3}, {3}, {tf::word("mode", "MIN_FIRST")}), (List{3, 3}));
}

TEST(TensorflowQuantised, ScaledByAxis) {
  const auto bytes = Tensor::of<std::int8_t>({2, 2}, std::vector<std::int8_t>{127, -127, 127, 0});
  EXPECT_EQ(dequantized(bytes, 11, {-127, -254}, {127, 254},
                        {tf::word("mode", "SCALED"), tf::integer("axis", 0), tf::flag("narrow_range", true)}),
            (List{127, -127, 254, 0}));
}

TEST(TensorflowQuantised, ConstantsAloneAreIntegers) {
  TensorflowGraph g;
  add_constant(g, Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{-7, 70000}), 13);
  g.node("Cast", "y", {"w"}, {tf::type("SrcT", 13), tf::type("DstT", 1)});
  EXPECT_EQ(to_floats(tf::run(g, {}).at(0)), (List{-7, 70000}));
}

}  // namespace
}  // namespace lamina::testing
