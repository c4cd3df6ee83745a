/// What is stopped in the midst: loops, long operators, compilation; and that all works on afterwards.
#include <atomic>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "base/cancellation.h"
#include "tests/api/children.h"
#include "tests/api/small_models.h"
#include "tests/support/onnx_model.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Longs = std::vector<std::int64_t>;

constexpr auto kSoon = 20s;  // generous: what is not stopped takes for ever, or many minutes

Model model_of(const OnnxGraph& graph, int opset = 13) {
  const auto bytes = onnx_model(graph, opset);
  return Model::from_memory({.model = bytes_of(bytes), .name = "test.onnx"});
}

/// y = x, after a Loop that runs for ever where `go` is true, and not at all where it is false.
OnnxGraph endless() {
  OnnxGraph body, g;
  body.input("i", ElementType::i64, {})
      .input("c", ElementType::boolean, {})
      .input("v", ElementType::f32, {"1", "4"});
  body.node("Identity", {"c"}, {"o"}).node("Add", {"v", "v"}, {"w"}).output("o").output("w");
  g.input("x", ElementType::f32, {"1", "4"}).input("go", ElementType::boolean, {});
  g.node("Loop", {"", "go", "x"}, {"y"}, {graph_attribute("body", body.bytes())}, "forever").output("y");
  return g;
}

Tensor four(float value) {
  Tensor t(ElementType::f32, {1, 4});
  for (auto& v : t.data<float>()) v = value;
  return t;
}

/// A model that takes very long with these inputs, and does not with those.
struct Long {
  CompiledModel compiled;
  std::vector<Tensor> slow, quick;

  Request ready(bool is_slow) const {
    auto r = compiled.create_request();
    set(r, is_slow);
    return r;
  }
  void set(Request& r, bool is_slow) const {
    const auto& inputs = is_slow ? slow : quick;
    for (std::size_t i = 0; i < inputs.size(); ++i) r.set_input(i, inputs[i]);
  }
};

Long loop(const Options& options = {}) {
  return {CompiledModel(model_of(endless()), options),
          {four(1), Tensor::scalar<bool>(true)},
          {four(3), Tensor::scalar<bool>(false)}};
}

/// Boxes beside each other: each is compared with all that are kept.
Long suppression(const Options& options) {
  OnnxGraph g;
  g.input("boxes", ElementType::f32, {"1", "n", "4"}).input("scores", ElementType::f32, {"1", "c", "n"});
  g.initializer("most", Tensor::scalar<std::int64_t>(1 << 20))
      .initializer("iou", Tensor::scalar<float>(0.5F));
  g.node("NonMaxSuppression", {"boxes", "scores", "most", "iou"}, {"y"}, {}, "nms").output("y");
  const auto inputs = [](std::int64_t boxes, std::int64_t classes) {
    Tensor places(ElementType::f32, {1, boxes, 4}), scores(ElementType::f32, {1, classes, boxes});
    auto* p = places.data<float>().data();
    for (std::int64_t b = 0; b < boxes; ++b)
      for (int i = 0; i < 4; ++i) *p++ = static_cast<float>(2 * b + i / 2);
    std::uint32_t state = 1;
    for (auto& s : scores.data<float>()) s = static_cast<float>((state = state * 1664525 + 1013904223) >> 8);
    return std::vector<Tensor>{places, scores};
  };
  return {CompiledModel(model_of(g), options), inputs(20000, 80), inputs(10, 2)};
}

/// A Fourier transform whose length is a prime number.
Long fourier(const Options& options) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "n", "2"});
  g.node("DFT", {"x"}, {"y"}, {attribute("axis", 1)}, "dft").output("y");
  return {CompiledModel(model_of(g, 17), options),
          {Tensor(ElementType::f32, {1, 999983, 2})},
          {Tensor(ElementType::f32, {1, 7, 2})}};
}

/// A Scan over many steps of some length each.
Long scan(const Options& options) {
  OnnxGraph body, g;
  body.input("s", ElementType::f32, {"64", "64"}).input("e", ElementType::f32, {"1"});
  body.node("MatMul", {"s", "s"}, {"p"})
      .node("Tanh", {"p"}, {"q"})
      .node("Add", {"q", "e"}, {"t"})
      .output("t");
  g.input("s0", ElementType::f32, {"64", "64"}).input("x", ElementType::f32, {"n", "1"});
  g.node("Scan", {"s0", "x"}, {"last"},
         {graph_attribute("body", body.bytes()), attribute("num_scan_inputs", 1)}, "scan")
      .output("last");
  return {CompiledModel(model_of(g), options),
          {Tensor(ElementType::f32, {64, 64}), Tensor(ElementType::f32, {1 << 24, 1})},
          {Tensor(ElementType::f32, {64, 64}), Tensor(ElementType::f32, {2, 1})}};
}

/// One step after the other of an LSTM.
Long recurrent(const Options& options) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n", "1", "8"});
  Tensor w(ElementType::f32, {1, 4 * 256, 8}), r(ElementType::f32, {1, 4 * 256, 256});
  g.initializer("w", w).initializer("r", r);
  g.node("LSTM", {"x", "w", "r"}, {"", "y"}, {attribute("hidden_size", 256)}, "lstm").output("y");
  return {CompiledModel(model_of(g), options),
          {Tensor(ElementType::f32, {1 << 21, 1, 8})},
          {Tensor(ElementType::f32, {3, 1, 8})}};
}

Long sorting(const Options& options) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n"}).initializer("axis", Tensor::of<std::int64_t>({1}, Longs{0}));
  g.node("Unique", {"x"}, {"y"}, {}, "unique").output("y");
  Tensor x(ElementType::f32, {1 << 25});
  std::uint32_t state = 1;
  for (auto& v : x.data<float>()) v = static_cast<float>((state = state * 1664525 + 1013904223) >> 8);
  return {CompiledModel(model_of(g), options), {x}, {Tensor(ElementType::f32, {5})}};
}

Long contraction(const Options& options) {
  OnnxGraph g;
  g.input("a", ElementType::i32, {"i", "j"}).input("b", ElementType::i32, {"j", "k"});
  g.node("Einsum", {"a", "b"}, {"y"}, {attribute("equation", "ij,jk->ik")}, "einsum").output("y");
  const auto square = [](std::int64_t n) { return Tensor(ElementType::i32, {n, n}); };
  return {CompiledModel(model_of(g), options), {square(3000), square(3000)}, {square(4), square(4)}};
}

struct Case {
  const char* name;
  Long (*make)(const Options&);
};

class Cancellation : public ::testing::TestWithParam<std::tuple<Case, int>> {
 protected:
  const Long long_ = std::get<0>(GetParam()).make({.threads = 2, .streams = std::get<1>(GetParam())});

  /// What an inference on small inputs gives is what it always gives.
  void expect_works(Request& r) const {
    long_.set(r, false);
    auto fresh = long_.ready(false);
    fresh.run();
    r.run();
    EXPECT_TRUE(r.output(0).same_as(fresh.output(0)));
  }
};
INSTANTIATE_TEST_SUITE_P(
    Kinds, Cancellation,
    ::testing::Combine(::testing::Values(Case{"Loop", loop}, Case{"NonMaxSuppression", suppression},
                                         Case{"DFT", fourier}, Case{"Scan", scan}, Case{"LSTM", recurrent},
                                         Case{"Unique", sorting}, Case{"Einsum", contraction}),
                       ::testing::Values(0, 1)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) == 0 ? "" : "OnStreams");
    });

TEST_P(Cancellation, ends_a_run_in_the_midst) {
  auto r = long_.ready(true);
  for (int round = 0; round < 2; ++round) {
    long_.set(r, true);
    std::string found;
    std::thread runner([&] { found = error_of([&] { r.run(); }, ErrorCode::canceled); });
    while (r.status() != RequestStatus::running) std::this_thread::yield();
    std::this_thread::sleep_for(100ms);  // planning is over, mostly
    const auto begin = Clock::now();
    r.cancel();
    runner.join();
    EXPECT_LT(Clock::now() - begin, kSoon);
    std::printf("[ waited ] %.1f ms\n",
                std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    EXPECT_EQ(found, "the inference was canceled");
    EXPECT_EQ(r.status(), RequestStatus::canceled);
    EXPECT_THROW((void)r.output(0), Error);
    expect_works(r);
  }
}

TEST_P(Cancellation, goes_with_the_request) {
  if (std::get<1>(GetParam()) == 0) return;
  {
    auto r = long_.ready(true);
    r.start();
    std::this_thread::sleep_for(50ms);
  }
  auto other = long_.ready(false);
  expect_works(other);
}

TEST_P(Cancellation, deadlines) {
  auto options = Options{.threads = 1, .streams = std::get<1>(GetParam())};
  options.limits.run_seconds = 0.2;
  const auto limited = std::get<0>(GetParam()).make(options);
  auto r = limited.ready(true);
  expect_error([&] { r.run(); }, ErrorCode::over_limit, "took more than 0.2 s (LIMIT_RUN_SECONDS)");
  EXPECT_EQ(r.status(), RequestStatus::failed);
  expect_works(r);
}

TEST(CancellationOfLoops, shutdown_ends_what_was_started) {
  const auto endless = loop({.streams = 1});
  auto r = endless.ready(true), queued = endless.ready(true);
  r.start();
  queued.start();
  std::this_thread::sleep_for(20ms);
  shutdown();
  for (auto* one : {&r, &queued}) EXPECT_NE(error_of([&] { one->wait(); }, ErrorCode::canceled), "");
  endless.set(r, false);
  r.start();
  r.wait();
  EXPECT_EQ(r.output(0).data<float>()[0], 3);
}

TEST(CancellationOfLoops, shutdown_ends_run_of_another_thread) {
  const auto endless = loop({.streams = 0});
  auto r = endless.ready(true);
  std::thread runner([&] { (void)error_of([&] { r.run(); }, ErrorCode::canceled); });
  while (r.status() != RequestStatus::running) std::this_thread::yield();
  shutdown();
  runner.join();
  endless.set(r, false);
  r.run();
}

TEST(CancellationOfLoops, a_fork_does_not_wait_for_the_end) {
  if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  for (const int streams : {0, 1}) {
    const auto endless = loop({.streams = streams});
    auto r = endless.ready(true);
    std::thread runner([&] { (void)error_of([&] { r.run(); }, ErrorCode::canceled); });
    while (r.status() != RequestStatus::running) std::this_thread::yield();
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(in_child([&] {
                  auto own = endless.ready(false);
                  own.run();
                  if (streams > 0) own.start(), own.wait();
                  return own.output(0).data<float>()[0] == 3;
                }),
                0);
    EXPECT_EQ(r.status(), RequestStatus::running);  // the parent does not notice
    r.cancel();
    runner.join();
  }
}

TEST(CancellationOfLoops, limit_of_iterations) {
  Options options{.streams = 0};
  options.limits.loop_iterations = 1000;
  const auto endless = loop(options);
  auto r = endless.ready(true);
  expect_error([&] { r.run(); }, ErrorCode::over_limit, "(LIMIT_LOOP_ITERATIONS)");
  expect_error([&] { r.run(); }, ErrorCode::over_limit,
               "(Loop): the loop has not ended after 1000 iterations");
  endless.set(r, false);
  r.run();
}

TEST(CancellationOfLoopsDeathTest, exit_does_not_wait_for_the_end) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int streams : {0, 1})
    EXPECT_EXIT(
        {
          const auto endless = loop({.streams = streams});
          static auto started = endless.ready(true);
          if (streams > 0) started.start();
          std::thread([&] {
            auto own = endless.ready(true);
            own.run();
          }).detach();
          std::this_thread::sleep_for(50ms);
          std::exit(7);
        },
        ::testing::ExitedWithCode(7), "");
}

/// Products of constants that would take minutes to fold.
OnnxGraph products_of_constants() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "2048"})
      .initializer("s", Tensor::of<std::int64_t>({2}, Longs{2048, 2048}));
  g.node("ConstantOfShape", {"s"}, {"w0"});
  for (int i = 0; i < 40; ++i)
    g.node("MatMul", {"w" + std::to_string(i), "w0"}, {"w" + std::to_string(i + 1)});
  g.node("MatMul", {"x", "w40"}, {"y"}).output("y");
  return g;
}

TEST(CancellationOfCompiling, from_the_progress_callback) {
  const auto model = lamina::testing::model_of(products(20, 64));
  std::stop_source source;
  Options options;
  options.stop = source.get_token();
  options.progress = [&](std::string_view, double) { source.request_stop(); };
  expect_error([&] { const CompiledModel compiled(model, options); }, ErrorCode::canceled,
               "compiling was canceled");
  const CompiledModel compiled(model, {});
  auto r = compiled.create_request();
  r.set_input(0, square(64, 0.001F));
  r.run();
}

TEST(CancellationOfCompiling, from_another_thread) {
  std::string text = "graph";  // the model is compiled again and again until the stop comes
  const auto model = lamina::testing::model_of(products(60, 128));
  std::stop_source source;
  Options options;
  options.stop = source.get_token();
  std::atomic<bool> compiling = false;
  std::string found;
  std::thread compiler([&] {
    found = error_of(
        [&] {
          for (;;) {
            compiling = true;
            const CompiledModel compiled(model, options);
          }
        },
        ErrorCode::canceled);
  });
  while (!compiling) std::this_thread::yield();
  std::this_thread::sleep_for(30ms);
  source.request_stop();
  compiler.join();
  EXPECT_NE(found.find("canceled"), std::string::npos);
}

TEST(CancellationOfCompiling, before_it_begins) {
  std::stop_source source;
  source.request_stop();
  Options options;
  options.stop = source.get_token();
  expect_error([&] { const CompiledModel compiled(model_of(endless()), options); }, ErrorCode::canceled,
               "compiling was canceled");
}

TEST(CancellationOfCompiling, the_deadline_names_its_key) {
  Options options;
  options.limits.compile_seconds = 1e-9;
  expect_error([&] { const CompiledModel compiled(lamina::testing::model_of(products(60, 64)), options); },
               ErrorCode::over_limit, "compiling took more than 1e-09 s (LIMIT_COMPILE_SECONDS)");
}

/// A chain of many nodes, as a file.
std::string long_file() {
  OnnxGraph g;
  g.input("v0", ElementType::f32, {"1", "4"});
  for (int i = 0; i < 2000; ++i) g.node("Relu", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  return onnx_model(g.output("v2000"));
}

Model read_bytes(const std::string& file, const ReadOptions& options) {
  return Model::from_memory({.model = bytes_of(file), .name = "test.onnx"}, options);
}

TEST(CancellationOfReading, before_it_begins) {
  std::stop_source source;
  source.request_stop();
  const auto file = long_file();
  expect_error([&] { (void)read_bytes(file, {.stop = source.get_token()}); }, ErrorCode::canceled,
               "test.onnx: reading was canceled");
  EXPECT_EQ(read_bytes(file, {}).outputs().size(), 1U);
}

TEST(CancellationOfReading, from_another_thread) {
  const auto file = long_file();
  std::stop_source source;
  std::atomic<bool> reading = false;
  std::string found;
  std::thread reader([&] {
    found = error_of(
        [&] {
          for (;;) {  // again and again until the stop comes
            reading = true;
            (void)read_bytes(file, {.stop = source.get_token()});
          }
        },
        ErrorCode::canceled);
  });
  while (!reading) std::this_thread::yield();
  std::this_thread::sleep_for(30ms);
  source.request_stop();
  reader.join();
  EXPECT_EQ(found, "test.onnx: reading was canceled");
}

TEST(CancellationOfReading, the_deadline_names_its_key) {
  ReadOptions options;
  options.limits.compile_seconds = 1e-9;
  expect_error([&] { (void)read_bytes(long_file(), options); }, ErrorCode::over_limit,
               "test.onnx: reading took more than 1e-09 s (LIMIT_COMPILE_SECONDS)");
}

/// A model that was read is compiled whatever becomes of the token that it was read with.
TEST(CancellationOfReading, a_stop_afterwards_leaves_compiling_alone) {
  std::stop_source source;
  const auto model = read_bytes(long_file(), {.stop = source.get_token()});
  source.request_stop();
  EXPECT_NO_THROW(CompiledModel(model, {}));
}

/// Inferences of a compiled model are not what Options::stop ends.
TEST(CancellationOfCompiling, a_stop_afterwards_leaves_inferences_alone) {
  std::stop_source source;
  Options options{.streams = 0};
  options.stop = source.get_token();
  const CompiledModel compiled(lamina::testing::model_of(sums()), options);
  source.request_stop();
  auto r = compiled.create_request();
  r.set_input(0, rows(3, 1));
  r.set_input(1, rows(3, 2));
  r.run();
  EXPECT_EQ(r.output(1).data<float>()[0], 3);
  EXPECT_NE(error_of([&] { (void)compiled.output_ports({{2, 4}, {2, 4}}); }, ErrorCode::canceled), "");
}

TEST(CancellationOfCompiling, folding_has_a_budget) {
  const auto begin = Clock::now();
  const CompiledModel compiled(model_of(products_of_constants()), {.threads = 2});
  EXPECT_LT(Clock::now() - begin, 120s);
  std::size_t folded = 0;
  for (const auto& f : compiled.fusions())
    if (f.rule == "fold-constants") folded = f.count;
  EXPECT_LT(folded, 20U);
  auto r = compiled.create_request();
  r.set_input(0, Tensor(ElementType::f32, {1, 2048}));
  r.run();
  EXPECT_EQ(r.output(0).data<float>()[0], 0);
}

/// A thread that waits for a plan which another one makes is stopped, and the other goes on.
TEST(CancellationOfPlanning, while_another_thread_plans) {
  std::atomic<bool> hold = true, inside = false, armed = false;
  Options options{.streams = 0};
  options.progress = [&](std::string_view, double) {
    if (!armed) return;
    inside = true;
    while (hold) std::this_thread::sleep_for(1ms);
  };
  const CompiledModel compiled(lamina::testing::model_of(sums()), options);
  const auto ready = [&] {
    auto r = compiled.create_request();
    r.set_input(0, rows(7, 1));
    r.set_input(1, rows(7, 2));
    return r;
  };
  auto first = ready(), second = ready(), third = ready();
  armed = true;
  std::thread maker([&] { first.run(); });
  while (!inside) std::this_thread::yield();
  std::thread waiter([&] { (void)error_of([&] { second.run(); }, ErrorCode::canceled); });
  while (second.status() != RequestStatus::running) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  second.cancel();
  waiter.join();
  EXPECT_TRUE(hold);
  hold = false;
  maker.join();
  for (auto* r : {&first, &second, &third}) {
    r->run();
    EXPECT_EQ(r->output(1).data<float>()[0], 3);
  }
}

/// The maker of a plan is canceled: who waits for the same plan makes it.
TEST(CancellationOfPlanning, others_make_the_plan_themselves) {
  std::atomic<bool> hold = true, inside = false, armed = false;
  Options options{.streams = 0};
  options.progress = [&](std::string_view, double) {
    if (!armed) return;
    inside = true;
    while (hold) std::this_thread::sleep_for(1ms);
  };
  const CompiledModel compiled(lamina::testing::model_of(sums()), options);
  const auto ready = [&] {
    auto r = compiled.create_request();
    r.set_input(0, rows(9, 1));
    r.set_input(1, rows(9, 2));
    return r;
  };
  auto first = ready(), second = ready();
  armed = true;
  std::thread maker([&] { (void)error_of([&] { first.run(); }, ErrorCode::canceled); });
  while (!inside) std::this_thread::yield();
  std::thread waiter([&] { second.run(); });
  while (second.status() != RequestStatus::running) std::this_thread::yield();
  first.cancel();
  hold = false;
  maker.join();
  waiter.join();
  EXPECT_EQ(second.output(1).data<float>()[0], 3);
  first.run();
  EXPECT_EQ(first.output(1).data<float>()[0], 3);
}

}  // namespace
}  // namespace lamina
