/// What callbacks own and wait for: nothing hangs on it, and nothing is left of it.
#include <atomic>
#include <future>
#include <optional>
#include <set>
#include <thread>

#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;

class Callbacks : public ::testing::TestWithParam<int> {
 protected:
  CompiledModel sums_ = CompiledModel(model_of(sums()), {.streams = GetParam()});
  CompiledModel others_ = CompiledModel(model_of(sums()), {.streams = GetParam()});

  static Request ready(const CompiledModel& compiled) {
    auto request = compiled.create_request();
    request.set_input(0, rows(2, 1));
    request.set_input(1, rows(2, 2));
    return request;
  }
  /// To be held by callbacks, which are copied.
  static std::shared_ptr<Request> shared(const CompiledModel& compiled) {
    return std::make_shared<Request>(ready(compiled));
  }
};
INSTANTIATE_TEST_SUITE_P(Streams, Callbacks, ::testing::Values(0, 1, 2));

/// The callback that runs is let go of when it has returned, and a request with it.
TEST_P(Callbacks, replaced_by_themselves) {
  auto request = ready(sums_);
  auto own = shared(sums_);
  const std::weak_ptr<Request> watch = own;
  request.set_callback([&request, own](const std::exception_ptr&) {
    own->start();
    request.set_callback({});
  });
  own.reset();
  request.start();
  request.wait();
  request.start();  // the callback that was has gone, on whichever thread
  request.wait();
  EXPECT_TRUE(watch.expired());
}

TEST_P(Callbacks, leave_nothing_behind_that_destroy_their_request) {
  std::promise<void> gone;
  // Calls when the callback itself goes, which is the last of the request to go.
  std::shared_ptr<int> last(new int, [&gone](const int* p) {
    delete p;
    gone.set_value();
  });
  auto held = std::make_shared<std::optional<Request>>(ready(sums_));
  (*held)->set_callback([held, last](const std::exception_ptr&) { held->reset(); });
  auto& request = **held;
  last.reset();
  held.reset();
  request.start();
  gone.get_future().wait();
}

/// The inference went well, whatever its callback has met.
TEST_P(Callbacks, that_throw_what_they_got_from_others) {
  auto request = ready(sums_), other = ready(others_);
  request.set_callback([&](const std::exception_ptr&) { throw Error(ErrorCode::canceled, "another one"); });
  request.start();
  EXPECT_THROW(request.wait(), Error);
  EXPECT_EQ(request.status(), RequestStatus::failed);
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));
}

TEST_P(Callbacks, start_and_cancel_their_own_request_many_times) {
  auto request = ready(sums_);
  int calls = 0;
  request.set_callback([&](const std::exception_ptr&) {
    if (++calls > 50000) return;
    request.start();
    request.cancel();
  });
  request.start();
  EXPECT_THROW(request.wait(), Error);
  EXPECT_EQ(calls, 50001);
  EXPECT_EQ(request.status(), RequestStatus::canceled);
}

/// The progress callback of an inference that plans for a new shape.
TEST_P(Callbacks, of_progress_shut_nothing_down) {
  std::atomic<int> refused = 0;
  std::atomic<bool> runs = false;
  Options options{.streams = GetParam()};
  options.progress = [&](std::string_view, double) {
    if (!runs) return;
    try {
      shutdown();
    } catch (const Error& e) {
      refused += e.code() == ErrorCode::busy;
    }
  };
  const CompiledModel compiled(model_of(sums()), options);
  auto request = ready(compiled);
  runs = true;
  request.start();
  request.wait();
  request.run();
  EXPECT_GT(refused, 0);
}

TEST_P(Callbacks, of_the_log_shut_nothing_down) {
  int refused = 0;
  Options options{.streams = GetParam()};
  options.log = [&](LogLevel, std::string_view) {
    try {
      shutdown();
    } catch (const Error& e) {
      refused += e.code() == ErrorCode::busy;
    }
  };
  options.exempt = {"no such node"};
  const CompiledModel compiled(model_of(sums()), options);
  EXPECT_GT(refused, 0);
}

/// The stream is given to the request that is queued while its thread destroys that very request.
TEST_P(Callbacks, have_a_request_that_waits_for_their_stream) {
  std::promise<void> gone;
  auto held = std::make_shared<std::optional<Request>>(ready(sums_));
  std::shared_ptr<Request> queued(new Request(ready(sums_)), [&gone](const Request* r) {
    delete r;
    gone.set_value();
  });
  (*held)->set_callback([held, queued](const std::exception_ptr&) {
    queued->start();
    held->reset();
  });
  queued.reset();
  auto& request = **held;
  held.reset();
  request.start();
  gone.get_future().wait();
}

/// A callback waits for a request of another model, whose callback waits for one of the first model.
TEST_P(Callbacks, wait_across_models) {
  auto first = ready(sums_), second = ready(others_), third = ready(sums_);
  std::atomic<int> calls = 0;
  third.set_callback([&](const std::exception_ptr&) { ++calls; });
  second.set_callback([&](const std::exception_ptr&) {
    third.start();
    third.wait();
    ++calls;
  });
  first.set_callback([&](const std::exception_ptr&) {
    second.start();
    second.wait();
    ++calls;
  });
  first.start();
  first.wait();
  EXPECT_EQ(calls, 3);
}

/// A callback that is due because its request was canceled.
TEST_P(Callbacks, wait_across_models_for_what_was_canceled) {
  auto first = ready(sums_), second = ready(others_), third = ready(sums_);
  std::atomic<int> calls = 0;
  third.set_callback([&](const std::exception_ptr&) { ++calls; });
  second.set_callback([&](const std::exception_ptr&) {
    third.start();
    third.cancel();
    try {
      third.wait();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::canceled);
    }
    ++calls;
  });
  first.set_callback([&](const std::exception_ptr&) {
    second.start();
    second.wait();
    ++calls;
  });
  first.start();
  first.wait();
  EXPECT_EQ(calls, 3);
}

/// The stream's thread waits for what a thread without streams is at, which waits for a callback that is due.
TEST_P(Callbacks, wait_for_a_thread_that_waits_for_one_of_theirs) {
  const CompiledModel here(model_of(sums()), {.streams = 0});
  auto first = ready(sums_), second = ready(here), third = ready(sums_);
  std::promise<void> begun, all_started;
  std::atomic<int> calls = 0;
  third.set_callback([&](const std::exception_ptr&) { ++calls; });
  second.set_callback([&](const std::exception_ptr&) {
    begun.set_value();
    all_started.get_future().wait();
    third.wait();
    ++calls;
  });
  first.set_callback([&](const std::exception_ptr&) {
    third.start();
    all_started.set_value();
    second.wait();
    ++calls;
  });
  std::thread other([&] { second.start(); });
  begun.get_future().wait();
  first.start();
  other.join();
  first.wait();
  third.wait();
  EXPECT_EQ(calls, 3);
}

/// A callback in a thread without streams waits for a request whose stream is held by a callback that waits
/// for the former.
TEST_P(Callbacks, wait_for_a_thread_of_theirs_that_waits_for_them) {
  const CompiledModel here(model_of(sums()), {.streams = 0});
  auto first = ready(sums_), second = ready(here), third = ready(sums_);
  std::promise<void> begun, held;
  std::atomic<int> calls = 0;
  second.set_callback([&](const std::exception_ptr&) {
    begun.set_value();
    held.get_future().wait();
    third.start();
    third.wait();
    ++calls;
  });
  first.set_callback([&](const std::exception_ptr&) {
    held.set_value();
    second.wait();
    ++calls;
  });
  std::thread other([&] { second.start(); });
  begun.get_future().wait();
  first.start();
  other.join();
  first.wait();
  EXPECT_EQ(calls, 2);
}

/// The other request has a callback, too: called by another thread than the one that destroys it.
TEST_P(Callbacks, destroy_another_request) {
  if (GetParam() == 0) GTEST_SKIP() << "start() returns at rest";
  auto other = std::make_optional(ready(sums_));
  std::thread::id inside, called;
  other->set_callback([&](const std::exception_ptr&) { called = std::this_thread::get_id(); });
  auto request = ready(sums_);
  request.set_callback([&](const std::exception_ptr&) {
    inside = std::this_thread::get_id();
    other->start();
    other.reset();
    EXPECT_NE(called, std::thread::id());
  });
  request.start();
  request.wait();
  EXPECT_NE(called, inside);
}

/// Threads that came for callbacks that wait are used again.
TEST_P(Callbacks, that_wait_take_few_threads) {
  auto first = ready(sums_), second = ready(sums_);
  std::set<std::thread::id> threads;
  second.set_callback([&](const std::exception_ptr&) { threads.insert(std::this_thread::get_id()); });
  first.set_callback([&](const std::exception_ptr&) {
    threads.insert(std::this_thread::get_id());
    second.start();
    second.wait();
  });
  for (int i = 0; i < 100; ++i) {
    first.start();
    first.wait();
  }
  EXPECT_LE(threads.size(), std::size_t{10});
}

}  // namespace
}  // namespace lamina
