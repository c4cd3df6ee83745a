/// The rules of requests: start, wait, cancel, callbacks, with streams and without.
#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

/// A compiled model of sums with so many streams.
class Requests : public ::testing::TestWithParam<int> {
 protected:
  CompiledModel sums_ = CompiledModel(model_of(sums()), {.streams = GetParam()});
  CompiledModel slow_ =
      CompiledModel(model_of(products(40, 384)), {.threads = 1, .streams = std::min(GetParam(), 1)});

  Request ready(float a = 1, float b = 2) const {
    auto request = sums_.create_request();
    request.set_input(0, rows(2, a));
    request.set_input(1, rows(2, b));
    return request;
  }
  Request slow_one() const {
    auto request = slow_.create_request();
    request.set_input(0, square(384, 0.001F));
    return request;
  }
  bool streams() const { return GetParam() > 0; }
};
INSTANTIATE_TEST_SUITE_P(Streams, Requests, ::testing::Values(0, 1, 2));

TEST_P(Requests, start_and_wait) {
  EXPECT_EQ(sums_.optimal_requests(), static_cast<std::size_t>(std::max(1, sums_.streams())));
  auto request = ready();
  EXPECT_EQ(request.status(), RequestStatus::idle);
  request.wait();
  EXPECT_TRUE(request.wait_for(0ns));
  for (int i = 0; i < 100; ++i) {
    request.set_input(0, rows(2, static_cast<float>(i)));
    request.start();
    request.wait();
    EXPECT_EQ(request.status(), RequestStatus::done);
    ASSERT_TRUE(request.output(1).same_as(rows(2, static_cast<float>(i) + 2)));
  }
}

TEST_P(Requests, start_checks_inputs_itself) {
  auto request = sums_.create_request();
  std::atomic<int> calls = 0;
  request.set_callback([&](std::exception_ptr) { ++calls; });
  expect_error([&] { request.start(); }, ErrorCode::bad_input, "input");
  EXPECT_EQ(request.status(), RequestStatus::idle);
  request.wait();
  EXPECT_EQ(calls, 0);
}

TEST_P(Requests, what_is_refused_while_under_way) {
  if (!streams()) GTEST_SKIP() << "start() returns at rest";
  auto request = slow_one();
  request.start();
  expect_error([&] { request.start(); }, ErrorCode::busy, "under way");
  expect_error([&] { request.run(); }, ErrorCode::busy, "under way");
  expect_error([&] { request.set_input(0, square(384, 1)); }, ErrorCode::busy, "under way");
  expect_error([&] { request.set_output(0, {}); }, ErrorCode::busy, "under way");
  expect_error([&] { request.set_callback({}); }, ErrorCode::busy, "under way");
  expect_error([&] { request.set_profile(true); }, ErrorCode::busy, "under way");
  expect_error([&] { (void)request.output(0); }, ErrorCode::busy, "under way");
  EXPECT_FALSE(request.wait_for(0ns));
  EXPECT_FALSE(request.wait_for(1us));
  request.wait();
  EXPECT_EQ(request.status(), RequestStatus::done);
  EXPECT_TRUE(request.output(0).valid());
}

TEST_P(Requests, failures_reach_wait_each_time) {
  auto request = ready();
  request.set_input(1, rows(3, 1));
  std::atomic<int> calls = 0, errors = 0;
  request.set_callback([&](const std::exception_ptr& error) {
    ++calls;
    errors += error != nullptr;
  });
  request.start();
  for (int i = 0; i < 2; ++i) expect_error([&] { request.wait(); }, ErrorCode::bad_input, "cannot run");
  EXPECT_EQ(request.status(), RequestStatus::failed);
  expect_error([&] { (void)request.output(0); }, ErrorCode::bad_input, "the last run failed");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(errors, 1);
  request.set_input(1, rows(2, 5));
  request.start();
  request.wait();
  EXPECT_EQ(calls, 2);
}

TEST_P(Requests, callbacks_start_themselves_again) {
  auto request = ready();
  std::atomic<int> calls = 0;
  const auto main_thread = std::this_thread::get_id();
  request.set_callback([&](const std::exception_ptr& error) {
    EXPECT_EQ(error, nullptr);
    EXPECT_EQ(std::this_thread::get_id() == main_thread, !streams());
    EXPECT_EQ(request.status(), RequestStatus::running);
    EXPECT_TRUE(request.output(1).same_as(rows(2, static_cast<float>(calls) + 3)));
    if (++calls == 50) return;
    request.set_input(0, rows(2, static_cast<float>(calls) + 1));
    request.start();
    expect_error([&] { request.start(); }, ErrorCode::busy, "under way");
    expect_error([&] { request.wait(); }, ErrorCode::busy, "callback");
    expect_error([&] { request.run(); }, ErrorCode::busy, "");
  });
  request.start();
  request.wait();
  EXPECT_EQ(calls, 50);
}

TEST_P(Requests, callbacks_use_other_requests) {
  auto first = ready(), second = ready(3, 4), third = ready(5, 6);
  std::atomic<int> calls = 0;
  second.set_callback([&](const std::exception_ptr&) { ++calls; });
  first.set_callback([&](const std::exception_ptr&) {
    second.start();
    third.run();
    EXPECT_TRUE(third.output(1).same_as(rows(2, 11)));
    second.wait();
    EXPECT_TRUE(second.output(1).same_as(rows(2, 7)));
    auto own = ready(7, 8);
    own.start();
    own.wait();
    EXPECT_TRUE(own.output(1).same_as(rows(2, 15)));
    ++calls;
  });
  first.start();
  first.wait();
  EXPECT_EQ(calls, 2);
}

/// Each waits in its callback for the next one: no stream is left, and nobody waits for ever.
TEST_P(Requests, a_chain_of_callbacks_that_wait) {
  std::vector<Request> all;
  for (int i = 0; i < 6; ++i) all.push_back(ready(static_cast<float>(i), 1));
  std::atomic<int> calls = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].set_callback([&, i](const std::exception_ptr&) {
      if (i + 1 < all.size()) all[i + 1].wait();
      ++calls;
    });
  for (auto& r : all) r.start();
  for (auto& r : all) r.wait();
  EXPECT_EQ(calls, 6);
}

/// The stream of the first is its callback's until the third has called back, on the thread that waits for
/// it.
TEST_P(Requests, callbacks_of_two_models_wait_for_each_other) {
  const CompiledModel others(model_of(sums()), {.streams = std::min(GetParam(), 1)});
  auto first = ready(), third = ready(), second = others.create_request();
  for (int i = 0; i < 2; ++i) second.set_input(i, rows(2, 1));
  std::atomic<int> calls = 0;
  third.set_callback([&](const std::exception_ptr&) { ++calls; });
  second.set_callback([&](const std::exception_ptr&) {
    third.start();
    third.wait();
    EXPECT_EQ(++calls, 2);
  });
  first.set_callback([&](const std::exception_ptr&) {
    second.start();
    second.wait();
    EXPECT_EQ(++calls, 3);
  });
  first.start();
  first.wait();
  EXPECT_EQ(calls, 3);
}

/// Who waits looks at an error that the next run has already forgotten.
TEST_P(Requests, wait_beside_runs_that_fail) {
  auto request = ready();
  request.set_input(1, rows(3, 1));  // does not broadcast
  std::atomic<bool> stop = false;
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i)
    waiting.emplace_back([&] {
      while (!stop) try {
          request.wait();
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ErrorCode::bad_input) << e.what();
        }
    });
  for (int i = 0; i < 2000; ++i) EXPECT_THROW(request.run(), Error);
  stop = true;
  for (auto& thread : waiting) thread.join();
}

TEST_P(Requests, a_callback_that_throws) {
  std::mutex mutex;
  std::vector<std::string> lines;
  Options options{.streams = GetParam()};
  options.log = [&](LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (level == LogLevel::error) lines.emplace_back(line);
  };
  const CompiledModel compiled(model_of(sums()), options);
  auto request = compiled.create_request();
  request.set_input(0, rows(2, 1));
  request.set_input(1, rows(2, 2));
  request.set_callback([](const std::exception_ptr&) { throw std::runtime_error("of the user"); });
  request.start();
  EXPECT_THROW(
      try { request.wait(); } catch (const std::exception& e) {
        EXPECT_NE(std::string(e.what()).find("of the user"), std::string::npos) << e.what();
        throw;
      },
      std::exception);
  EXPECT_EQ(request.status(), RequestStatus::failed);
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));  // stays readable
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("of the user"), std::string::npos);
}

TEST_P(Requests, cancel_what_runs) {
  if (!streams()) GTEST_SKIP() << "see cancel_from_another_thread";
  auto request = slow_one();
  std::atomic<int> calls = 0;
  request.set_callback([&](const std::exception_ptr& error) {
    ++calls;
    EXPECT_NE(error, nullptr);
  });
  request.start();
  while (request.status() != RequestStatus::running) std::this_thread::yield();
  request.cancel();
  expect_error([&] { request.wait(); }, ErrorCode::canceled, "canceled");
  EXPECT_EQ(request.status(), RequestStatus::canceled);
  EXPECT_EQ(calls, 1);
  expect_error([&] { (void)request.output(0); }, ErrorCode::bad_input, "the last run was cancelled");
  request.set_callback({});
  request.start();
  request.wait();
  EXPECT_TRUE(request.output(0).valid());
}

TEST_P(Requests, cancel_from_another_thread) {
  auto request = slow_one();
  std::thread other([&] {
    while (request.status() != RequestStatus::running) std::this_thread::yield();
    request.cancel();
  });
  expect_error([&] { request.run(); }, ErrorCode::canceled, "canceled");
  other.join();
  EXPECT_EQ(request.status(), RequestStatus::canceled);
  request.run();
  EXPECT_EQ(request.status(), RequestStatus::done);
}

TEST_P(Requests, cancel_what_is_queued) {
  if (!streams()) GTEST_SKIP() << "nothing is queued";
  auto busy = slow_one(), queued = slow_one(), silent = slow_one();
  std::atomic<int> calls = 0;
  queued.set_callback([&](const std::exception_ptr& error) {
    ++calls;
    EXPECT_NE(error, nullptr);
  });
  busy.start();
  queued.start();
  silent.start();
  EXPECT_EQ(silent.status(), RequestStatus::queued);
  silent.cancel();
  EXPECT_EQ(silent.status(), RequestStatus::canceled);
  queued.cancel();
  EXPECT_EQ(calls, 0);  // from the next free stream
  expect_error([&] { queued.wait(); }, ErrorCode::canceled, "canceled");
  EXPECT_EQ(calls, 1);
  busy.wait();
}

TEST_P(Requests, cancel_at_rest_has_no_effect) {
  auto request = ready();
  request.cancel();
  EXPECT_EQ(request.status(), RequestStatus::idle);
  request.start();
  request.wait();
  request.cancel();
  EXPECT_EQ(request.status(), RequestStatus::done);
  request.run();
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));
}

TEST_P(Requests, cancel_what_was_started_in_the_callback) {
  auto request = ready();
  std::atomic<int> calls = 0;
  request.set_callback([&](const std::exception_ptr& error) {
    if (++calls == 1) {
      request.start();
      request.cancel();
    } else {
      EXPECT_NE(error, nullptr);
    }
  });
  request.start();
  expect_error([&] { request.wait(); }, ErrorCode::canceled, "canceled");
  EXPECT_EQ(calls, 2);
}

TEST_P(Requests, destroyed_while_under_way) {
  std::atomic<int> calls = 0;
  for (int i = 0; i < 5; ++i) {
    auto first = slow_one(), second = slow_one();
    for (auto* r : {&first, &second}) r->set_callback([&](const std::exception_ptr&) { ++calls; });
    if (!streams()) continue;
    first.start();
    second.start();
    if (i % 2 == 0) first = slow_one();  // move assignment onto it
  }
  EXPECT_EQ(calls, streams() ? 10 : 0);
}

TEST_P(Requests, destroyed_in_its_own_callback) {
  auto request = std::make_unique<Request>(ready());
  std::promise<void> gone;
  request->set_callback([&, held = std::make_shared<int>(7)](const std::exception_ptr&) {
    request.reset();
    EXPECT_EQ(*held, 7);  // what the callback has goes when it has returned
    gone.set_value();
  });
  request->start();
  gone.get_future().wait();
}

TEST_P(Requests, a_callback_that_always_restarts_ends_with_its_request) {
  std::atomic<int> calls = 0;
  {
    auto request = std::make_shared<std::optional<Request>>(ready());
    (*request)->set_callback([&calls, weak = std::weak_ptr(request)](const std::exception_ptr&) {
      if (++calls > 3 && calls > 1000) return;
      if (const auto r = weak.lock(); r && *r) (*r)->start();
    });
    if (!streams()) return;
    (*request)->start();
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_GE(calls, 1);
}

TEST_P(Requests, the_last_handle_dies_on_a_thread_of_a_stream) {
  std::promise<void> done;
  {
    auto compiled = std::make_shared<std::optional<CompiledModel>>(
        CompiledModel(model_of(sums()), {.streams = GetParam()}));
    auto request = std::make_shared<std::optional<Request>>((*compiled)->create_request());
    (*request)->set_input(0, rows(2, 1));
    (*request)->set_input(1, rows(2, 2));
    auto* const raw = &**request;
    raw->set_callback([compiled, request, &done](const std::exception_ptr&) mutable {
      compiled->reset();
      request->reset();
      done.set_value();
    });
    raw->start();
  }
  done.get_future().wait();
}

TEST_P(Requests, moved_while_under_way) {
  auto request = slow_one();
  std::atomic<int> calls = 0;
  request.set_callback([&](const std::exception_ptr& error) { calls += error == nullptr; });
  request.start();
  Request other = std::move(request);
  other.wait();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(other.output(0).valid());
}

TEST_P(Requests, run_is_one_of_the_queue) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto request = ready(static_cast<float>(t), 1);
      for (int i = 0; i < 200; ++i) {
        if (i % 2 == 0) {
          request.run();
        } else {
          request.start();
          request.wait();
        }
        right += request.output(1).same_as(rows(2, static_cast<float>(t) + 1));
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 800);
}

TEST_P(Requests, several_threads_wait_for_one) {
  auto request = slow_one();
  std::vector<std::thread> threads;
  std::atomic<int> over = 0;
  request.start();
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      request.wait();
      over += request.status() == RequestStatus::done;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(over, 3);
}

/// Waiting requests, callbacks canceled and not, in a random order: every callback once.
TEST_P(Requests, every_callback_comes_once) {
  std::vector<Request> all;
  std::vector<std::atomic<int>> calls(16);
  std::vector<int> starts(16);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    all.push_back(ready());
    all[i].set_callback([&, i](const std::exception_ptr&) { ++calls[i]; });
  }
  unsigned random = 12345;
  for (int step = 0; step < 3000; ++step) {
    random = random * 1664525U + 1013904223U;
    const auto i = (random >> 8) % all.size();
    switch ((random >> 16) % 4) {
      case 0:
      case 1:
        if (const auto s = all[i].status(); s != RequestStatus::queued && s != RequestStatus::running)
          all[i].start(), ++starts[i];
        break;
      case 2:
        all[i].cancel();
        break;
      default:
        try {
          all[i].wait();
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ErrorCode::canceled);
        }
    }
  }
  for (auto& r : all) try {
      r.wait();
    } catch (const Error&) {
    }
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], starts[i]);
}

}  // namespace
}  // namespace lamina
