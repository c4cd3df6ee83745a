/// Inputs whose values change nothing.
#include "ops/unused_inputs.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/operators.h"

namespace lamina {
namespace {

std::vector<std::string> unused(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& input : unused_inputs(parse_graph(text, operators()))) out.push_back(to_string(input));
  return out;
}

using Texts = std::vector<std::string>;

TEST(UnusedInputs, NobodyReadsThem) {
  EXPECT_EQ(unused("graph (x: f32[2], y: f32[2]) -> (z) {\n z = Relu(x)\n}"),
            (Texts{"input \"y\" is not used"}));
  EXPECT_EQ(unused("graph (x: f32[2], y: f32[2]) -> (z) {\n z = Add(x, y)\n}"), Texts());
}

TEST(UnusedInputs, WhatNoResultDependsOnIsNotUsed) {
  EXPECT_EQ(unused("graph (x: f32[2], y: f32[2]) -> (z) {\n z = Relu(x)\n a = Relu(y)\n b = Exp(a)\n}"),
            (Texts{"input \"y\" is not used"}));
}

TEST(UnusedInputs, AResultIsUsed) {
  EXPECT_EQ(unused("graph (x: f32[2], y: f32[2]) -> (z, y) {\n z = Relu(x)\n}"), Texts());
}

TEST(UnusedInputs, OnlyTheShapeIsAsked) {
  EXPECT_EQ(unused("graph (x: f32[?], y: f32[?]) -> (z, s) {\n z = Relu(x)\n s = ShapeOf(y)\n}"),
            (Texts{"of input \"y\" only the shape is used"}));
  EXPECT_EQ(unused("graph (x: f32[?]) -> (z, s) {\n z = Relu(x)\n s = ShapeOf(x)\n}"), Texts());
  // The shape is asked for nothing.
  EXPECT_EQ(unused("graph (x: f32[?], y: f32[?]) -> (z) {\n z = Relu(x)\n s = ShapeOf(y)\n}"),
            (Texts{"input \"y\" is not used"}));
}

}  // namespace
}  // namespace lamina
