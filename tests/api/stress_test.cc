/// Several threads and models, which do at random whatever the rules of requests allow. LAMINA_SEED picks the
/// seed, LAMINA_STRESS_MINUTES how long; without it there is none.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <utility>

#include "tests/api/stress.h"

namespace lamina {
namespace {

using namespace testing;

constexpr int kThreads = 4, kOwn = 3, kShared = 2, kSteps = 150;

/// False: refused, which is right only while something is under way.
template <class F>
bool unless_busy(const Tried& t, const F& f) {
  try {
    f();
    return true;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::canceled && closing) return false;
    EXPECT_EQ(e.code(), ErrorCode::busy) << e.what();
    EXPECT_TRUE(t.under_way) << e.what();
    ++totals.busy;
    return false;
  }
}

class Worker {
 public:
  Worker(std::uint64_t seed, int index, const std::vector<std::shared_ptr<const Subject>>& subjects,
         const std::vector<std::unique_ptr<Tried>>& shared)
      : random_(seed), index_(index), subjects_(subjects), shared_(shared) {}

  void work() {
    for (int i = 0; i < kOwn; ++i) own_.push_back(fresh());
    for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
      for (int i = 0; i < kShared; ++i)
        if (random_.one_in(kShared + kOwn)) use(*shared_[static_cast<std::size_t>(index_ * kShared + i)]);
      auto& t = own_[below(kOwn)];
      random_.one_in(8) ? change(t) : use(*t);
      if (random_.one_in(3)) look_at_others();
    }
    own_.clear();
  }
  AllCalls calls;

 private:
  const std::shared_ptr<const Subject>& any_subject() { return subjects_[below(subjects_.size())]; }
  std::unique_ptr<Tried> fresh() { return std::make_unique<Tried>(any_subject(), calls); }

  /// What may be done with one that stays where it is.
  void use(Tried& t) {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return start(t);
      case 2:
        return wait(t, std::nullopt);
      case 3:
        return wait(t, random_.below(3) * 50us);
      case 4:
        t.may_be_canceled = true;
        return t.request.cancel();
      case 5:
        return run(t);
      case 6:
        return set_input(t);
      case 7:
        return set_callback(t);
      case 8:
        return count(t);
      default:
        return poll(t);
    }
  }

  void start(Tried& t) {
    if (t.under_way) wait(t, std::nullopt);
    const bool threw = std::exchange(t.throws, false);
    const bool canceled = t.may_be_canceled.exchange(t.shared);
    t.under_way = started(t);
    if (t.under_way) return;
    t.throws = threw;  // of the last one, as before
    t.may_be_canceled = canceled;
  }

  void wait(Tried& t, std::optional<std::chrono::nanoseconds> time) {
    try {
      if (time && !t.request.wait_for(*time)) return;
      if (!time) t.request.wait();
      at_rest(t, std::nullopt);
    } catch (const Error& e) {
      at_rest(t, e.code());
    } catch (const std::runtime_error&) {  // the callback's, as it is
      EXPECT_TRUE(t.throws);
      at_rest(t, ErrorCode::internal);
    }
  }

  void poll(Tried& t) {
    for (;;) {
      const auto status = t.request.status();
      if (status == RequestStatus::idle) return;
      if (status == RequestStatus::queued || status == RequestStatus::running) {
        std::this_thread::yield();
        continue;
      }
      return wait(t, 0ns);
    }
  }

  void run(Tried& t) {
    const bool rests = !t.under_way;
    if (rests) t.may_be_canceled = t.shared;
    try {
      t.request.run();
      ++totals.runs;
      t.throws = false;
      at_rest(t, std::nullopt);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::busy) {  // while it is under way
        EXPECT_FALSE(rests) << "busy at rest";
        ++totals.busy;
      } else {
        t.throws = false;
        at_rest(t, e.code());
      }
    }
  }

  /// What it was waited for, and what that threw, must go together.
  void at_rest(Tried& t, std::optional<ErrorCode> thrown) {
    t.under_way = false;
    const auto status = t.request.status();
    if (status == RequestStatus::idle) return;
    if (!thrown) {
      EXPECT_EQ(status, RequestStatus::done);
      EXPECT_TRUE(t.subject->right(t.request, t.input));
      ++totals.right;
    } else if (*thrown == ErrorCode::canceled) {
      EXPECT_EQ(status, RequestStatus::canceled);
      EXPECT_TRUE(t.may_be_canceled || closing);
      error_of([&] { (void)t.request.output(0); }, ErrorCode::bad_input);
      ++totals.canceled;
    } else {
      EXPECT_EQ(status, RequestStatus::failed);
      EXPECT_TRUE(t.throws || (*thrown == ErrorCode::bad_input && t.subject->fails(t.input)));
      EXPECT_TRUE(t.subject->fails(t.input) || t.subject->right(t.request, t.input));
      ++totals.failed;
    }
  }
  /// Runs it, so that results go with inputs.
  void set_input(Tried& t) {
    const int input = random_.below(kFails + 1);
    if (unless_busy(t, [&] { t.subject->set(t.request, input); })) t.input = input, run(t);
  }

  void set_callback(Tried& t) {
    Callback callback{static_cast<Callback::What>(random_.below(Callback::whats)), &t, t.calls};
    if (callback.what == Callback::uses) {
      auto& other = *(callback.other = std::make_shared<Tried>(any_subject(), calls));
      other.called = random_.one_in(2);
      if (other.called) other.request.set_callback(Callback{Callback::nothing, nullptr, other.calls});
    }
    const auto first = t.shared ? rank(t) + 1 : 0;
    if (first == shared_.size() && callback.what == Callback::waits) callback.what = Callback::nothing;
    if (callback.what == Callback::waits)
      callback.awaited = shared_[first + below(shared_.size() - first)].get();
    const bool stays = callback.what != Callback::nothing;
    if (!unless_busy(t, [&] { t.request.set_callback(std::move(callback)); })) return;
    t.called = true;
    t.stays = stays;
    t.again = random_.below(6);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.below(static_cast<int>(n))); }
  std::size_t rank(const Tried& t) const {
    std::size_t i = 0;
    while (shared_[i].get() != &t) ++i;
    return i;
  }

  void count(Tried& t) {
    const bool on = random_.one_in(2);
    if (!unless_busy(t, [&] { t.request.set_profile(on); })) return;
    if (on)
      EXPECT_FALSE(t.request.counters().empty());
    else
      error_of([&] { (void)t.request.counters(); }, ErrorCode::bad_option);
  }

  /// Moves, destroys, in every state.
  void change(std::unique_ptr<Tried>& t) {
    switch (random_.below(4)) {
      case 0:
        t = fresh();
        break;
      case 1: {
        if (t->stays) wait(*t, std::nullopt);
        Request other = std::move(t->request);
        t->request = std::move(other);
        break;
      }
      case 2:  // what was under way is canceled, with its callback
        if (t->stays) wait(*t, std::nullopt);
        t->request = t->subject->compiled.create_request();
        t->subject->set(t->request, t->input = 0);
        t->called = t->stays = t->under_way = false;
        break;
      default:
        destroy_in_callback(std::move(t));
        t = fresh();
    }
  }

  /// With the last handle of its model, now and then.
  void destroy_in_callback(std::unique_ptr<Tried> t) {
    if (random_.one_in(4))
      t = std::make_unique<Tried>(subject(random_.below(3), random_.one_in(3), true, false), calls);
    else
      t = fresh();
    auto held = std::make_shared<std::unique_ptr<Tried>>(std::move(t));
    auto& request = (*held)->request;
    const auto count = (*held)->calls;
    request.set_callback([held, count](const std::exception_ptr&) {
      ++count->came, ++totals.callbacks;
      held->reset();
    });
    ++count->wanted;
    try {
      request.start();
      ++totals.starts;
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == ErrorCode::canceled && closing) << e.what();
      --count->wanted;
      held->reset();
    }
  }

  void look_at_others() {
    auto& request = shared_[below(shared_.size())]->request;
    try {
      switch (random_.below(5)) {
        case 0:
          return request.cancel();
        case 1:
          return request.wait();
        case 2:
          return void(request.wait_for(random_.below(3) * 50us));
        case 3:
          return void(any_subject()->compiled.property("NUM_STREAMS"));
        default:
          EXPECT_LE(request.status(), RequestStatus::canceled);
      }
    } catch (const Error& e) {
      EXPECT_NE(e.code(), ErrorCode::busy) << e.what();
    } catch (const std::runtime_error&) {  // a callback's
    }
  }

  Random random_;
  int index_;
  const std::vector<std::shared_ptr<const Subject>>& subjects_;
  const std::vector<std::unique_ptr<Tried>>& shared_;
  std::vector<std::unique_ptr<Tried>> own_;
};

std::vector<std::shared_ptr<const Subject>> subjects(Random& random) {
  std::vector<std::shared_ptr<const Subject>> all;
  for (const int streams : {0, 1, 2})
    for (const bool is_sum : {true, false}) {
      all.push_back(subject(streams, false, is_sum, random.one_in(2)));
      if (streams < 2) all.push_back(subject(streams, true, is_sum, random.one_in(2)));
    }
  return all;
}

/// All threads at once; then every callback has come, however the requests went.
void phase(std::uint64_t seed, const std::vector<std::shared_ptr<const Subject>>& subjects) {
  Random random(seed);
  AllCalls calls;
  std::vector<std::unique_ptr<Tried>> shared;
  for (int i = 0; i < kThreads * kShared; ++i) {
    const auto n = static_cast<std::size_t>(random.below(static_cast<int>(subjects.size())));
    shared.push_back(std::make_unique<Tried>(subjects[n], calls));
    shared.back()->shared = true;
  }
  closing = random.one_in(3);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < kThreads; ++i)
    workers.push_back(
        std::make_unique<Worker>(seed * kThreads + static_cast<unsigned>(i), i, subjects, shared));
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&worker] { worker->work(); });
  for (int i = 0; closing && i < 3; ++i) std::this_thread::sleep_for(2ms), shutdown();
  for (auto& t : threads) t.join();
  closing = true;  // shared ones may be canceled below
  if (random.one_in(2)) shutdown();
  shared.clear();
  for (auto& worker : workers) calls.insert(calls.end(), worker->calls.begin(), worker->calls.end());
  for (auto& c : calls) {  // those that were destroyed in their callbacks may still be under way
    while (c->came < c->wanted) std::this_thread::yield();
    EXPECT_EQ(c->came, c->wanted);
  }
}

double number_of(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtod(text, nullptr) : otherwise;
}

TEST(Stress, requests_of_several_models_in_several_threads) {
  if (std::getenv("LAMINA_STRESS_MINUTES") == nullptr)
    GTEST_SKIP() << "LAMINA_STRESS_MINUTES is not set (make tsan does it)";
  using Clock = std::chrono::steady_clock;
  const auto seed = static_cast<std::uint64_t>(number_of("LAMINA_SEED", 1));
  const std::chrono::duration<double> time(60 * number_of("LAMINA_STRESS_MINUTES", 1.0 / 30));
  std::cout << "stress: seed " << seed << std::endl;
  const auto begin = Clock::now();
  int phases = 0;
  Random random(seed);
  const auto goes_on = [&] { return Clock::now() - begin < time && !HasFailure(); };
  do {
    const auto all = subjects(random);
    for (int i = 0; i < 20 && (i == 0 || goes_on()); ++i) {
      ::alarm(300);  // whoever hangs is ended, with the seed above
      phase(1000 * seed + static_cast<unsigned>(phases++), all);
      ::alarm(0);
    }
  } while (goes_on());
  std::cout << "stress: " << phases << " phases, " << totals.starts << " starts, " << totals.runs << " runs, "
            << totals.callbacks << " callbacks; " << totals.right << " right, " << totals.canceled
            << " canceled, " << totals.failed << " failed, " << totals.busy << " busy" << std::endl;
  EXPECT_GT(totals.right, 0);
}

}  // namespace
}  // namespace lamina
