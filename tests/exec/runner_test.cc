#include <gtest/gtest.h>

#include <thread>

#include "tests/support/run_graph.h"

namespace lamina::testing::runner_test {
namespace {

const char* const kNet =
    "graph (x: f32[N,4,H,8]) -> (y) {\n w = const f32[8,4,3,3] seed(1)\n c = Convolution(x, w) "
    "pads_begin=[1,1] pads_end=[1,1]\n r = Relu(c)\n"
    " a = const i64[2] {2, 3}\n m = ReduceMean(r, a)\n v = const f32[8,5] seed(2)\n y = MatMul(m, v)\n}\n";

std::shared_ptr<const Program> program(int threads = 2, std::size_t plans = 8) {
  ProgramOptions options;
  options.threads = threads;
  options.cached_plans = plans;
  return std::make_shared<Program>(parse(kNet), options, std::make_shared<ModelWeights>());
}

TEST(Runner, changing_shapes) {
  const auto p = program(2, 2);
  Runner runner(p);
  for (const std::int64_t h : {8, 5, 8, 3, 12, 5, 8, 1}) {
    const Tensor x = seeded_tensor(ElementType::f32, {h % 3 + 1, 4, h, 8}, static_cast<std::uint64_t>(h));
    runner.set_input(0, x);
    runner.run();
    expect_close(runner.output(0), interpret(p->graph(), {x})[0], "y");
  }
}

/// Memory that lies where that of the last run lay may belong to another: a result keeps what it lies in.
TEST(Runner, results_keep_their_memory) {
  const auto p = program();
  const Dims shape{2, 4, 8, 8};
  const Tensor x = seeded_tensor(ElementType::f32, shape, 1), z = seeded_tensor(ElementType::f32, shape, 2);
  const auto wanted = interpret(p->graph(), {x})[0];
  for (const bool own : {false, true}) {
    Runner runner(p);
    runner.set_input(0, x);
    Tensor memory(ElementType::f32, wanted.shape());
    runner.set_output(0, Tensor::wrap(ElementType::f32, wanted.shape(), memory.raw()));
    runner.run();
    runner.set_output(0, own ? Tensor() : memory);
    if (own) memory = Tensor();  // the runner's own may come to lie there
    runner.run();
    const Tensor kept = runner.output(0);
    memory = Tensor();
    if (own) {
      runner = Runner(p);
    } else {
      runner.set_output(0, Tensor());
      runner.set_input(0, z);
      runner.run();
    }
    const Tensor others = seeded_tensor(ElementType::f32, wanted.shape(), 3);
    expect_close(kept, wanted, own ? "the runner's own" : "the caller's");
  }
}

TEST(Runner, weights_of_plans_that_are_gone_go_too) {
  // The constant that is folded depends on the height.
  const auto g = parse(
      "graph (x: f32[1,4,H,8]) -> (y) {\n w = const f32[8,4,3,3] seed(1)\n s = ShapeOf(x)\n i = const i64[1] "
      "{2}\n"
      " a = const i64[] {0}\n h = Gather(s, i, a)\n f = Convert(h) destination_type=f32\n v = Multiply(w, "
      "f)\n"
      " y = Convolution(x, v)\n}\n");
  ProgramOptions options;
  options.cached_plans = 2;
  options.rewrite = [](Graph& graph, const std::vector<Carried>&) {
    Ledger ledger;
    optimize(graph, {}, ledger);
    return ledger;
  };
  const auto p = std::make_shared<Program>(g, options, std::make_shared<ModelWeights>());
  std::size_t most = 0;
  for (std::int64_t h = 3; h < 90; ++h) {
    Runner runner(p);
    const Tensor x = seeded_tensor(ElementType::f32, {1, 4, h, 8}, 1);
    runner.set_input(0, x);
    runner.run();
    if (h == 8) most = p->weight_bytes();
    if (h == 89) expect_close(runner.output(0), interpret(g, {x})[0], "y");
  }
  EXPECT_GT(most, 0u);
  EXPECT_LE(p->weight_bytes(), 2 * most);
}

TEST(Runner, plans_of_other_shapes_share_all_that_was_brought_into_order) {
  const struct {
    const char *graph, *kernel;
    std::size_t least = 1;  ///< bytes
  } rows[] = {
      {"w = const f32[10,6,3,3] seed(1)\n b = const f32[10] seed(2)\n y = Convolution(x, w, b)", "native"},
      {"w = const f32[6,1,3,3] seed(1)\n b = const f32[6] seed(2)\n y = Convolution(x, w, b) groups=6",
       "native"},
      {"w = const f32[8,9] seed(1)\n b = const f32[9] seed(2)\n y = MatMul(x, w, b)", "native"},
      {"s = const f32[1] seed(1)\n b = const f32[8] seed(2)\n y = LayerNormalization(x, s, b) axis=3",
       "native"},
      {"w = const f32[6,1,3,3] seed(1)\n y = Convolution(x, w) groups=6 {\n body graph (r: f32[N,6,6,6]) -> "
       "(s) {\n "
       "c = const f32[1,6,6,6] seed(2)\n s = Multiply(r, c)\n }\n }",
       "native", 4 * 6 * (9 + 36)},
  };
  for (const auto& row : rows) {
    const auto g = parse(fmt::format("graph (x: f32[N,6,8,8]) -> (y) {{\n {}\n}}\n", row.graph));
    ProgramOptions options;
    options.force = {g.node(g.order().back()).op.name() + "=" + row.kernel};
    const auto p = std::make_shared<Program>(g, options, std::make_shared<ModelWeights>());
    std::size_t bytes = 0;
    for (const std::int64_t n : {1, 2, 3}) {
      Runner runner(p);
      const Tensor x = seeded_tensor(ElementType::f32, {n, 6, 8, 8}, 1);
      runner.set_input(0, x);
      runner.run();
      expect_close(runner.output(0), interpret(g, {x})[0], row.graph);
      if (n == 1) bytes = p->weight_bytes();
      EXPECT_EQ(p->weight_bytes(), bytes) << row.graph;
    }
    EXPECT_GE(bytes, row.least) << row.graph;
  }
}

TEST(Runner, a_plan_says_what_was_rewritten_for_its_shapes) {
  ProgramOptions options;
  options.rewrite = [](Graph& graph, const std::vector<Carried>&) {
    Ledger ledger;
    ledger.fired(ledger.rule("rule"), {"node", {}},
                 graph.type(graph.inputs()[0]).shape.dims()[2].known() ? "known" : "not");
    return ledger;
  };
  Runner runner(std::make_shared<Program>(parse(kNet), options, std::make_shared<ModelWeights>()));
  runner.set_input(0, Tensor(ElementType::f32, {1, 4, 6, 8}));
  runner.run();
  const auto firings = runner.plans().at(0)->ledger.firings();
  ASSERT_EQ(firings.size(), 1u);
  EXPECT_EQ(firings[0].text, "known");
}

TEST(Runner, requests_in_two_threads) {
  const auto p = program(1);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Runner runner(p);
      for (int i = 0; i < 30; ++i) {
        const Tensor x =
            seeded_tensor(ElementType::f32, {1, 4, 4 + i % 3, 8}, static_cast<std::uint64_t>(t * 100 + i));
        runner.set_input(0, x);
        runner.run();
        const auto wanted = to_floats(interpret(p->graph(), {x})[0]), got = to_floats(runner.output(0));
        for (std::size_t k = 0; k < got.size(); ++k)
          if (std::fabs(got[k] - wanted[k]) > 1e-3f) errors[static_cast<std::size_t>(t)] = "differs";
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& e : errors) EXPECT_EQ(e, "");
}

TEST(Runner, writes_into_the_callers_memory) {
  const auto p = program();
  Runner runner(p);
  const Tensor x = seeded_tensor(ElementType::f32, {1, 4, 6, 8}, 1);
  Tensor mine(ElementType::f32, {1, 5}), wrong(ElementType::f32, {2, 5});
  runner.set_input(0, x);
  runner.set_output(0, mine);
  runner.run();
  EXPECT_EQ(runner.output(0).raw(), mine.raw());
  expect_close(mine, interpret(p->graph(), {x})[0], "y");
  runner.set_output(0, wrong);
  EXPECT_THROW(runner.run(), Error);
  runner.set_output(0, Tensor());
  runner.run();
  EXPECT_NE(runner.output(0).raw(), mine.raw());
}

/// y waits for the shape of n; what it is made of besides is read by the first plan only.
const char* const kWaiting =
    "graph (x: f32[6]) -> (y, c) {\n n = NonZero(x)\n f = Convert(n) destination_type=f32\n"
    " a = const i64[2] {0, 1}\n s = ReduceSum(f, a)\n z = const i64[] {0}\n c = CumSum(x, z)\n y = Add(s, "
    "c)\n}\n";

struct Kept {
  Tensor tensor, copy;
  explicit Kept(const Tensor& t) : tensor(t), copy(t.clone()) {}
  bool untouched() const { return tensor.same_as(copy); }
};

Runner runner_of(const Graph& g) {
  return Runner(std::make_shared<Program>(g, ProgramOptions{}, std::make_shared<ModelWeights>()));
}

TEST(Runner, a_result_that_becomes_an_input_is_only_read) {
  const auto* const unread = "graph (x: f32[6], unread: f32[6]) -> (y) {\n y = Negative(x)\n}\n";
  for (const auto* const text : {kWaiting, unread}) {
    const auto g = parse(text);
    auto runner = runner_of(g);
    for (std::size_t i = 0; i < g.inputs().size(); ++i)
      runner.set_input(i, seeded_tensor(ElementType::f32, {6}, i));
    runner.run();
    const Kept y(runner.output(0));
    runner.set_input(g.inputs().size() - 1, y.tensor);
    runner.set_input(0, g.inputs().size() == 1 ? y.tensor : seeded_tensor(ElementType::f32, {6}, 7));
    for (int i = 0; i < 2; ++i) {
      runner.run();
      EXPECT_TRUE(y.untouched()) << text;
      expect_close(runner.output(0), interpret(g, runner.inputs())[0], "y");
    }
  }
}

TEST(Runner, a_result_that_becomes_memory_of_another_has_it_alone) {
  const auto* const pair = "graph (x: f32[6]) -> (y, c) {\n y = Negative(x)\n c = Abs(x)\n}\n";
  for (const auto* const text : {kWaiting, pair}) {
    const auto g = parse(text);
    auto runner = runner_of(g);
    runner.set_input(0, seeded_tensor(ElementType::f32, {6}, 1));
    for (std::size_t from = 0; from < 2; ++from) {
      runner.run();
      const Tensor memory = runner.output(from);
      runner.set_output(1 - from, memory);
      runner.run();
      for (std::size_t r = 0; r < 2; ++r)
        expect_close(runner.output(r), interpret(g, runner.inputs())[r], text);
      runner.set_output(1 - from, Tensor());
    }
  }
}

TEST(Runner, inputs_that_do_not_fit) {
  const auto p = program();
  Runner runner(p);
  EXPECT_THROW(runner.set_input(0, Tensor(ElementType::f32, {1, 3, 6, 8})), Error);
  EXPECT_THROW(runner.run(), Error);
  EXPECT_THROW(runner.set_input(0, Tensor(ElementType::i32, {1, 4, 6, 8})), Error);
  EXPECT_THROW(runner.run(), Error);
  runner.set_input(0, Tensor());
  EXPECT_THROW(runner.run(), Error);
}

TEST(Runner, unaligned_inputs) {
  const auto p = program();
  const Tensor x = seeded_tensor(ElementType::f32, {1, 4, 6, 8}, 1);
  std::vector<std::byte> bytes(x.bytes() + 1);
  std::copy_n(x.raw(), x.bytes(), bytes.begin() + 1);
  Runner runner(p);
  runner.set_input(0, Tensor::wrap(ElementType::f32, x.shape(), bytes.data() + 1));
  runner.run();
  expect_close(runner.output(0), interpret(p->graph(), {x})[0], "y");
}

TEST(Runner, times_every_step) {
  const auto p = program();
  Runner runner(p);
  runner.profile(true);
  runner.set_input(0, Tensor(ElementType::f32, {1, 4, 6, 8}));
  runner.run();
  EXPECT_EQ(runner.times().size(), runner.plans().at(0)->steps.size());
  EXPECT_FALSE(runner.times().empty());
}

}  // namespace
}  // namespace lamina::testing::runner_test
