/// What happens to queues and streams when the process forks, ends, or lets go of all threads.
#define TBB_PREVIEW_WAITING_FOR_WORKERS 1
#include <tbb/global_control.h>

#include <chrono>
#include <cstdlib>

#include "base/error.h"
#include "exec/dispatch.h"

namespace lamina {
namespace {

thread_local Lane* this_lane = nullptr;
thread_local Job* this_callback = nullptr;

}  // namespace

/// Never destroyed: threads may be here until the process is gone.
Dispatch& Dispatch::here() {
  static auto* const dispatch = new Dispatch;
  return *dispatch;
}

Dispatch::Dispatch() {
  at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
  // What runs stops between two steps and stays there, so that nothing works on what exit() takes down.
  std::atexit([] { Standstill::for_good(); });
}

Lane*& Dispatch::lane() noexcept { return this_lane; }
Job*& Dispatch::callback_here() noexcept { return this_callback; }

std::condition_variable& Dispatch::waker(std::condition_variable& own) noexcept {
  return this_lane != nullptr ? *this_lane->wake : own;
}

void Dispatch::wake_helpers() noexcept {
  for (auto* core : cores)
    for (auto& lane : core->lanes_)
      if (lane->helping > 0) lane->wake->notify_all();
}

void Dispatch::block(Core::Lock& lock, std::condition_variable& waker, const Job* target,
                     const std::function<bool()>& done, const std::chrono::steady_clock::time_point* until) {
  if (this_lane != nullptr) return this_lane->core.help(lock, *this_lane, target, done, until);
  if (until != nullptr)
    waker.wait_until(lock, *until, done);
  else
    waker.wait(lock, done);
}

void Dispatch::next_turn() {
  if (turn != nullptr || waiting_for_turn.empty()) return;
  auto& job = *waiting_for_turn.front();
  turn = &job;
  if (job.thread_ != nullptr) {  // without streams
    job.leave();
    job.thread_->notify_all();
    return;
  }
  auto& core = *job.scheduler().core_;
  job.join(core.queue_);
  core.advance();
}

void Dispatch::end_turn(Job& job) {
  if (turn != &job) return;
  turn = nullptr;
  next_turn();
}

void Dispatch::before_fork() noexcept {
  Standstill::begin();
  here().mutex.lock();
  Standstill::before_fork();
}

void Dispatch::after_fork_in_parent() noexcept {
  here().mutex.unlock();
  Standstill::after_fork_in_parent();
}

void Dispatch::after_fork_in_child() noexcept {
  OwnThread::forget_leftovers();
  helpers_lost();
  ProcessorLocks::here().after_fork();
  auto& d = here();
  d.child_begins();
  d.mutex.unlock();
  Standstill::after_fork_in_child();
}

/// The only thread is the calling one. What it does itself goes on: it may be in a callback.
void Dispatch::child_begins() noexcept {
  const auto me = std::this_thread::get_id();
  turn = nullptr;
  closing = false;
  for (auto* job : jobs) {
    job->waiters_ = nullptr;
    job->waiting_ = 0;
    job->leave();
    job->thread_ = nullptr;
    job->awaits_ = nullptr;
    const bool mine = job->caller_.load() == me || (job->runner_ == me && job->state() == JobState::running);
    if (mine || at_rest(job->state())) continue;
    job->end_in_child();
  }
  for (auto* core : cores) {
    for (auto& lane : core->lanes_) {
      const bool mine = lane.get() == this_lane;
      (void)lane->wake.release();  // threads that are gone wait there
      lane->wake = std::make_unique<std::condition_variable>();
      if (lane->job) (void)new std::shared_ptr<Job>(std::move(lane->job));  // nothing is destroyed in here
      lane->lent_to = nullptr;
      if (!mine) {
        lane->helping = 0;
        lane->thread.forget();
      }
    }
    core->free_.reset([&](int i) {
      return this_lane != nullptr && core->lanes_[static_cast<std::size_t>(i)].get() == this_lane;
    });
    core->forked_ = true;
    core->free_.somebody_waits(true);  // the next one comes by and says so
  }
}

void Dispatch::shut_down() {
  if (this_callback != nullptr) fail(ErrorCode::busy, "shutdown() in a callback would wait for itself");
  Core::Lock lock(mutex);
  if (closing) fail(ErrorCode::busy, "shutdown() is under way in another thread");
  closing = true;
  const auto at_peace = [&] {
    return std::all_of(jobs.begin(), jobs.end(), [](const Job* job) { return at_rest(job->state()); }) &&
           std::all_of(cores.begin(), cores.end(), [](const Core* core) { return core->free_.all_free(); });
  };
  while (!at_peace()) {
    for (auto* job : jobs)
      if (job->state() == JobState::queued) job->scheduler().core_->cancel(*job);
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock.lock();
  }
  join_threads(lock);
  closing = false;
}

/// Of streams, then the library's, which end only when no arena is left.
void Dispatch::join_threads(Core::Lock& lock) {
  std::vector<OwnThread> threads;
  for (auto* core : cores)
    for (auto& lane : core->lanes_) {
      if (core->quitting_) continue;
      lane->quit = true;
      lane->wake->notify_all();
      threads.push_back(std::move(lane->thread));
    }
  lock.unlock();
  const Uninterrupted here;  // the library must not be found in between by fork()
  threads.clear();           // joins
  OwnThread::join_leftovers();
  Standstill::dismiss_helpers();
  tbb::task_scheduler_handle handle{tbb::attach{}};
  if (tbb::finalize(handle, std::nothrow)) helpers_ended();
  lock.lock();
}

}  // namespace lamina
