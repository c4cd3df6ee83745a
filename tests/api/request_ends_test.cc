/// The rules of requests: cancelled, destroyed and moved while under way.
#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "tests/api/requests.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

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

}  // namespace
}  // namespace lamina
