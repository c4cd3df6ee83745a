/// Networks with channels last, as converters write them: Transposes around each layer that wants channels
/// first. All but that of the input meet.
#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "graph/text.h"
#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/operators.h"
#include "ops/pooling.h"
#include "ops/reduction.h"
#include "ops/resize.h"
#include "ops/shaping.h"
#include "rules/optimize.h"
#include "tests/rules/by_value.h"

namespace lamina::testing {
namespace {

/// Values are [N, H, W, C].
class Network {
 public:
  explicit Network(const Shape& input) { x_ = g.add_input("x", {ElementType::f32, input}); }
  Graph g;

  ValueId input() const { return x_; }
  ValueId ints(const Ints& list) { return g.add_constant(Tensor::of({std::ssize(list)}, list)); }
  ValueId floats(const Dims& dims) { return g.add_constant(seeded_tensor(ElementType::f32, dims, ++seed_)); }
  std::int64_t channels(ValueId v) const { return g.type(v).shape.dims().back().size(); }

  ValueId convolve(ValueId v, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1,
                   std::int64_t groups = 1, AutoPad pad = AutoPad::same_upper) {
    Convolution op;
    op.strides = {stride, stride};
    op.groups = groups;
    op.auto_pad = pad;
    const auto w = floats({out, channels(v) / groups, kernel, kernel});
    return last(g.add(op, {first(v), w}));
  }
  ValueId pool(ValueId v, std::int64_t kernel, std::int64_t stride, bool mean = false) {
    const auto set = [&](auto op) {
      op.kernel = {kernel, kernel};
      op.strides = {stride, stride};
      op.auto_pad = AutoPad::same_upper;
      return op;
    };
    auto average = set(AvgPool{});
    average.exclude_pad = true;
    return last(g.add(mean ? Op(average) : Op(set(MaxPool{})), {first(v)}));
  }
  ValueId normalise(ValueId v) {
    const auto c = channels(v);
    return g.add(Add{}, {g.add(Multiply{}, {v, floats({c})}), floats({c})});
  }
  ValueId relu(ValueId v) { return g.add(Relu{}, {v}); }
  ValueId six(ValueId v) { return g.add(Clamp{0, 6}, {v}); }
  ValueId block(ValueId v, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
    return relu(normalise(convolve(v, out, kernel, stride)));
  }
  ValueId concat(std::vector<ValueId> parts) { return g.add(Concat{3}, std::move(parts)); }
  ValueId pad(ValueId v, std::int64_t n) { return g.add(Pad{}, {v, ints({0, n, n, 0}), ints({0, n, n, 0})}); }
  ValueId excite(ValueId v) {
    ReduceMean mean;
    mean.keep_dims = true;
    const auto c = channels(v);
    auto s = g.add(mean, {v, ints({1, 2})});
    s = relu(g.add(Add{}, {convolve(s, 2, 1), floats({2})}));
    s = g.add(Sigmoid{}, {g.add(Add{}, {convolve(s, c, 1), floats({c})})});
    return g.add(Multiply{}, {v, s});
  }
  void classify(ValueId v) {
    const auto mean = g.add(ReduceMean{}, {v, ints({1, 2})});
    g.add_result("y", g.add(Softmax{1}, {g.add(MatMul{}, {mean, floats({channels(v), 5})})}));
  }

 private:
  ValueId first(ValueId v) { return g.add(Transpose{}, {v, ints({0, 3, 1, 2})}); }
  ValueId last(ValueId v) { return g.add(Transpose{}, {v, ints({0, 2, 3, 1})}); }
  ValueId x_;
  std::uint64_t seed_ = 0;
};

std::size_t transposes(const Graph& g) {
  std::size_t count = 0;
  for (auto id : g.order()) count += g.node(id).op.is<Transpose>();
  return count;
}

/// How many Transposes are left; all the same numbers.
std::size_t left_of(const Graph& before) {
  Graph after = before;
  RuleOptions options;
  options.last = RuleSet::portable;
  options.verify = true;
  Ledger ledger;
  optimize(after, options, ledger);
  EXPECT_EQ(difference_by_value(before, after, seeded_inputs(before, 1), 1e-4), "");
  if (transposes(after) > 1) ADD_FAILURE() << print_graph(after, {true, 4}).text;
  return transposes(after);
}

TEST(ChannelsLast, residualNetwork) {
  Network n({1, 20, 20, 3});
  auto v = n.pool(n.relu(n.normalise(n.convolve(n.pad(n.input(), 3), 4, 7, 2, 1, AutoPad::valid))), 3, 2);
  for (const int stride : {1, 2}) {
    auto side = n.normalise(n.convolve(v, 8, 1, stride));
    for (int k = 0; k < 3; ++k) {
      const auto y = n.block(n.block(v, 4, 1, k == 0 ? stride : 1), 4, 3);
      v = n.relu(n.g.add(Add{}, {n.normalise(n.convolve(y, 8, 1)), k == 0 ? side : v}));
    }
  }
  n.classify(v);
  EXPECT_EQ(left_of(n.g), 1u);
}

TEST(ChannelsLast, residualNetworkThatActivatesFirst) {
  Network n({Dim::named("N"), 16, 16, 3});
  auto v = n.convolve(n.input(), 8, 3, 2);
  for (int k = 0; k < 4; ++k) {
    const auto active = n.relu(n.normalise(v));
    const auto side = k == 2 ? n.convolve(active, 8, 1, 2) : v;
    v = n.g.add(Add{}, {n.convolve(n.block(active, 4, 3, k == 2 ? 2 : 1), 8, 3), side});
  }
  n.classify(n.relu(n.normalise(v)));
  EXPECT_EQ(left_of(n.g), 1u);
}

TEST(ChannelsLast, inception) {
  Network n({1, 18, 18, 3});
  auto v = n.block(n.input(), 6, 3, 2);
  for (int k = 0; k < 3; ++k)
    v = n.concat({n.block(v, 2, 1), n.block(n.block(v, 3, 1), 4, 3), n.pool(v, 3, 1, true),
                  n.block(n.pool(v, 3, 1), 2, 1)});
  v = n.concat({n.block(v, 4, 3, 2), n.pool(v, 3, 2)});
  n.classify(v);
  EXPECT_EQ(left_of(n.g), 1u);
}

TEST(ChannelsLast, mobileNetworkWithGates) {
  Network n({1, 16, 16, 3});
  auto v = n.six(n.normalise(n.convolve(n.input(), 4, 3, 2)));
  for (int k = 0; k < 3; ++k) {
    auto y = n.six(n.normalise(n.convolve(v, 8, 1)));
    y = n.six(n.normalise(
        n.convolve(k == 1 ? n.pad(y, 1) : y, 8, 3, 1, 8, k == 1 ? AutoPad::valid : AutoPad::same_upper)));
    y = n.normalise(n.convolve(n.excite(y), 4, 1));
    v = n.g.add(Add{}, {v, y});
  }
  n.classify(v);
  EXPECT_EQ(left_of(n.g), 1u);
}

TEST(ChannelsLast, partsAndShuffles) {
  Network n({1, 12, 12, 4});
  auto v = n.block(n.input(), 8, 3, 2);
  for (int k = 0; k < 3; ++k) {
    const auto id = n.g.add_node(Split{2}, {v, n.g.add_constant(Tensor::scalar<std::int64_t>(3))}, "", 2);
    const auto parts = n.g.node(id).outputs;
    v = n.concat({parts[0], n.block(n.block(parts[1], 4, 1), 4, 3)});
  }
  n.classify(v);
  EXPECT_EQ(left_of(n.g), 1u);
}

TEST(ChannelsLast, segmentation) {
  Network n({1, 16, 16, 3});
  const auto a = n.block(n.input(), 4, 3, 2), b = n.block(a, 6, 3, 2);
  Interpolate op;
  op.mode = InterpolateMode::linear_onnx;
  const auto up = n.g.add(op, {n.convolve(b, 4, 1), n.ints({8, 8}), n.ints({1, 2})});
  const auto sum = n.block(n.g.add(Add{}, {up, n.convolve(a, 4, 1)}), 3, 3);
  const auto whole = n.g.add(op, {sum, n.ints({16, 16}), n.ints({1, 2})});
  n.g.add_result("y", n.g.add(Softmax{3}, {whole}));
  Graph after = n.g;
  RuleOptions options;
  options.last = RuleSet::portable;
  Ledger ledger;
  optimize(after, options, ledger);
  EXPECT_EQ(difference_by_value(n.g, after, seeded_inputs(n.g, 1), 1e-4), "");
  EXPECT_EQ(transposes(after), 2u) << print_graph(after, {true, 4}).text;
}

}  // namespace
}  // namespace lamina::testing
