/// Inferences that are stopped in the midst, in loops and in long operators; and that all works on
/// afterwards.
#include <atomic>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "base/cancellation.h"
#include "tests/api/endless_model.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Longs = std::vector<std::int64_t>;

constexpr auto kSoon = 20s;  // generous: what is not stopped takes for ever, or many minutes

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

TEST_P(Cancellation, run_for) {
  auto r = long_.ready(true);
  expect_error([&] { r.run_for(200ms); }, ErrorCode::over_limit, "took more than the time of run_for");
  EXPECT_EQ(r.status(), RequestStatus::failed);
  EXPECT_THROW((void)r.output(0), Error);
  expect_works(r);
  auto fresh = long_.ready(false);
  fresh.run();
  for (const std::chrono::nanoseconds time :
       {std::chrono::nanoseconds(10min), std::chrono::nanoseconds::max()}) {
    r.run_for(time);
    EXPECT_TRUE(r.output(0).same_as(fresh.output(0)));
  }
}

TEST(CancellationOfLoops, run_for_no_time) {
  for (const int streams : {0, 1}) {
    const auto endless = loop({.streams = streams});
    auto r = endless.ready(true);
    for (const auto time : {0ns, -5ns, std::chrono::nanoseconds::min()})
      expect_error([&] { r.run_for(time); }, ErrorCode::over_limit, "the time of run_for");
  }
}

TEST(CancellationOfLoops, run_for_waits_for_a_stream) {
  const auto endless = loop({.streams = 1});
  auto first = endless.ready(true), second = endless.ready(false);
  first.start();
  while (first.status() != RequestStatus::running) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) {
    expect_error([&] { second.run_for(20ms); }, ErrorCode::over_limit,
                 "no stream was free in the time of run_for");
    EXPECT_EQ(second.status(), RequestStatus::failed);
  }
  std::thread canceler([&] {
    while (second.status() != RequestStatus::queued) std::this_thread::yield();
    first.cancel();
  });
  second.run_for(10min);
  canceler.join();
  EXPECT_EQ(second.output(0).data<float>()[0], 3);
}

TEST(CancellationOfLoops, cancel_ends_run_for) {
  const auto endless = loop({.streams = 1});
  auto first = endless.ready(true), second = endless.ready(true);
  std::thread runner([&] { (void)error_of([&] { first.run_for(1h); }, ErrorCode::canceled); });
  while (first.status() != RequestStatus::running) std::this_thread::yield();
  std::thread waiter([&] { (void)error_of([&] { second.run_for(1h); }, ErrorCode::canceled); });
  while (second.status() != RequestStatus::queued) std::this_thread::yield();
  second.cancel();
  waiter.join();
  first.cancel();
  runner.join();
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

}  // namespace
}  // namespace lamina
