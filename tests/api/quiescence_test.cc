/// fork() waits for whatever a public function computes, since a child would find locks taken, and for
/// nothing that may wait for it; and what callbacks of that time may do.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "lamina/extension.h"
#include "tests/api/small_models.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::atomic<bool> hold, inside;

/// In a thread: true once fork() has returned.
class Fork {
 public:
  Fork() : thread_([this] { fork_once(); }) {}
  ~Fork() { thread_.join(); }
  bool done_within(std::chrono::milliseconds time) const {
    const auto late = std::chrono::steady_clock::now() + time;
    while (!done_ && std::chrono::steady_clock::now() < late) std::this_thread::sleep_for(1ms);
    return done_;
  }

 private:
  void fork_once() {
    const auto child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    done_ = true;
  }
  std::atomic<bool> done_{false};
  std::thread thread_;
};

std::function<void()> during_infer, during_run, during_loop;

/// y = -x, by a library whose functions call these.
Model held_model() {
  static const bool registered = [] {
    register_extension("held", [](const lamina_host* given, lamina_registrar* registrar) {
      static const lamina_host* host;
      host = given;
      static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
      lamina_operation op{};
      op.struct_size = sizeof(op);
      op.domain = "test.held";
      op.type = "Minus";
      op.in = op.out = &port;
      op.inputs = op.outputs = 1;
      op.infer = [](const lamina_node* node) {
        if (during_infer) during_infer();
        return host->set_output(node->context, 0, node->in[0]);
      };
      op.run = [](const lamina_call* call) -> lamina_status {
        if (during_run) during_run();
        if (during_loop)
          host->parallel_for(
              call->context, 8, 1,
              [](void*, std::int64_t begin, std::int64_t end, std::int32_t) {
                for (; begin < end; ++begin) during_loop();
              },
              nullptr);
        for (std::uint64_t i = 0; i < call->in[0]->elements; ++i)
          static_cast<float*>(call->out[0]->data)[i] = -static_cast<const float*>(call->in[0]->data)[i];
        return LAMINA_OK;
      };
      return host->add_operation(registrar, &op);
    });
    return true;
  }();
  EXPECT_TRUE(registered);
  IrText ir;
  ir.result({ir.layer("Minus", "test.held", "", {{ir.parameter("x", "?,4")}})});
  const TemporaryFolder folder;
  return Model(ir.write(folder), {"held"});
}

/// `call` comes to infer(), where it is held.
void expect_fork_waits_for(const std::string& what, const std::function<void()>& call) {
  inside = false;
  hold = true;
  during_infer = [] {
    while (hold) {
      inside = true;
      std::this_thread::sleep_for(1ms);
    }
  };
  std::thread caller(call);
  while (!inside) std::this_thread::sleep_for(1ms);
  {
    const Fork fork;
    EXPECT_FALSE(fork.done_within(50ms)) << what;
    hold = false;
    EXPECT_TRUE(fork.done_within(10s)) << what;
  }
  caller.join();
  during_infer = nullptr;
}

TEST(Quiescence, fork_waits_for_public_functions) {
  const auto model = held_model();
  const TemporaryFolder folder;
  const Options options{.cache_dir = folder.file("cache")};
  { const CompiledModel first(model, options); }
  const CompiledModel compiled(model), cached(model, options);
  ASSERT_EQ(cached.property("LOADED_FROM_CACHE"), "YES");
  expect_fork_waits_for("Model", [] { held_model(); });
  expect_fork_waits_for("CompiledModel", [&] { const CompiledModel another(model); });
  expect_fork_waits_for("output_ports", [&] { compiled.output_ports({{3, 4}}); });
  expect_fork_waits_for("save", [&] { compiled.save(folder.file("m.lamina")); });
  expect_fork_waits_for("fusions", [&] { cached.fusions(); });
  cached.create_request();
}

TEST(Quiescence, fork_does_not_wait_for_callbacks_of_a_compilation) {
  const CompiledModel other(model_of(sums()));
  std::unique_ptr<Fork> fork;
  Options options;
  options.progress = [&](std::string_view, double) {
    if (fork) return;
    fork = std::make_unique<Fork>();
    EXPECT_TRUE(fork->done_within(10s));
    EXPECT_EQ(other.output_ports({{3, 4}, {3, 4}})[0].shape, (Dims{3, 4}));
    EXPECT_EQ(other.property("LOADED_FROM_CACHE"), "NO");
  };
  const CompiledModel compiled(model_of(sums()), options);
  ASSERT_TRUE(fork);
}

/// Calls back while run() plans for a shape that it has not met.
class PlannedInRun : public ::testing::TestWithParam<int> {
 protected:
  Options options() {
    return {.streams = GetParam(), .progress = [this](std::string_view, double) {
              if (auto call = std::exchange(progress_, nullptr)) call();
            }};
  }
  static void run(const CompiledModel& compiled, std::int64_t batch) {
    auto request = compiled.create_request();
    for (std::size_t i = 0; i < 2; ++i) request.set_input(i, rows(batch, 1));
    request.run();
    EXPECT_EQ(request.output(1).data<float>()[0], 2);
    request.start();
    request.wait();
  }
  std::function<void()> progress_;
};
INSTANTIATE_TEST_SUITE_P(Streams, PlannedInRun, ::testing::Values(0, 1, 2));

TEST_P(PlannedInRun, fork_does_not_wait_for_its_callback) {
  const CompiledModel compiled(model_of(sums()), options()), other(model_of(sums()), {.streams = GetParam()});
  std::unique_ptr<Fork> fork;
  progress_ = [&] {
    fork = std::make_unique<Fork>();
    run(other, 2);  // while fork() waits, or behind it
    EXPECT_TRUE(fork->done_within(10s));
  };
  run(compiled, 2);
  ASSERT_TRUE(fork);
}

/// The callback would wait for itself: with a stream of its own for the plan, else for the stream.
TEST_P(PlannedInRun, its_callback_cannot_ask_for_the_same) {
  const CompiledModel compiled(model_of(sums()), options());
  std::string refused;
  progress_ = [&] { refused = error_of([&] { run(compiled, 2); }, ErrorCode::busy); };
  run(compiled, 2);
  EXPECT_FALSE(refused.empty());
}

TEST_P(PlannedInRun, what_its_callback_throws_ends_the_run) {
  const CompiledModel compiled(model_of(sums()), options());
  struct Enough {};
  progress_ = [] { throw Enough(); };
  EXPECT_THROW(run(compiled, 2), Enough);
  progress_ = [] { throw Enough(); };
  EXPECT_THROW(compiled({rows(3, 1), rows(3, 1)}), Enough);
  progress_ = [] { throw Enough(); };
  auto request = compiled.create_request();
  for (std::size_t i = 0; i < 2; ++i) request.set_input(i, rows(4, 1));
  request.start();
  EXPECT_THROW(request.wait(), Enough);
  run(compiled, 2);
}

TEST(Quiescence, a_progress_callback_ends_compiling) {
  const Options options{.progress = [](std::string_view, double) { throw 42; }};  // NOLINT
  EXPECT_THROW(CompiledModel(model_of(products(20, 16)), options), int);
}

/// One thread plans, and its callback waits for fork(); another waits for that plan.
TEST_P(PlannedInRun, fork_does_not_wait_for_those_who_want_the_same_plan) {
  const CompiledModel compiled(model_of(sums()), options());
  std::unique_ptr<Fork> fork;
  std::thread second;
  progress_ = [&] {
    second = std::thread([&] { run(compiled, 2); });
    std::this_thread::sleep_for(20ms);  // it waits by now
    fork = std::make_unique<Fork>();
    EXPECT_TRUE(fork->done_within(10s));
  };
  std::thread first([&] { run(compiled, 2); });
  first.join();
  ASSERT_TRUE(fork);
  second.join();
}

/// The thread that makes a plan is not in the child, which makes its own.
TEST_P(PlannedInRun, the_child_plans_anew) {
  if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  const CompiledModel compiled(model_of(sums()), options());
  std::atomic<bool> begun = false, go_on = false;
  progress_ = [&] {
    begun = true;
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  std::thread first([&] { run(compiled, 2); });
  while (!begun) std::this_thread::sleep_for(1ms);
  const auto child = fork();
  if (child == 0) {
    run(compiled, 2);
    run(compiled, 3);
    _exit(HasFailure() ? 1 : 0);
  }
  EXPECT_EQ(status_of(child), 0);
  go_on = true;
  first.join();
}

/// The outer step waits for steps of the inner model, at which it pauses, too.
TEST_P(PlannedInRun, fork_does_not_wait_for_a_step_that_runs_another_model) {
  const CompiledModel outer(held_model(), {.streams = GetParam()});
  const CompiledModel inner(model_of(sums()), {.streams = GetParam()});
  inside = false;
  hold = true;
  during_run = [&] {
    do {
      inner({rows(2, 1), rows(2, 1)});
      inside = true;
    } while (hold);
  };
  std::thread caller([&] { EXPECT_EQ(outer(rows(2, 1)).data<float>()[0], -1); });
  while (!inside) std::this_thread::sleep_for(1ms);
  {
    const Fork fork;
    EXPECT_TRUE(fork.done_within(10s));
    hold = false;
  }
  caller.join();
  during_run = nullptr;
}

/// The worker continues although fork() waits: the step that waits for it does not end before.
TEST_P(PlannedInRun, fork_does_not_hang_beside_a_step_that_waits_for_a_request) {
  const CompiledModel outer(held_model(), {.streams = GetParam()});
  const CompiledModel inner(model_of(products(20, 64)), {.streams = GetParam()});
  during_run = [&] {
    auto request = inner.create_request();
    request.set_input(0, square(64, 0.001F));
    request.start();
    request.wait();
    inner(square(64, 0.001F));  // beside the other caller
  };
  std::atomic<bool> enough = false;
  std::thread caller([&] {
    while (!enough) EXPECT_EQ(outer(rows(2, 1)).data<float>()[0], -1);
  });
  std::thread other([&] {
    while (!enough) inner(square(64, 0.001F));
  });
  for (int i = 0; i < 20; ++i) {
    const Fork fork;
    EXPECT_TRUE(fork.done_within(10s));
  }
  enough = true;
  caller.join();
  other.join();
  during_run = nullptr;
}

/// A step of several threads, each of which calls back.
class Loops : public ::testing::TestWithParam<int> {
 protected:
  void TearDown() override {
    during_loop = nullptr;
    if (outer_.threads() > 1) {
      EXPECT_GT(threads_.size(), 1u);
    }
  }
  /// A second thread comes, where there is one: until then the first one waits.
  void await_others() {
    const auto late = std::chrono::steady_clock::now() + 60s;
    std::unique_lock lock(mutex_);
    threads_.insert(std::this_thread::get_id());
    come_.notify_all();
    if (outer_.threads() > 1) come_.wait_until(lock, late, [&] { return threads_.size() > 1; });
  }
  Options options() const { return {.threads = 2 * std::max(1, GetParam()), .streams = GetParam()}; }
  void run() const { EXPECT_EQ(outer_(rows(2, 1)).data<float>()[0], -1); }

  std::mutex mutex_;
  std::condition_variable come_;
  std::set<std::thread::id> threads_;
  const CompiledModel outer_ = CompiledModel(held_model(), options());
  const CompiledModel inner_ = CompiledModel(model_of(sums()), options());
};
INSTANTIATE_TEST_SUITE_P(Streams, Loops, ::testing::Values(0, 1, 2));

TEST_P(Loops, fork_does_not_wait_for_threads_that_run_another_model) {
  during_loop = [&] {
    await_others();
    inner_({rows(2, 1), rows(2, 1)});
  };
  std::atomic<bool> enough = false;
  std::thread caller([&] {
    while (!enough) run();
  });
  for (int i = 0; i < 20; ++i) {
    const Fork fork;
    EXPECT_TRUE(fork.done_within(10s));
  }
  enough = true;
  caller.join();
}

TEST_P(Loops, fork_in_any_thread_of_theirs) {
  std::atomic<int> good = 0;
  during_loop = [&] {
    await_others();
    const auto child = fork();
    if (child == 0) _exit(0);
    good += status_of(child) == 0;
  };
  run();
  EXPECT_EQ(good, 8);
}

TEST_P(Loops, shut_nothing_down) {
  std::atomic<int> refused = 0;
  during_loop = [&] {
    await_others();
    refused += !error_of([] { shutdown(); }, ErrorCode::busy).empty();
  };
  run();
  EXPECT_EQ(refused, 8);
}

TEST_P(Loops, do_not_wait_for_themselves) {
  auto request = outer_.create_request();
  request.set_input(0, rows(2, 1));
  std::atomic<int> refused = 0, runs = 0;
  during_loop = [&] {
    await_others();
    refused += !error_of([&] { request.wait(); }, ErrorCode::busy).empty();
    if (runs++ == 0 && GetParam() == 1)
      expect_error([&] { outer_(rows(2, 1)); }, ErrorCode::busy, "while no stream is free");
  };
  request.start();
  while (request.status() == RequestStatus::queued || request.status() == RequestStatus::running)
    std::this_thread::sleep_for(1ms);
  request.wait();
  EXPECT_EQ(refused, 8);
}

TEST(Quiescence, progress_comes_in_the_thread_that_compiles) {
  std::set<std::thread::id> threads;
  std::map<std::string, double> done;
  Options options{.threads = 4};
  options.progress = [&](std::string_view stage, double part) {
    threads.insert(std::this_thread::get_id());
    done[std::string(stage)] = part;
  };
  const CompiledModel compiled(model_of(products(20, 16)), options);
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  EXPECT_EQ(done.size(), 3u);
  for (const auto& [stage, part] : done) EXPECT_EQ(part, 1) << stage;
}

}  // namespace
}  // namespace lamina
