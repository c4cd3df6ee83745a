/// Plans of several threads, of waiting parts, and what is kept of them.
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <barrier>
#include <thread>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

const char* const kNet =
    "graph (x: f32[N,4,H,8]) -> (y) {\n w = const f32[8,4,3,3] seed(1)\n y = Convolution(x, w)\n}\n";
/// A waiting part behind NonZero.
const char* const kWaiting =
    "graph (x: f32[1,N]) -> (y) {\n w = const f32[1,1] {2}\n m = Multiply(x, w)\n i = NonZero(m)\n f = "
    "Convert(i) destination_type=f32\n y = Exp(f)\n}\n";

/// Counts the plans that are made.
struct Counted {
  explicit Counted(const std::string& text, int threads = 1, ProgramOptions options = {})
      : graph(parse(text)) {
    options.threads = threads;
    options.rewrite = [this](Graph&, const std::vector<Carried>&) {
      ++made;
      if (during) during();
      return Ledger();
    };
    program = std::make_shared<Program>(graph, options, std::make_shared<ModelWeights>());
  }
  Graph graph;
  std::atomic<int> made{0};
  std::function<void()> during;  ///< called while a plan is made
  std::shared_ptr<const Program> program;
};

Tensor picture(std::int64_t height, std::uint64_t seed = 1) {
  return seeded_tensor(ElementType::f32, {1, 4, height, 8}, seed);
}

Tensor run(Runner& runner, const Tensor& x) {
  runner.set_input(0, x);
  runner.run();
  return runner.output(0).clone();
}

/// `count` ones and a zero.
Tensor ones(std::int64_t count) {
  std::vector<float> v(static_cast<std::size_t>(count) + 1, 1);
  v.back() = 0;
  return Tensor::of({1, count + 1}, v);
}

TEST(PlanCache, one_plan_for_requests_that_begin_at_once) {
  Counted c(kNet);
  c.during = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  constexpr int kThreads = 8;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  std::vector<Tensor> got(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Runner runner(c.program);
      start.arrive_and_wait();
      got[static_cast<std::size_t>(t)] = run(runner, picture(5));
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(c.made, 1);
  const auto wanted = interpret(c.graph, {picture(5)})[0];
  for (const auto& g : got) expect_close(g, wanted, "y");
}

TEST(PlanCache, one_plan_for_waiting_parts_too) {
  Counted c(kWaiting);
  c.during = [] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
  constexpr int kThreads = 4;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      Runner runner(c.program);
      start.arrive_and_wait();
      run(runner, ones(3));
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(c.made, 2);
}

/// Requests run in the caller's arena, from within its loop: who makes a plan waits for loops of its own, and
/// must not take up another request meanwhile, which would wait for that plan.
TEST(PlanCache, inside_a_loop_of_the_callers_arena) {
  for (const int threads : {1, 2, 4}) {
    Counted c(kNet, threads);
    c.during = [] {
      tbb::parallel_for(0, 64, [](int) { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
    };
    tbb::task_arena arena(threads);
    std::atomic<int> wrong{0};
    const auto wanted = interpret(c.graph, {picture(5)})[0];
    arena.execute([&] {
      tbb::parallel_for(
          0, 48,
          [&](int i) {
            Runner runner(c.program);
            const auto height = 5 + i % 3;
            const auto y = run(runner, picture(height));
            if (height == 5 && to_floats(y).size() != to_floats(wanted).size()) ++wrong;
          },
          tbb::simple_partitioner());
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(c.made, 3) << threads;
  }
}

/// With arenas of the requests' own, all of whose threads are busy with the caller's loop.
TEST(PlanCache, inside_a_loop_of_another_arena) {
  Counted c(kNet, 3);
  c.during = [] {
    tbb::parallel_for(0, 64, [](int) { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
  };
  tbb::task_arena arena(2);
  arena.execute([&] {
    tbb::parallel_for(
        0, 16,
        [&](int) {
          Runner runner(c.program);
          run(runner, picture(5));
        },
        tbb::simple_partitioner());
  });
  EXPECT_EQ(c.made, 1);
}

TEST(PlanCache, the_next_one_tries_when_the_maker_fails) {
  Counted c(kNet);
  c.during = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (c.made == 1) throw std::bad_alloc();
  };
  constexpr int kThreads = 4;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0}, done{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      Runner runner(c.program);
      start.arrive_and_wait();
      try {
        run(runner, picture(5));
        ++done;
      } catch (const std::bad_alloc&) {
        ++failed;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(done, kThreads - 1);
  EXPECT_EQ(c.made, 2);
}

TEST(PlanCache, the_bound_counts_waiting_parts) {
  ProgramOptions options;
  options.cached_plans = 3;
  Counted c(kWaiting, 1, options);
  Runner runner(c.program);
  for (std::int64_t n = 1; n < 12; ++n) {
    run(runner, ones(n));
    EXPECT_LE(c.program->cache()->plans(), 3u);
  }
  EXPECT_EQ(c.program->cache()->plans(), 3u);
}

/// A plan is used as long as its waiting parts are: it goes after them.
TEST(PlanCache, waiting_parts_go_before_what_they_are_a_part_of) {
  ProgramOptions options;
  options.cached_plans = 4;
  Counted c(kWaiting, 1, options);
  Runner runner(c.program);
  Tensor x(ElementType::f32, {1, 16});
  for (std::size_t n = 0; n < 16; ++n) {  // one plan of the model, one of its waiting part for each count
    x.data<float>()[n] = 1;
    run(runner, x);
  }
  const int before = c.made;
  EXPECT_EQ(before, 17);
  Runner other(c.program);
  run(other, x);
  EXPECT_EQ(c.made, before);
}

TEST(PlanCache, the_bound_in_bytes_counts_folded_constants) {
  // The weights that are folded depend on the height: 128 kB for each.
  const std::string text =
      "graph (x: f32[1,128,H,1]) -> (y) {\n w = const f32[256,128,1,1] seed(1)\n s = ShapeOf(x)\n i = const "
      "i64[1] {2}\n a = const i64[] {0}\n h = Gather(s, i, a)\n f = Convert(h) destination_type=f32\n v = "
      "Multiply(w, f)\n y = Convolution(x, v)\n}\n";
  ProgramOptions options;
  options.rewrite = [](Graph& graph, const std::vector<Carried>&) {
    Ledger ledger;
    optimize(graph, {}, ledger);
    return ledger;
  };
  options.cached_plans = 100;
  options.cached_bytes = std::size_t{1} << 20;
  const auto program = std::make_shared<Program>(parse(text), options, std::make_shared<ModelWeights>());
  for (std::int64_t h = 1; h < 20; ++h) {
    Runner runner(program);
    run(runner, seeded_tensor(ElementType::f32, {1, 128, h, 1}, 1));
  }
  EXPECT_LE(program->cache()->bytes(), options.cached_bytes);
  EXPECT_GE(program->cache()->plans(), 2u);
  EXPECT_LE(program->cache()->plans(), 7u) << "128 kB folded, and 128 kB packed or the same ones";
}

TEST(PlanCache, weights_of_the_model_do_not_count) {
  const auto program = std::make_shared<Program>(
      parse("graph (x: f32[N,256]) -> (y) {\n w = const f32[256,1024] seed(1)\n y = MatMul(x, w)\n}\n"),
      ProgramOptions{}, std::make_shared<ModelWeights>());
  Runner runner(program);
  run(runner, seeded_tensor(ElementType::f32, {2, 256}, 1));
  EXPECT_LT(program->cache()->bytes(), std::size_t{1} << 18);
}

TEST(PlanCache, shapes_in_turn_make_nothing_anew) {
  ProgramOptions options;
  options.cached_plans = 1;  // the request itself keeps what it has just used
  Counted c(kWaiting, 1, options);
  Runner runner(c.program);
  for (int i = 0; i < 3; ++i)
    for (const std::int64_t n : {2, 3}) {
      const auto x = ones(n);
      expect_close(run(runner, x), interpret(c.graph, {x})[0], "y");
    }
  EXPECT_EQ(c.made, 4) << "one of the model and one of its waiting part for each shape";
}

TEST(PlanCache, types_that_the_graph_leaves_open) {
  Counted c("graph (x: undefined[2]) -> (y) {\n y = Add(x, x)\n}\n");
  Runner runner(c.program);
  expect_close(run(runner, Tensor::of<float>({2}, std::vector<float>{1, 2})),
               Tensor::of<float>({2}, std::vector<float>{2, 4}), "y");
  expect_close(run(runner, Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1, 2})),
               Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{2, 4}), "y");
}

TEST(WeightStore, turned_weights_of_binary_convolutions_are_shared) {
  const std::string text =
      "graph (x: boolean[1,32,H,8]) -> (y) {\n w = const u1[64,32,3,3] seed(1)\n y = BinaryConvolution(x, w) "
      "{\n body graph (a: f32[1,64,?,6]) -> (r) {\n m = const f32[] {3}\n r = Greater(m, a)\n }\n }\n}\n";
  const auto program =
      std::make_shared<Program>(parse(text), ProgramOptions{}, std::make_shared<ModelWeights>());
  Runner runner(program);
  std::vector<std::size_t> bytes;
  for (const std::int64_t h : {8, 9}) {
    run(runner, seeded_tensor(ElementType::boolean, {1, 32, h, 8}, 1));
    bytes.push_back(program->weight_bytes());
  }
  EXPECT_GT(bytes[0], 0u);
  EXPECT_EQ(bytes[0], bytes[1]);
}

}  // namespace
}  // namespace lamina::testing
