#pragma once
/// What stress_test.cc tries: models, requests with what is known of them, callbacks.
#include <atomic>
#include <random>
#include <utility>

#include "tests/api/small_models.h"

namespace lamina::testing {

using namespace std::chrono_literals;

constexpr int kFails = 3;  // the input that does not fit

struct Totals {
  std::atomic<long> starts = 0, runs = 0, callbacks = 0, canceled = 0, failed = 0, busy = 0, right = 0;
};
inline Totals totals;
inline std::atomic<bool> closing = false;  // shutdown() is called beside all else

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

/// A compiled model, what can be set, and what comes of it.
struct Subject {
  CompiledModel compiled;
  bool is_sum;
  std::vector<Tensor> wanted = {};

  void set(Request& request, int input) const {
    if (!is_sum) return request.set_input(0, square(8, 0.1F * static_cast<float>(input + 1)));
    request.set_input(0, rows(1 + input % 2, static_cast<float>(input)));
    request.set_input(1, rows(input == kFails ? 3 : 1 + input % 2, 2));
  }
  bool fails(int input) const { return is_sum && input == kFails; }
  bool right(const Request& request, int input) const {
    const auto index = static_cast<std::size_t>(input);
    return request.output(is_sum ? 1 : 0).same_as(wanted[index]);
  }
};

inline std::shared_ptr<const Subject> subject(int streams, bool exclusive, bool is_sum, bool profile) {
  const auto model = model_of(is_sum ? sums() : products(6, 8));
  auto s = std::make_shared<Subject>(Subject{
      CompiledModel(model, {.threads = 2, .streams = streams, .exclusive = exclusive, .profile = profile}),
      is_sum});
  for (int input = 0; input <= kFails; ++input) {
    auto request = s->compiled.create_request();
    s->set(request, input);
    if (!s->fails(input)) request.run();
    s->wanted.push_back(s->fails(input) ? Tensor() : request.output(is_sum ? 1 : 0).clone());
  }
  return s;
}

/// Calls for one request: callbacks that must come, and callbacks that came.
struct Calls {
  std::atomic<long> wanted = 0, came = 0;
};
using AllCalls = std::vector<std::shared_ptr<Calls>>;

/// A request and what is known of it. Its thread, or its callback, changes it; lamina orders them.
struct Tried {
  Tried(std::shared_ptr<const Subject> of, AllCalls& all)
      : subject(std::move(of)), request(subject->compiled.create_request()) {
    subject->set(request, 0);
    all.push_back(calls);
  }
  std::shared_ptr<const Subject> subject;
  std::shared_ptr<Calls> calls = std::make_shared<Calls>();
  int input = 0;
  bool called = false;                        // it has a callback
  int again = 0;                              // how often that starts it anew
  bool throws = false;                        // the callback did so
  bool stays = false;                         // the callback knows where it is
  bool shared = false;                        // others cancel it and wait for it
  bool under_way = false;                     // it was started and not seen at rest since
  std::atomic<bool> may_be_canceled = false;  // someone did it since the last start
  Request request;                            // goes first
};

/// Starts it at rest, or in its callback. False: refused, since it goes, or in shutdown().
inline bool started(Tried& t) {
  const bool called = t.called;
  t.calls->wanted += called;
  try {
    t.request.start();
    ++totals.starts;
    return true;
  } catch (const Error& e) {
    t.calls->wanted -= called;
    EXPECT_EQ(e.code(), ErrorCode::canceled) << e.what();
    return false;
  }
}

/// What a callback does beside being counted.
struct Callback {
  enum What { nothing, again, cancels_itself, fails, uses, replaces, waits, whats };
  What what = nothing;
  Tried* self = nullptr;
  std::shared_ptr<Calls> calls;
  std::shared_ptr<Tried> other = nullptr;  // for it alone
  Tried* awaited = nullptr;                // a shared one that never waits for this

  void operator()(const std::exception_ptr& error) {
    ++calls->came, ++totals.callbacks;
    if (what == nothing) return;
    EXPECT_EQ(self->request.status(), RequestStatus::running);
    EXPECT_TRUE(error || self->subject->right(self->request, self->input));
    self->throws = what == fails;
    if (what == fails) throw std::runtime_error("of the callback");
    if (what == uses) return use();
    if (what == waits) return wait();
    if (what != replaces) return restart();
    self->called = false;
    self->request.set_callback({});
  }

 private:
  void restart() {
    if (self->again-- <= 0) return;
    const int before = std::exchange(self->input, self->again % kFails);
    self->subject->set(self->request, self->input);
    if (!started(*self)) return self->subject->set(self->request, self->input = before);
    try {
      self->request.start();
      ADD_FAILURE() << "started twice in one callback";
    } catch (const Error& e) {
      // canceled: it is being destroyed, or shutdown() is under way
      EXPECT_TRUE(e.code() == ErrorCode::busy || e.code() == ErrorCode::canceled) << e.what();
    }
    if (what == cancels_itself) self->may_be_canceled = true, self->request.cancel();
  }
  void use() {
    try {
      other->request.wait();
      const int turn = self->again++ % 4;
      if (turn < 2 && !started(*other)) return;
      if (turn == 0) return;  // it goes on
      if (turn == 1) other->request.wait();
      if (turn > 1) other->request.run();
      EXPECT_TRUE(other->subject->right(other->request, other->input));
    } catch (const Error& e) {
      EXPECT_TRUE(closing && e.code() == ErrorCode::canceled) << e.what();
    }
  }
  void wait() {
    try {
      awaited->request.wait();
    } catch (const Error& e) {
      EXPECT_NE(e.code(), ErrorCode::busy) << e.what();
    } catch (const std::runtime_error&) {  // a callback's
    }
  }
};

}  // namespace lamina::testing
