/// The rules of requests: start, wait, callbacks, the queue, with streams and without.
#include <malloc.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/api/requests.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

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
      try { request.wait(); } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "of the user");  // the very exception
        throw;
      },
      std::runtime_error);
  EXPECT_EQ(request.status(), RequestStatus::failed);
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));  // stays readable
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("of the user"), std::string::npos);
}

/// Memory between steps is of those who infer, not of requests: without streams, too.
TEST_P(Requests, share_memory_between_steps) {
  const CompiledModel compiled(model_of(products(4, 256)), {.threads = 1, .streams = GetParam()});
  std::vector<Request> all;
  const auto more = [&](int count) {
    for (int i = 0; i < count; ++i) {
      all.push_back(compiled.create_request());
      all.back().set_input(0, square(256, 0.001F));
      all.back().run();
    }
    const auto heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  const auto before = more(2);
  constexpr std::size_t kSquare = 4 * 256 * 256;
  EXPECT_LT(more(8) - before, 8 * (2 * kSquare + kSquare / 4));  // its input and its result
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
