#include "base/standstill.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/immortal.h"
#include "base/threads.h"

namespace lamina {
namespace {

struct All {
  std::mutex mutex;
  std::condition_variable resumed;
  std::vector<Activity*> activities;
  std::thread::id owner;  // who brought the standstill about
};
std::atomic<bool> the_end{false};

All& all() {
  static Immortal<All> one;
  return *one;
}

}  // namespace

std::atomic<bool> Activity::wanted_{false};

void Activity::enlist() {
  auto& a = all();
  std::lock_guard lock(a.mutex);
  a.activities.push_back(this);
}

void Activity::delist() noexcept {
  auto& a = all();
  std::lock_guard lock(a.mutex);
  std::erase(a.activities, this);
}

void Activity::stop_here() noexcept {
  auto& a = all();
  const auto me = std::this_thread::get_id();
  std::unique_lock lock(a.mutex);
  while (wanted_ && a.owner != me) {
    stopped_ = true;
    worker_.store({}, std::memory_order_release);
    a.resumed.wait(lock, [] { return !wanted_.load(); });
    worker_.store(me, std::memory_order_seq_cst);
  }
  stopped_ = false;
}

void Standstill::begin() noexcept {
  using Clock = std::chrono::steady_clock;
  auto& a = all();
  const auto me = std::this_thread::get_id();
  std::unique_lock lock(a.mutex);
  // One of another thread has to end first; who ends the process may still fork.
  a.resumed.wait(lock, [&] { return !Activity::wanted_.load() || a.owner == me; });
  a.owner = me;
  Activity::wanted_.store(true, std::memory_order_seq_cst);
  bool own = false;
  const auto busy = [&] {
    return std::any_of(a.activities.begin(), a.activities.end(), [&](const Activity* x) {
      const auto worker = x->worker_.load(std::memory_order_seq_cst);
      own |= worker == me;
      return worker != std::thread::id() && worker != me;
    });
  };
  const auto helped = [&] {
    return std::any_of(a.activities.begin(), a.activities.end(),
                       [](const Activity* x) { return x->helpers_->load() > 0; });
  };
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
  const auto soon = Clock::now() + std::chrono::seconds(1);
  while (!own && !helpers_sleep() && Clock::now() < soon) nap();
}

void Standstill::end() noexcept {
  if (the_end) return;
  auto& a = all();
  std::lock_guard lock(a.mutex);
  a.owner = {};
  Activity::wanted_.store(false, std::memory_order_seq_cst);
  a.resumed.notify_all();
}

void Standstill::before_fork() noexcept { all().mutex.lock(); }

void Standstill::after_fork_in_parent() noexcept {
  all().mutex.unlock();
  end();
}

void Standstill::after_fork_in_child() noexcept {
  auto& a = all();
  new (&a.resumed) std::condition_variable;  // those who waited are not here
  const auto me = std::this_thread::get_id();
  std::erase_if(a.activities, [&](const Activity* x) { return x->is_of_another(me); });
  for (auto* activity : a.activities) {
    if (activity->worker_.load() != me) activity->worker_ = std::thread::id();
    *activity->helpers_ = 0;
    activity->stopped_ = false;
    activity->forget_helpers();
  }
  a.mutex.unlock();
  end();
}

void Standstill::dismiss_helpers() noexcept {
  begin();  // run() may be called meanwhile
  {
    auto& a = all();
    std::lock_guard lock(a.mutex);
    for (auto* activity : a.activities)
      if (activity->worker_.load() == std::thread::id() && !activity->stopped_) activity->dismiss();
  }
  end();
}

void Standstill::for_good() noexcept {
  begin();
  the_end = true;
}

bool Standstill::is_for_good() noexcept { return the_end.load(std::memory_order_relaxed); }

bool at_fork(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  return pthread_atfork(prepare, parent, child) == 0;
}

}  // namespace lamina
