// Halves are computed in f32; what a model rounds by itself stays rounded.
#include "rules/widen_half.h"

#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

Floats outputs_of(const Graph& graph, const std::vector<float>& x) {
  return to_doubles(interpret(graph, {Tensor::of<float>({std::ssize(x)}, x)}).at(0));
}

TEST(WidenHalf, ConversionsToAHalfAndBackAreRoundings) {
  auto g = parse(R"(graph (x: f32[2]) -> (y) {
    half = Convert(x) destination_type=bf16
    wide = Convert(half) destination_type=f32
    y = Relu(wide)
  })");
  EXPECT_TRUE(widen_half(g).empty());
  EXPECT_EQ(g.node_count(), 3u);
  EXPECT_EQ(outputs_of(g, {1.001953125F, 257}), (Floats{1, 256}));
}

TEST(WidenHalf, WhatIsComputedInHalvesIsComputedInF32) {
  auto g = parse(R"(graph (x: f32[2]) -> (y) {
    half = Convert(x) destination_type=bf16
    z = Relu(half)
    y = Convert(z) destination_type=f32
  })");
  EXPECT_FALSE(widen_half(g).empty());
  EXPECT_EQ(outputs_of(g, {1.001953125F, 257}), (Floats{1.001953125, 257}));
}

TEST(WidenHalf, ResultsKeepTheirTypes) {
  auto g = parse(R"(graph (x: f32[2]) -> (y) {
    y = Convert(x) destination_type=f16
  })");
  widen_half(g);
  EXPECT_EQ(g.type(g.results()[0].value).element, ElementType::f16);
  EXPECT_EQ(outputs_of(g, {2049, 1}), (Floats{2048, 1}));
}

}  // namespace
}  // namespace lamina::testing
