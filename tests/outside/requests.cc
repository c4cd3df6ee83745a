// The ten rules of requests, as a program sees them that has nothing but the installed package: with 1, 2 and
// 0 streams. Here: what is under way, start, wait and callbacks.
#include "requests.h"

#include <limits>

namespace {

using namespace requests;

void refused_by(Request& r) {
  EXPECT(thrown([&] { r.start(); }) == ErrorCode::busy);
  EXPECT(thrown([&] { r.run(); }) == ErrorCode::busy);
  EXPECT(thrown([&] { r.set_input(0, filled({3, 8}, 100)); }) == ErrorCode::busy);
  EXPECT(thrown([&] { r.set_input("nobody", {}); }).has_value());
  EXPECT(thrown([&] { r.set_output(0, filled({3, 8}, 100)); }) == ErrorCode::busy);
  EXPECT(thrown([&] { r.set_callback({}); }) == ErrorCode::busy);
  EXPECT(thrown([&] { r.set_profile(true); }) == ErrorCode::busy);
  EXPECT(thrown([&] { (void)r.output(0); }) == ErrorCode::busy);  // rule 9
}

/// 1, 9, 10: under way is queued, running, and the callback.
void what_is_under_way_is_left_alone() {
  std::atomic<int> calls = 0;
  if (streams > 0) {
    auto r = small(1, 1);
    r.set_callback([&](std::exception_ptr) { ++calls; });
    {
      AllStreams held;
      r.start();
      EXPECT(r.status() == RequestStatus::queued);
      refused_by(r);
      EXPECT(!r.wait_for(0ns));
      EXPECT(!r.wait_for(2ms));
    }
    r.wait();
    EXPECT(calls == 1);
    EXPECT(small_is(r, 3));
  }
  Gate gate;
  auto r = small(1, 2);
  calls = 0;
  r.set_callback([&](std::exception_ptr) {
    ++calls;
    gate.pass();
  });
  std::thread starter([&] { r.start(); });  // without streams it stays in there
  gate.wait_for(1);
  if (streams > 0) starter.join();
  EXPECT(r.status() == RequestStatus::running);
  refused_by(r);
  EXPECT(!r.wait_for(0ns));
  EXPECT(!r.wait_for(-1ms));
  gate.open();
  if (streams == 0) starter.join();
  r.wait();
  EXPECT(r.status() == RequestStatus::done);
  EXPECT(calls == 1);
  EXPECT(small_is(r, 4));

  auto other = without_end(1);
  std::thread runner([&] { EXPECT(thrown([&] { other.run(); }) == ErrorCode::canceled); });
  EXPECT(soon([&] { return other.status() == RequestStatus::running; }));
  EXPECT(thrown([&] { other.start(); }) == ErrorCode::busy);
  EXPECT(thrown([&] { other.set_input(0, filled({1, 4}, 5)); }) == ErrorCode::busy);
  EXPECT(thrown([&] { other.set_input(1, lamina::Tensor::scalar<bool>(false)); }) == ErrorCode::busy);
  other.cancel();
  runner.join();
  other.set_input(1, lamina::Tensor::scalar<bool>(false));
  other.run();
  EXPECT(all_are(other.output(0), 1));
}

/// 1: in its own callback.
void callbacks_set_and_start_their_own() {
  std::atomic<int> calls = 0, overlapped = 0;
  std::atomic<bool> inside = false;
  auto r = small(0, 0);
  const auto memory = filled({3, 8}, -1);
  r.set_callback([&](std::exception_ptr error) {
    overlapped += inside.exchange(true);
    EXPECT(error == nullptr);
    EXPECT(small_is(r, 2 * static_cast<float>(calls)));
    EXPECT(r.status() == RequestStatus::running);
    EXPECT(thrown([&] { r.wait(); }) == ErrorCode::busy);
    EXPECT(thrown([&] { r.wait_for(1s); }) == ErrorCode::busy);
    EXPECT(thrown([&] { r.run(); }) == ErrorCode::busy);
    if (++calls < 20) {
      r.set_input(0, filled({3, 8}, static_cast<float>(calls)));
      r.set_profile(calls % 2 == 0);
      r.start();
      if (calls == 3) std::this_thread::sleep_for(20ms);  // the next one begins when this has returned
      EXPECT(thrown([&] { r.start(); }) == ErrorCode::busy);
    } else {
      r.set_output(0, memory);
    }
    inside = false;
  });
  r.start();
  r.wait();  // until the last one: each start prolongs it
  EXPECT(calls == 20);
  EXPECT(overlapped == 0);
  r.set_callback({});
  r.run();
  EXPECT(small_is(r, 38));
  EXPECT(all_are(memory, 38));

  // Another one may take its place from within.
  auto s = small(1, 0);
  calls = 0;
  s.set_callback([&](std::exception_ptr) {
    ++calls;
    s.set_callback([&](std::exception_ptr) { calls += 10; });
    s.start();
  });
  s.start();
  s.wait();
  EXPECT(calls == 11);
}

/// 2, 3, 4
void start_that_throws_has_started_nothing() {
  std::atomic<int> calls = 0;
  auto r = small_model->create_request();
  r.set_callback([&](std::exception_ptr) { ++calls; });
  r.wait();
  EXPECT(r.wait_for(0ns));
  r.set_input(0, filled({3, 8}, 1));
  EXPECT(thrown([&] { r.start(); }) == ErrorCode::bad_input);
  EXPECT(r.status() == RequestStatus::idle);
  r.wait();
  r.set_input(1, filled({2, 8}, 1));  // 3 rows and 2: seen when it runs
  r.start();
  std::string text;
  for (int i = 0; i < 3; ++i) EXPECT(thrown([&] { r.wait(); }, &text) == ErrorCode::bad_input);
  EXPECT(thrown([&] { r.wait_for(0ns); }) == ErrorCode::bad_input);
  EXPECT(r.status() == RequestStatus::failed);
  EXPECT(thrown([&] { (void)r.output(0); }) == ErrorCode::bad_input);
  EXPECT(calls == 1);
  r.set_input(1, {});
  EXPECT(thrown([&] { r.start(); }) == ErrorCode::bad_input);
  EXPECT(r.status() == RequestStatus::failed);
  EXPECT(thrown([&] { r.wait(); }, &text) == ErrorCode::bad_input);
  EXPECT(calls == 1);
  r.set_input(1, filled({3, 8}, 1));
  r.run();
  r.wait();
  EXPECT(calls == 1);  // 3: run() calls none
  EXPECT(r.status() == RequestStatus::done);
  r.set_input(0, filled({9, 8}, 1));
  EXPECT(thrown([&] { r.run(); }) == ErrorCode::bad_input);
  EXPECT(thrown([&] { r.wait(); }) == ErrorCode::bad_input);
  EXPECT(r.status() == RequestStatus::failed);
}

/// 3: where callbacks come.
void callbacks_come_on_lamina_s_threads() {
  const auto me = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0, here = 0;
  std::vector<Request> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(small(1, static_cast<float>(i)));
    all.back().set_callback(
        [&](std::exception_ptr) { std::this_thread::get_id() == me ? ++here : ++elsewhere; });
  }
  for (int round = 0; round < 10; ++round) {
    for (auto& r : all) r.start();
    for (auto& r : all) r.wait();
  }
  EXPECT((streams == 0 ? here : elsewhere) == 80);
  EXPECT((streams == 0 ? elsewhere : here) == 0);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT(small_is(all[i], 2 + static_cast<float>(i)));
}

/// 4: any thread, several at once, any time.
void many_wait() {
  auto r = slow(3);
  std::atomic<int> back = 0;
  std::vector<std::thread> threads;
  std::thread starter([&] { r.start(); });
  if (streams > 0) starter.join();
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      if (i == 0)
        EXPECT(r.wait_for(std::chrono::nanoseconds::max()));
      else if (i == 1)
        while (!r.wait_for(100us)) continue;
      else
        r.wait();
      ++back;
    });
  if (streams == 0) starter.join();
  for (auto& t : threads) t.join();
  r.wait();
  EXPECT(back == 4);
  EXPECT(all_are(r.output(0), 3));
}

/// 5
void callbacks_use_others() {
  std::atomic<int> calls = 0;
  auto outer = small(1, 0), inner = small(2, 0), third = small(3, 0), fourth = small(4, 0);
  inner.set_callback([&](std::exception_ptr) {
    third.run();
    fourth.start();
    fourth.wait();
    ++calls;
  });
  outer.set_callback([&](std::exception_ptr) {
    std::vector<Request> queue;
    for (int i = 0; i < 5; ++i) {
      queue.push_back(small(static_cast<float>(i), 1));
      queue.back().set_callback([&](std::exception_ptr) { ++calls; });
      queue.back().start();
    }
    inner.start();
    EXPECT(inner.wait_for(60s));
    EXPECT(small_is(inner, 4) && small_is(third, 6) && small_is(fourth, 8));
    for (auto& r : queue) r.wait();
    for (int i = 0; i < 5; ++i)
      EXPECT(small_is(queue[static_cast<std::size_t>(i)], 2 * static_cast<float>(i) + 1));
    {
      auto busy = slow(), dropped = slow();  // of another model
      busy.start();
      dropped.start();
      dropped.cancel();
      busy.wait();
      EXPECT(all_are(busy.output(0), 1));
    }
    const CompiledModel fresh(small_network().model(), {.streams = 1});
    auto own = fresh.create_request();
    own.set_input(0, filled({1, 8}, 5));
    own.set_input(1, filled({1, 8}, 5));
    own.start();
    own.wait();
    EXPECT(all_are(own.output(0), 15));
    ++calls;
  });
  outer.start();
  outer.wait();
  EXPECT(calls == 7);

  // More callbacks that wait for the next one than there are streams, and one that runs in each.
  std::vector<Request> chain, beside;
  for (int i = 0; i < 10; ++i) {
    chain.push_back(small(1, static_cast<float>(i)));
    beside.push_back(small(2, static_cast<float>(i)));
  }
  calls = 0;
  for (std::size_t i = 0; i < chain.size(); ++i)
    chain[i].set_callback([&, i](std::exception_ptr) {
      if (i + 1 < chain.size()) {
        if (!under_way(chain[i + 1]) && chain[i + 1].status() == RequestStatus::idle) chain[i + 1].start();
        chain[i + 1].wait();
      }
      beside[i].run();
      ++calls;
    });
  chain[0].start();
  for (auto& r : chain) r.wait();
  EXPECT(calls == 10);
}

}  // namespace

int main() {
  for (const int n : {1, 2, 0}) {
    streams = n;
    lamina::Options options{.streams = n};
    options.log = [](lamina::LogLevel level, std::string_view line) {
      const std::lock_guard lock(log_mutex);
      if (level == lamina::LogLevel::error) errors_logged.emplace_back(line);
    };
    small_model.emplace(small_network().model(), options);
    long_model.emplace(long_network(40, 512).model(), options);
    endless.emplace(endless_model(), options);
    EXPECT(small_model->streams() == n);
    const auto with = [&](const std::string& name) { return name + ", " + std::to_string(n) + " streams"; };
    attempt(with("what is under way is left alone"), what_is_under_way_is_left_alone);
    attempt(with("callbacks set and start their own"), callbacks_set_and_start_their_own);
    attempt(with("a start that throws has started nothing"), start_that_throws_has_started_nothing);
    attempt(with("callbacks come on lamina's threads"), callbacks_come_on_lamina_s_threads);
    attempt(with("many wait"), many_wait);
    attempt(with("callbacks use others"), callbacks_use_others);
    attempt(with("cancel in the queue"), cancel_in_the_queue);
    attempt(with("cancel while it runs"), cancel_while_it_runs);
    attempt(with("what callbacks throw"), what_callbacks_throw);
    attempt(with("requests go under way"), requests_go_under_way);
    attempt(with("last handles die anywhere"), last_handles_die_anywhere);
    attempt(with("models go by themselves"), models_go_by_themselves);
    attempt(with("the queue is fair"), the_queue_is_fair);
    attempt(with("callers at once"), callers_at_once);
    small_model.reset();
    long_model.reset();
    endless.reset();
  }
  return ends("requests");
}
