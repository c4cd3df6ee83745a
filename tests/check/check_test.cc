#include "check/check.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "check/noise.h"
#include "exec/runner.h"
#include "graph/text.h"
#include "ops/operators.h"
#include "rules/optimize.h"

namespace lamina::checking {
namespace {

const std::string kPlain = R"(graph (x: f32[1,2,4,4]) -> (y) {
  w = const f32[2,2,1,1] {0.5, -0.25, 1, 0.75}
  conv = Convolution(x, w)
  r = Relu(conv)
  y = Softmax(r) axis=1
}
)";

/// An output on both sides of levels.
const std::string kQuantised = R"(graph (x: f32[1,2,4,4]) -> (y) {
  w = const f32[2,2,1,1] {0.5, -0.25, 1, 0.75}
  conv = Convolution(x, w)
  low = const f32[] {-1}
  high = const f32[] {1}
  q = FakeQuantize(conv, low, high, low, high) levels=16
  y = Softmax(q) axis=1
}
)";

/// One run of a graph, rewritten and planned.
class Ran {
 public:
  explicit Ran(const std::string& text, std::uint64_t any_kernels = 0)
      : original_(parse_graph(text, operators())), in_(seeded_tensor(ElementType::f32, {1, 2, 4, 4}, 5)) {
    auto graph = original_;
    Ledger ledger;
    optimize(graph, {}, ledger);
    ProgramOptions options;
    options.keep_weights = true;
    options.any_kernels = any_kernels;
    runner_.emplace(std::make_shared<Program>(graph, options, std::make_shared<ModelWeights>()));
    runner_->set_input(0, in_);
    runner_->run();
  }
  /// The output with every `step`-th element changed by `by`.
  Tensor output(float by = 0, std::size_t step = 1) const {
    auto out = runner_->output(0).clone();
    for (std::size_t i = 0; i < out.size(); i += step) out.data<float>()[i] += by;
    return out;
  }
  Findings check(const Tensor& got, const Tensor& stored = {}, bool half = false) const {
    return check_run({original_, {in_}, runner_->plans(), {{"y", got, stored}}, half});
  }

 private:
  Graph original_;
  Tensor in_;
  std::optional<Runner> runner_;
};

TEST(CheckRun, judges_values_layers_and_outputs) {
  for (const auto& text : {kPlain, kQuantised}) {
    const Ran ran(text);
    const auto found = ran.check(ran.output());
    EXPECT_EQ(found.faults(), 0u);
    EXPECT_GE(found.values.size(), 1u);
    EXPECT_GE(found.layers.size(), 1u);
    ASSERT_EQ(found.outputs.size(), 1u);
    EXPECT_EQ(found.outputs[0].name, "y");
    EXPECT_EQ(found.outputs[0].against, "interpreter");
    EXPECT_TRUE(found.wrong.empty());
  }
}

TEST(CheckRun, an_output_of_a_quantised_graph_is_held_against_its_layers_one_by_one) {
  const Ran plain(kPlain), quantised(kQuantised);
  const auto of_plain = plain.check(plain.output(0.02f, 8));
  EXPECT_EQ(of_plain.faults(), 1u);
  EXPECT_EQ(of_plain.outputs.at(0).against, "interpreter");
  const auto of_quantised = quantised.check(quantised.output(0.02f, 8));
  EXPECT_EQ(of_quantised.faults(), 1u);
  EXPECT_EQ(of_quantised.outputs.at(0).against, "layers one by one");
}

TEST(CheckRun, half_precision_is_judged_as_such) {
  const Ran ran(kPlain);
  EXPECT_EQ(ran.check(ran.output(0.005f), {}, false).faults(), 1u);
  EXPECT_EQ(ran.check(ran.output(0.005f), {}, true).faults(), 0u);
}

/// Parts that lie in a tensor around both, that have no channels, that are all there is.
TEST(CheckRun, parts_of_concats) {
  for (const std::string body : {" b = Tanh(x)\n i = Concat(a, b) axis=1\n c = Concat(i, b) axis=1\n",
                                 " i = Concat(a, e) axis=1\n c = Concat(i, f) axis=1\n",
                                 " g = Convolution(f, w)\n h = Relu(e)\n i = Concat(h, g, e) axis=1\n c = "
                                 "Concat(i, a) axis=1\n"})
    for (std::uint64_t any_kernels = 0; any_kernels < 20; ++any_kernels) {
      const Ran run(
          "graph (x: f32[1,2,4,4]) -> (y) {\n w = const f32[2,2,1,1] seed(1)\n v = const f32[2,4,1,1] "
          "seed(2)\n"
          " n = const i64[2] {0, 2}\n s = const i64[] {1}\n k = Convolution(x, w)\n a = Relu(x)\n"
          " e, f = VariadicSplit(k, s, n)\n" +
              body + " y = Sigmoid(c)\n}\n",
          any_kernels);
      EXPECT_EQ(run.check(run.output()).faults(), 0u) << body << any_kernels;
    }
}

TEST(CheckRun, stored_outputs_are_judged_by_themselves) {
  const Ran ran(kPlain);
  const auto found = ran.check(ran.output(), ran.output(0.02f, 8));
  ASSERT_EQ(found.outputs.size(), 2u);
  EXPECT_TRUE(found.outputs[0].ok());
  EXPECT_EQ(found.outputs[1].against, "stored output");
  EXPECT_FALSE(found.outputs[1].ok());
  EXPECT_EQ(found.faults(), 1u);
}

/// It ends when its numbers no longer change, which they do in each iteration with noise.
TEST(CheckRun, noise_in_a_loop_that_ends_when_nothing_changes) {
  const auto graph = parse_graph(R"(graph (a: f32[64]) -> (y) {
  t = const boolean[] {1}
  y = Loop(_, t, a, a) carried=1 {
    body graph (i: i64[], c: boolean[], v: f32[64], b: f32[64]) -> (o, w) {
      q = Divide(b, v)
      s = Add(v, q)
      h = const f32[] {0.5}
      w = Multiply(s, h)
      d = Subtract(w, v)
      e = Abs(d)
      n = const i64[1] {0}
      m = ReduceMax(e, n) keep_dims=false
      l = const f32[] {1e-6}
      o = Greater(m, l)
    }
  }
}
)",
                                 operators());
  Tensor a(ElementType::f32, {64});
  for (std::size_t i = 0; i < a.size(); ++i) a.data<float>()[i] = 1 + 0.125f * static_cast<float>(i);
  const auto noisy = run_with_noise(graph, {a});
  EXPECT_EQ(noisy.results.size(), 4u);
}

/// An axis of 0 with longer ones before it: there is no row of scores to look at.
TEST(CheckRun, stored_outputs_without_elements) {
  for (const Dims& dims : {Dims{1, 5, 0}, {5, 0}, {0, 5}, {5, 0, 0}, {2, 0, 3}, {0}}) {
    const Tensor none(ElementType::f32, dims);
    const auto found = agreement(none, none);
    EXPECT_TRUE(found.ok());
    EXPECT_FALSE(found.ranking);
    EXPECT_TRUE(judge_stored({.got = none, .stored = none, .exact = none, .samples = {none}}).ok());
  }
}

/// The sums of the convolution pass f32's range. With the factor in its weights they do not.
TEST(CheckRun, what_follows_from_a_sum_that_rules_keep_in_range_is_no_mismatch) {
  const Ran ran(R"(graph (x: f32[1,2,4,4]) -> (y) {
  w = const f32[2,2,1,1] {3e38, 3e38, 1e38, 2}
  conv = Convolution(x, w)
  f = const f32[] {0.001}
  y = Multiply(conv, f)
}
)");
  const auto found = ran.check(ran.output());
  EXPECT_EQ(found.faults(), 0u);
  ASSERT_EQ(found.outputs.size(), 1u);
  EXPECT_EQ(found.outputs[0].against, "layers one by one");
  EXPECT_EQ(ran.check(ran.output(1e36f, 7)).faults(), 1u);
}

}  // namespace
}  // namespace lamina::checking
