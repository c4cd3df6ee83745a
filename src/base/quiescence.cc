#include "base/quiescence.h"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/awaited_by.h"
#include "base/cancellation.h"
#include "base/condition_variable.h"
#include "base/guard.h"
#include "base/no_destructor.h"
#include "base/threads.h"

namespace lamina {
namespace {

std::atomic<bool> the_end{false};
std::atomic<int> forks{0};  // under way, in other threads and this one
thread_local int work = 0, users_code = 0;

}  // namespace

std::atomic<bool> Activity::wanted_{false};
constinit thread_local int Quiescence::Moving::depth_ = 0;

struct AllActivities {
  std::mutex mutex;
  ConditionVariable resumed;
  Activity* first = nullptr;
  std::thread::id owner;  // the thread that began the quiescent state
  /// The thread that forks, from before_fork() on: it has the mutex, and handlers of fork() that are not ours
  /// may use lamina there.
  std::atomic<std::thread::id> forking{};

  bool forks_here() const { return forking.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  bool is_wanted_by_another() const {
    return Activity::wanted_.load() && owner != std::this_thread::get_id();
  }
  /// True if activities of this chain must pause. A thread that helps in a step does not pause, since the
  /// step waits for it; nor does an activity that a step waits for (Activity::urge).
  bool must_pause(const Activity* chain) const {
    if (!is_wanted_by_another() || LoopHelper::is_here()) return false;
    while (chain != nullptr && chain->urgent_ == 0) chain = chain->next_;
    return chain == nullptr;
  }
  template <class F>
  bool any(const F& is) const {
    for (auto* x = first; x != nullptr; x = x->after_)
      if (is(*x)) return true;
    return false;
  }
  void remove(Activity& x) {
    (x.before_ != nullptr ? x.before_->after_ : first) = x.after_;
    if (x.after_ != nullptr) x.after_->before_ = x.before_;
  }
  bool works_here(const Activity& x) const { return x.worker_.load() == std::this_thread::get_id(); }
  /// Pauses the activities in which the calling thread works, and returns them as a chain.
  Activity* pause() {
    Activity* chain = nullptr;
    for (auto* x = first; x != nullptr; x = x->after_)
      if (works_here(*x)) {
        x->stopped_ = std::this_thread::get_id();
        x->worker_ = std::thread::id();
        x->next_ = std::exchange(chain, x);
      }
    return chain;
  }
  /// Lets the activity continue when no other thread wants a quiescent state.
  void resume(Activity* chain, std::unique_lock<std::mutex>& lock) {
    resumed.wait(lock, [&] { return !must_pause(chain); });
    resume_now(chain);
  }
  void resume_now(Activity* chain) {
    for (; chain != nullptr; chain = std::exchange(chain->next_, nullptr)) {
      chain->stopped_ = std::thread::id();
      chain->worker_ = std::this_thread::get_id();
    }
  }
};

namespace {

AllActivities& all() {
  static NoDestructor<AllActivities> one;
  return *one;
}

}  // namespace

int& depth_of_work() noexcept { return work; }

CountsAsPaused::CountsAsPaused() noexcept : depth_(std::exchange(work, 0)) {
  const Quiescence::Undisturbed lock;
  chain_ = all().pause();
}

CountsAsPaused::~CountsAsPaused() {
  work = depth_;
  if (chain_ == nullptr) return;
  auto& a = all();
  if (a.forks_here()) {
    a.resume_now(chain_);
    return;
  }
  std::unique_lock lock(a.mutex);
  a.resume(chain_, lock);
}

InUsersCallback::InUsersCallback() noexcept
    : computes_(FloatingPoint::here()),
      entries_(std::exchange(entries_here(), {.count = 0, .exit_noticed = true, .callers = {}})),
      scope_(StopScope::leave()),
      moving_(std::exchange(Quiescence::Moving::depth_, 0)) {
  ++users_code;
  if (entries_.count > 0) entries_.callers.set_here();
}
InUsersCallback::~InUsersCallback() {
  computes_.set_here();
  --users_code;
  entries_here() = entries_;
  StopScope::enter(scope_);
  Quiescence::Moving::depth_ = moving_;
}
bool InUsersCallback::is_here() noexcept { return users_code > 0; }

void Activity::enlist() noexcept {
  auto& a = all();
  const Quiescence::Undisturbed lock;
  after_ = a.first;
  if (after_ != nullptr) after_->before_ = this;
  a.first = this;
}

void Activity::delist() noexcept {
  const Quiescence::Undisturbed lock;
  all().remove(*this);
}

bool Quiescence::may_pause_here() noexcept {
  if (Moving::is_here() || LoopHelper::is_here() || !is_wanted()) return false;
  const Undisturbed lock;
  return all().must_pause(nullptr);
}

/// Pauses the activity with all that the thread runs: a step may run a model of its own.
void Activity::stop_here() noexcept {
  auto& a = all();
  if (a.forks_here()) return;
  std::unique_lock lock(a.mutex);
  if (a.must_pause(nullptr)) a.resume(a.pause(), lock);
}

void Activity::urge(int by) noexcept {
  auto& a = all();
  const Quiescence::Undisturbed lock;
  urgent_ += by;
  if (urgent_ > 0) a.resumed.notify_all();
}

bool Quiescence::awaits_this_thread() noexcept {
  if (LoopHelper::is_here()) return true;
  auto& a = all();
  const Undisturbed lock;
  return a.any([&](const Activity& x) { return a.works_here(x); });
}

void Quiescence::begin() noexcept {
  using Clock = std::chrono::steady_clock;
  auto& a = all();
  const auto me = std::this_thread::get_id();
  std::unique_lock lock(a.mutex);
  // One of another thread has to end first, which may be waiting for us; who ends the process may still fork.
  auto* const chain = a.pause();
  a.resumed.wait(lock, [&] { return the_end || !a.is_wanted_by_another(); });
  if (a.is_wanted_by_another()) return a.resume_now(chain);  // for good: nothing else works any more
  a.resume(chain, lock);
  a.owner = me;
  Activity::wanted_.store(true, std::memory_order_seq_cst);
  bool own = false;
  const auto busy = [&] {
    return a.any([&](const Activity& x) {
      const auto worker = x.worker_.load(std::memory_order_seq_cst);
      const bool mine =
          worker == me || LoopHelper::is_awaited_by(worker);  // who waits for me does not go on either
      own |= mine || x.stopped_ == me;
      return worker != std::thread::id() && !mine;
    });
  };
  const auto helped = [&] { return a.any([](const Activity& x) { return x.helpers() > 0; }); };
  const auto nap = [&] {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  };
  while (busy()) nap();
  const auto late = Clock::now() + std::chrono::seconds(1);
  // A helper that has left an arena is in the library's locks for a moment: a child would find them taken.
  // Others may keep it busy, which is not waited for.
  while (!own && helped() && Clock::now() < late) nap();
  // Helpers of the calling thread's own work may be needed there, and are not asked to go; those that wait
  // for work fall asleep all the same.
  FallingAsleep helpers;
  const auto too_late = Clock::now() + std::chrono::seconds(10);
  while (!helpers.is_over() && Clock::now() < too_late) nap();
}

void Quiescence::end() noexcept {
  if (the_end) return;
  auto& a = all();
  std::lock_guard lock(a.mutex);
  a.owner = {};
  Activity::wanted_.store(false, std::memory_order_seq_cst);
  a.resumed.notify_all();
}

Quiescence::Undisturbed::Undisturbed() noexcept {
  if (!all().forks_here()) all().mutex.lock();
}
Quiescence::Undisturbed::~Undisturbed() {
  if (!all().forks_here()) all().mutex.unlock();
}

void Quiescence::fork_begins() noexcept { ++forks; }

void Quiescence::await_forks() noexcept {
  using Clock = std::chrono::steady_clock;
  const auto late = Clock::now() + std::chrono::seconds(1);
  while (forks > 0 && Clock::now() < late) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Quiescence::before_fork() noexcept {
  auto& a = all();
  a.mutex.lock();
  a.forking = std::this_thread::get_id();
}

void Quiescence::after_fork_in_parent() noexcept {
  auto& a = all();
  a.forking = std::thread::id();
  a.mutex.unlock();
  end();
  --forks;
}

void Quiescence::after_fork_in_child() noexcept {
  auto& a = all();
  forks = 0;
  if (the_end) a.owner = std::this_thread::get_id();  // what ends the process is not here
  new (&a.resumed) ConditionVariable;                 // those who waited are not here
  const auto me = std::this_thread::get_id();
  for (auto* x = a.first; x != nullptr; x = x->after_) {
    if (x->worker_.load() != me) x->worker_ = std::thread::id();
    if (x->stopped_ != me) x->stopped_ = std::thread::id();
    x->urgent_ = 0;  // a thread that urges waits, so it is not the one that forks
    if (!x->child_begins(me)) a.remove(*x);
  }
  a.forking = std::thread::id();
  a.mutex.unlock();
  end();
}

void Quiescence::dismiss_helpers() noexcept {
  begin();  // run() may be called meanwhile
  {
    auto& a = all();
    std::lock_guard lock(a.mutex);
    for (auto* x = a.first; x != nullptr; x = x->after_)
      if (x->worker_.load() == std::thread::id() && x->stopped_ == std::thread::id()) x->dismiss();
  }
  end();
}

void Quiescence::for_good() noexcept {
  if (the_end) return;
  begin();
  the_end = true;
  auto& a = all();
  const std::lock_guard lock(a.mutex);
  a.resumed.notify_all();  // threads that want to fork need not wait
}

void Quiescence::stop_at_exit() noexcept {
  std::atexit([] {
    for_good();
    OwnThread::join_ended();
  });
}

bool Quiescence::is_for_good() noexcept { return the_end.load(std::memory_order_relaxed); }

bool Quiescence::ends_process() noexcept {
  if (!is_for_good()) return false;
  auto& a = all();
  std::lock_guard lock(a.mutex);
  return a.owner == std::this_thread::get_id();
}

bool at_fork(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  return pthread_atfork(prepare, parent, child) == 0;
}

}  // namespace lamina
