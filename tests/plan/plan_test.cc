#include <gtest/gtest.h>

#include <set>

#include "plan/memory.h"
#include "plan/segment.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

TEST(Memory, blocks_alive_together_do_not_overlap) {
  SplitMix random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 40; ++i) {
      const auto first = static_cast<std::uint32_t>(random.below(30));
      blocks.push_back({random.below(5000), first, first + static_cast<std::uint32_t>(random.below(10)), 0});
    }
    const auto size = place(blocks);
    EXPECT_GE(size, live_bound(blocks));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].offset % 64, 0u);
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, size);
      for (std::size_t j = 0; j < i; ++j) {
        const bool together = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
        const bool apart = blocks[i].offset + blocks[i].bytes <= blocks[j].offset ||
                           blocks[j].offset + blocks[j].bytes <= blocks[i].offset;
        EXPECT_TRUE(!together || apart || blocks[i].bytes == 0 || blocks[j].bytes == 0);
      }
    }
  }
}

TEST(Memory, a_chain_needs_two_blocks) {
  std::vector<Block> chain;
  for (std::uint32_t i = 0; i < 10; ++i) chain.push_back({1024, i, i + 1, 0});
  EXPECT_EQ(place(chain), 2048u);
  EXPECT_EQ(live_bound(chain), 2048u);
}

TEST(Segments, data_dependent_shapes_end_a_segment) {
  const auto g = parse(
      "graph (x: f32[4]) -> (y) {\n n = NonZero(x)\n z = const i64[] {0}\n s = ReduceSum(n, z)\n y = Add(s, "
      "s)\n}\n");
  const auto parts = segment(g);
  EXPECT_EQ(parts.planned.size(), 1u);
  EXPECT_EQ(parts.dynamic.size(), 1u);
  EXPECT_EQ(parts.waiting.size(), 2u);
}

TEST(Plan, runs_what_depends_on_data) {
  const auto g = parse(
      "graph (x: f32[2,3]) -> (y, n) {\n n = NonZero(x)\n f = Convert(n) destination_type=f32\n y = "
      "Relu(f)\n}\n");
  for (const auto& values : {std::vector<float>{0, 1, 0, 2, 0, 0}, std::vector<float>{1, 1, 1, 1, 1, 1},
                             std::vector<float>{0, 0, 0, 0, 0, 0}}) {
    const std::vector<Tensor> in{Tensor::of({2, 3}, values)};
    const auto wanted = interpret(g, in), got = run_graph(g, in).outputs;
    expect_close(got[0], wanted[0], "y");
    expect_close(got[1], wanted[1], "n");
  }
}

TEST(Plan, runs_what_depends_on_values_of_inputs) {
  const auto g = parse("graph (x: f32[2,6], p: i64[2]) -> (y) {\n r = Reshape(x, p)\n y = Relu(r)\n}\n");
  for (const Ints& p : {Ints{3, 4}, Ints{12, 1}, Ints{-1, 2}}) {
    const std::vector<Tensor> in{seeded_tensor(ElementType::f32, {2, 6}, 1), Tensor::of({2}, p)};
    expect_close(run_graph(g, in).outputs[0], interpret(g, in)[0], "y");
  }
}

/// What waits reads values of nodes that are decomposed when kernels are chosen.
TEST(Plan, runs_what_depends_on_epilogues_that_were_decomposed) {
  const auto values = parse(R"(graph (x: f32[2,8]) -> (y) {
  w = const f32[8] seed(1)
  t = const f32[1] {3}
  a = const i64[1] {0}
  k = MatMul(x, w)
  m = ReduceMean(k, a) keep_dims=true { body graph (p: f32[1]) -> (s) {
    z = const f32[] {0.001}
    d = const f32[] {3}
    q = Multiply(p, z)
    r = Add(q, d)
    s = Convert(r) destination_type=i64
  } }
  y = Broadcast(t, m)
})");
  const auto data = parse(R"(graph (x: f32[1,64,28,28], z: f32[64], k: f32[1,96,28,28]) -> (y) {
  w = const f32[96,64,3,3] seed(1)
  s = const i64[1] {-1}
  a = const i64[1] {1}
  r = Convolution(x, w, _, _, _, k) pads_begin=[1,1] pads_end=[1,1] { body graph (p: f32[1,96,28,28], k: f32[1,96,28,28]) -> (c) {
    b = Relu(p)
    c = Add(b, k)
  } }
  n = NonZero(z)
  i = Reshape(n, s)
  y = Gather(r, i, a)
})");
  for (const auto& g : {values, data})
    for (std::uint64_t any_kernels = 0; any_kernels < 6; ++any_kernels) {
      ProgramOptions options;
      options.any_kernels = any_kernels;
      Runner runner(std::make_shared<Program>(g, options, std::make_shared<ModelWeights>()));
      const auto in = random_inputs(g, 2);
      for (std::size_t i = 0; i < in.size(); ++i) runner.set_input(i, in[i]);
      runner.run();
      expect_close(runner.output(0), interpret(g, in)[0], fmt::format("any kernels {}", any_kernels));
    }
}

TEST(Plan, results_that_are_inputs_constants_and_twice_the_same) {
  const auto g = parse(
      "graph (x: f32[1,3,4,4]) -> (x, c, \"a\" = y, \"b\" = y, v) {\n c = const f32[2] {1, 2}\n y = "
      "Relu(x)\n p = const i64[1] {-1}\n v = Reshape(y, p)\n}\n");
  const auto in = random_inputs(g, 3);
  const auto wanted = interpret(g, in), got = run_graph(g, in).outputs;
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(got[i], wanted[i], g.results()[i].name);
}

TEST(Plan, transposes_between_channels_first_and_last_move_nothing) {
  const auto g = parse(
      "graph (x: f32[1,9,7,16]) -> (z) {\n p = const i64[4] {0,3,1,2}\n q = const i64[4] {0,2,3,1}\n"
      " w = const f32[32,16,3,3] seed(1)\n t = Transpose(x, p)\n c = Convolution(t, w)\n"
      " u = Transpose(c, q)\n s = const i64[3] {1, -1, 4}\n r = Reshape(u, s)\n z = Relu(r)\n}\n");
  const auto in = random_inputs(g, 5);
  const auto got = run_graph(g, in);
  expect_close(got.outputs[0], interpret(g, in)[0], "z");
  EXPECT_EQ(got.labels.size(), 2u) << fmt::format("{}", fmt::join(got.labels, " "));
}

TEST(Plan, reshapes_of_spatial_axes_keep_channels_last) {
  const auto g = parse(
      "graph (x: f32[1,16,8,8]) -> (z) {\n w = const f32[16,16,3,3] seed(1)\n c = Convolution(x, w)\n"
      " s = const i64[3] {1, 16, 36}\n r = Reshape(c, s)\n v = const f32[16,16,1] seed(2)\n"
      " d = Convolution(r, v)\n z = Tanh(d)\n}\n");
  const auto in = random_inputs(g, 6);
  const auto got = run_graph(g, in);
  expect_close(got.outputs[0], interpret(g, in)[0], "z");
}

TEST(Plan, in_place_never_destroys_what_is_read_later) {
  const auto g = parse(
      "graph (x: f32[1,8,6,6]) -> (y) {\n w = const f32[8,8,1,1] seed(1)\n a = Convolution(x, w)\n b = "
      "Relu(a)\n c = Sigmoid(a)\n d = Multiply(b, c)\n e = Add(d, a)\n f = Abs(e)\n y = Add(f, b)\n}\n");
  const auto in = random_inputs(g, 4);
  expect_close(run_graph(g, in).outputs[0], interpret(g, in)[0], "y");
}

TEST(Plan, unsupported_operators_are_all_named) {
  const auto g = parse(
      "graph (x: f32[2]) -> (y) {\n a = Opaque(x) domain=\"d\" type=\"Foo\" @\"one\"\n y = Opaque(a) "
      "domain=\"d\" type=\"Bar\" @\"two\"\n}\n");
  try {
    require_supported(g);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    for (const char* part : {"unsupported: ", "Foo", "Bar", "\"one\"", "\"two\""})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

/// What random graphs rely on to run kernels that are not the fastest here.
TEST(Plan, any_kernels) {
  const auto graph = parse(
      "graph (x: f32[1,16,9,9]) -> (y) {\n w = const f32[16,16,1,1] seed(1)\n a = Convolution(x, w)\n"
      " b = Relu(a)\n y = Softmax(b) axis=1\n}\n");
  std::set<std::string> ways;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    ModelWeights weights;
    std::string way;
    const auto plan = make_plan(graph, weights, {.any_kernels = seed});
    for (const auto& step : plan->steps) way += step.label + " ";
    ways.insert(way);
  }
  EXPECT_GE(ways.size(), 4u);
}

}  // namespace
}  // namespace lamina::testing
