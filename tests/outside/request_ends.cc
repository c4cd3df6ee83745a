// The rules of requests: how they end otherwise than by being done, and who comes first.
#include <future>
#include <memory>

#include "requests.h"

namespace requests {

/// 6: queued.
void cancel_in_the_queue() {
  if (streams == 0) return;
  std::mutex mutex;
  std::string order;
  const auto note = [&](char what) {
    const std::lock_guard lock(mutex);
    order += what;
  };
  auto a = small(1, 0), b = small(2, 0), c = small(3, 0), silent = small(4, 0), running = small(5, 0);
  std::optional<ErrorCode> of_b;
  a.set_callback([&](std::exception_ptr) { note('a'); });
  b.set_callback([&](std::exception_ptr error) {
    note('b');
    if (error) of_b = thrown([&] { std::rethrow_exception(error); });
  });
  c.set_callback([&](std::exception_ptr) { note('c'); });
  {
    AllStreams held;
    a.start();
    c.start();
    b.start();
    silent.start();
    std::optional<ErrorCode> of_run;
    std::thread runner([&] { of_run = thrown([&] { running.run(); }); });
    EXPECT(soon([&] { return running.status() == RequestStatus::queued; }));
    running.cancel();
    runner.join();  // at once, though no stream is free
    EXPECT(of_run == ErrorCode::canceled);
    EXPECT(running.status() == RequestStatus::canceled);
    silent.cancel();
    EXPECT(silent.status() == RequestStatus::canceled);
    EXPECT(thrown([&] { silent.wait(); }) == ErrorCode::canceled);
    b.cancel();
    b.cancel();
    EXPECT(order.empty());
    EXPECT(under_way(b));
    EXPECT(thrown([&] { b.start(); }) == ErrorCode::busy);
  }
  EXPECT(thrown([&] { b.wait(); }) == ErrorCode::canceled);
  a.wait();
  c.wait();
  EXPECT(of_b == ErrorCode::canceled);
  if (streams == 1) EXPECT(order == "bac");
  EXPECT(order.size() == 3);
  std::string text;
  EXPECT(thrown([&] { (void)b.output(0); }, &text) == ErrorCode::bad_input);
  EXPECT(text.find("the last run was cancelled") != std::string::npos);
  for (auto* r : {&b, &silent, &running}) {
    r->start();
    r->wait();
  }
  EXPECT(small_is(b, 4) && small_is(silent, 8) && small_is(running, 10));
}

/// 6: running.
void cancel_while_it_runs() {
  auto r = without_end(2);
  std::atomic<int> calls = 0;
  std::optional<ErrorCode> seen;
  r.set_callback([&](std::exception_ptr error) {
    ++calls;
    if (error) seen = thrown([&] { std::rethrow_exception(error); });
  });
  for (const bool by_run : {false, true}) {
    std::optional<ErrorCode> of_run;
    std::thread other([&] {
      if (by_run)
        of_run = thrown([&] { r.run(); });
      else
        r.start();
    });
    EXPECT(soon([&] { return r.status() == RequestStatus::running; }));
    r.cancel();
    other.join();
    const auto of_wait = thrown([&] { r.wait(); });
    EXPECT(of_wait == ErrorCode::canceled);
    if (by_run) EXPECT(of_run == ErrorCode::canceled);
    if (!by_run) EXPECT(seen == ErrorCode::canceled);
    EXPECT(r.status() == RequestStatus::canceled);
    EXPECT(calls == 1);
    EXPECT(thrown([&] { (void)r.output(0); }) == ErrorCode::bad_input);
  }
  r.cancel();  // at rest: no effect, on the next start neither
  r.cancel();
  r.set_input(1, lamina::Tensor::scalar<bool>(false));
  r.start();
  r.wait();
  EXPECT(calls == 2);
  EXPECT(all_are(r.output(0), 2));
  r.cancel();
  EXPECT(r.status() == RequestStatus::done);
  EXPECT(all_are(r.output(0), 2));
}

/// 7
void what_callbacks_throw() {
  auto r = small(1, 1);
  for (const bool unknown : {false, true}) {
    errors_logged.clear();
    r.set_callback([&](std::exception_ptr) {
      if (unknown) throw 42;
      throw std::runtime_error("from the callback");
    });
    r.start();
    for (int i = 0; i < 2; ++i) {
      bool came = false;
      try {
        r.wait();
      } catch (const std::exception& e) {
        came = unknown || std::string(e.what()).find("from the callback") != std::string::npos;
      } catch (...) {
        came = unknown;
      }
      EXPECT(came);
    }
    EXPECT(r.status() == RequestStatus::failed);
    EXPECT(small_is(r, 3));
    EXPECT(errors_logged.size() == 1);
  }
  // The inference's own error comes first.
  r.set_input(1, filled({2, 8}, 1));
  r.set_callback([&](std::exception_ptr) { throw std::runtime_error("later"); });
  r.start();
  EXPECT(thrown([&] { r.wait(); }) == ErrorCode::bad_input);
  r.set_input(1, filled({3, 8}, 5));
  r.set_callback({});
  r.start();
  r.wait();
  EXPECT(small_is(r, 7));
}

/// 8
void requests_go_under_way() {
  std::atomic<int> calls = 0;
  const auto count = [&](std::exception_ptr) {
    std::this_thread::sleep_for(1ms);
    ++calls;
  };
  int started = 0;
  const auto begin = [&](Request& r) {
    r.set_callback(count);
    r.start();
    ++started;
  };
  for (int i = 0; i < 10; ++i) {
    auto first = slow(), second = slow(), third = slow();
    begin(first);
    begin(second);
    begin(third);
    if (i % 2 == 0) second = slow(4);  // gone: canceled and waited for
    if (i % 2 == 0) EXPECT(second.status() == RequestStatus::idle);
  }
  EXPECT(calls == started);

  // Moved, and both run on.
  auto moved = slow(7);
  begin(moved);
  std::vector<Request> place;
  place.push_back(std::move(moved));
  auto again = std::move(place[0]);
  again.wait();
  EXPECT(all_are(again.output(0), 7));
  EXPECT(calls == started);

  // In its own callback, with the last handle of the model.
  std::promise<void> returned;
  {
    auto model = std::make_shared<std::optional<CompiledModel>>(std::in_place, small_network().model(),
                                                                lamina::Options{.streams = streams});
    auto mine = std::make_shared<std::optional<Request>>((*model)->create_request());
    (*mine)->set_input(0, filled({1, 8}, 1));
    (*mine)->set_input(1, filled({1, 8}, 1));
    (*mine)->set_callback([model, mine, &returned](std::exception_ptr) {
      model->reset();
      mine->reset();
      returned.set_value();
    });
    (*mine)->start();
  }
  returned.get_future().wait();
}

/// 8: another request's last handle may die on a stream's thread.
void last_handles_die_anywhere() {
  for (int i = 0; i < 20; ++i) {
    auto other = std::make_shared<std::optional<Request>>();
    auto model = std::make_shared<std::optional<CompiledModel>>(std::in_place, small_network().model(),
                                                                lamina::Options{.streams = streams});
    *other = (*model)->create_request();
    (*other)->set_input(0, filled({1, 8}, 1));
    (*other)->set_input(1, filled({1, 8}, 1));
    if (i % 2 == 0) (*other)->start();
    model.reset();
    auto r = small(1, 1);
    r.set_callback([&](std::exception_ptr) { other.reset(); });
    r.start();
    r.wait();
  }
}

/// 8: a model that goes does not wait for what the callback of another one, that went on its own thread, had.
void models_go_by_themselves() {
  if (streams == 0) return;
  struct AtTheEnd {
    explicit AtTheEnd(Gate& g) : gate(g) {}
    ~AtTheEnd() { gate.pass(); }
    Gate& gate;
  };
  Gate gate, started;  // start() has a hand on the request, too
  {
    auto mine = std::make_shared<std::optional<Request>>(
        CompiledModel(small_network().model(), {.streams = streams}).create_request());
    (*mine)->set_input(0, filled({1, 8}, 1));
    (*mine)->set_input(1, filled({1, 8}, 1));
    (*mine)->set_callback([mine, &started, end = std::make_shared<AtTheEnd>(gate)](std::exception_ptr) {
      started.pass();
      mine->reset();
    });
    (*mine)->start();
    started.open();
  }
  gate.wait_for(1);
  {
    const CompiledModel other(small_network().model(), {.streams = streams});
    auto r = other.create_request();
    r.set_input(0, filled({1, 8}, 1));
    r.set_input(1, filled({1, 8}, 1));
    r.start();
    r.wait();
  }
  gate.open();
  lamina::shutdown();  // the thread is joined all the same: nothing of `gate` is used any more
}

/// First come, first served, run() among them.
void the_queue_is_fair() {
  if (streams != 1) return;
  std::mutex mutex;
  std::string order;
  const auto note = [&](char what) {
    const std::lock_guard lock(mutex);
    order += what;
  };
  std::vector<Request> started;
  std::vector<std::thread> runners;
  auto run_one = small(1, 1), run_two = small(1, 1);
  AllStreams held;
  for (char name : {'a', 'b', 'c'}) {
    started.push_back(small(1, 1));
    started.back().set_callback([&note, name](std::exception_ptr) { note(name); });
    started.back().start();
    if (name == 'c') break;
    auto& running = name == 'a' ? run_one : run_two;
    runners.emplace_back([&, name] {
      running.run();
      note(name == 'a' ? '1' : '2');
    });
    EXPECT(soon([&] { return running.status() == RequestStatus::queued; }));
  }
  held.release();
  for (auto& r : started) r.wait();
  for (auto& t : runners) t.join();
  EXPECT(order.find('a') < order.find('b') && order.find('b') < order.find('c'));
  EXPECT(order.size() == 5);
}

/// The caller's threads do the work, as many as there are.
void callers_at_once() {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      auto r = small(static_cast<float>(t), 1);
      std::atomic<int> calls = 0;
      r.set_callback([&](std::exception_ptr) { ++calls; });
      for (int i = 0; i < 100; ++i) {
        if (i % 3 == 0) {
          r.run();
        } else {
          r.start();
          r.wait();
        }
        right += small_is(r, 2 * static_cast<float>(t) + 1);
      }
      EXPECT(calls == 66);
    });
  for (auto& t : threads) t.join();
  EXPECT(right == 600);
}

}  // namespace requests
