/// Types behind a value that has changed: how far sizes are followed.
#include "rewrite/propagate.h"

#include <gtest/gtest.h>

#include "base/cancellation.h"
#include "graph/followed_sizes.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "tests/support/counting_signal.h"

namespace lamina {
namespace {

using testing::CountingSignal;  // inference asks at each node whether it must stop

/// size = the first size of x; then size + 1, again and again; then a tensor of that many elements.
struct ChainOfSizes {
  Graph graph;
  ValueId x, first, last, tensor;

  explicit ChainOfSizes(int length) {
    x = graph.add_input("x", {ElementType::f32, Shape{Dim::named("N")}});
    first = last = graph.add(ShapeOf{}, {x});
    const auto one = graph.add_constant(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{1}));
    for (int i = 0; i < length; ++i) last = graph.add(Add{}, {last, one});
    const auto zero = graph.add_constant(Tensor::scalar<float>(0));
    tensor = graph.add(Broadcast{}, {zero, last});
    graph.add_result("y", tensor);
  }
  std::size_t inferred(ValueId from) {
    const CountingSignal signal;
    WideNodes wide;
    run_stoppable({.signal = &signal}, [&] { propagate_types(graph, from, true, wide); });
    return signal.asked();
  }
};

TEST(Propagate, SizesAreInferredAnewAsFarAsInferenceLooks) {
  ChainOfSizes near(10), at_the_end(1000);
  EXPECT_EQ(near.inferred(near.first), 11U);
  EXPECT_LE(at_the_end.inferred(at_the_end.first), kFollowedSizes + 1U);
}

TEST(Propagate, WhatFollowsFromANewSizeIsKnown) {
  ChainOfSizes chain(kFollowedSizes - 4);
  ASSERT_FALSE(chain.graph.type(chain.tensor).shape.known());
  const auto three = chain.graph.add_constant(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{3}));
  chain.graph.replace(chain.first, three);
  chain.inferred(three);
  EXPECT_EQ(chain.graph.type(chain.tensor).shape, Shape{Dim(3 + kFollowedSizes - 4)});
}

}  // namespace
}  // namespace lamina
