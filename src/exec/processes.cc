/// Queues and streams when the process forks, ends, or joins all threads (shutdown).
#define TBB_PREVIEW_WAITING_FOR_WORKERS 1
#include <tbb/global_control.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/arena.h"
#include "base/awaited_by.h"
#include "base/error.h"
#include "exec/dispatch.h"
#include "exec/processes.h"

namespace lamina {
namespace {

thread_local Worker* this_worker = nullptr;
thread_local bool fork_prepared = false;  // before_fork() has taken the locks for this thread's fork()

/// Time that shut_down() gives inferences in run() of other threads.
constexpr std::chrono::seconds kPatience{2};

}  // namespace

Dispatch& Dispatch::here() {
  static NoDestructor<Dispatch> dispatch;
  return *dispatch;
}

/// At the first use, not when the library is loaded: handlers that were registered last are called first, and
/// those of other libraries, such as an allocator, take locks that work may need while fork() waits for it.
/// They may be registered twice: a child makes this object again if the parent was making it (MakeOnce). The
/// second call of a handler does nothing (fork_prepared).
Dispatch::Dispatch() {
  at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
  Quiescence::stop_at_exit();
}

void follow_process() { Dispatch::here(); }

Worker*& Dispatch::worker() noexcept { return this_worker; }

void Dispatch::next_turn() {
  if (turn != nullptr || waiting_for_turn.empty()) return;
  // Callbacks of canceled jobs come first, as in the queues before streams.
  const auto dropped = std::find_if(waiting_for_turn.begin(), waiting_for_turn.end(),
                                    [](const Job* job) { return job->dropped(); });
  auto& job = dropped != waiting_for_turn.end() ? **dropped : *waiting_for_turn.front();
  turn = &job;
  if (job.thread_ != nullptr) {  // without streams
    job.leave();
    job.thread_->notify_all();
    return;
  }
  auto& core = *job.scheduler().core_;
  job.join(job.dropped() ? core.callbacks_ : core.queue_);
  core.advance();
}

void Dispatch::end_turn(Job& job) {
  if (turn != &job) return;
  turn = nullptr;
  next_turn();
}

void Dispatch::before_fork() noexcept {
  if (fork_prepared) return;
  Quiescence::fork_begins();
  Quiescence::begin();
  here().mutex.lock();
  Quiescence::before_fork();
  fork_prepared = true;
}

void Dispatch::after_fork_in_parent() noexcept {
  if (!std::exchange(fork_prepared, false)) return;
  here().mutex.unlock();
  Quiescence::after_fork_in_parent();
}

void Dispatch::after_fork_in_child() noexcept {
  if (!std::exchange(fork_prepared, false)) return;
  OwnThread::forget_leftovers();
  helpers_lost();
  forget_idle_arenas();
  ProcessorLocks::here().after_fork();
  auto& d = here();
  d.child_begins();
  d.mutex.unlock();
  Quiescence::after_fork_in_child();
}

/// In the child of fork() the calling thread is the only one. Its own work continues: it may be in a
/// callback.
void Dispatch::child_begins() noexcept {
  const auto me = std::this_thread::get_id();
  closing = false;
  new (&opened_) ConditionVariable;  // those who waited are not here
  for (auto* job : jobs) {
    job->waiters_ = nullptr;
    job->waiting_ = 0;
    job->leave();
    job->thread_ = nullptr;
    if (!job->belongs_to(me) && !at_rest(job->state())) job->end_in_child();
  }
  if (turn != nullptr && !turn->belongs_to(me)) turn = nullptr;
  for (auto* core : cores) core->child_begins();
}

/// Threads that do not exist in the child still wait on objects of their workers: nothing is destroyed here.
void Scheduler::Core::child_begins() noexcept {
  const auto me = std::this_thread::get_id();
  const auto is_here = [](const Worker* worker) { return worker != nullptr && worker == Dispatch::worker(); };
  const auto is_taken = [&](int stream) {
    const auto& jobs = Dispatch::here().jobs;
    return is_here(slots_[static_cast<std::size_t>(stream)]->worker) ||
           std::any_of(jobs.begin(), jobs.end(), [&](Job* job) {
             return job->belongs_to(me) && job->stream_ == stream && job->scheduler().core_.get() == this;
           });
  };
  for (auto& worker : workers_)
    if (!is_here(worker.get())) {
      worker->thread.forget();
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): a child without memory for that ends.
      (void)new std::shared_ptr<Worker>(worker);
    }
  std::erase_if(workers_, [&](const auto& worker) { return !is_here(worker.get()); });
  for (auto& slot : slots_) {
    if (!is_here(slot->worker)) slot->worker = nullptr;
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new)
    if (slot->job) (void)new std::shared_ptr<Job>(std::move(slot->job));
  }
  callers_.child_begins();
  free_.reset(is_taken);
  forked_ = true;
  free_.somebody_waits(true);  // the next one comes by and says so
}

bool Dispatch::is_awaited() noexcept {
  return InUsersCallback::is_here() || AwaitedBy::anything() || Quiescence::awaits_this_thread();
}

void Dispatch::await_opening() {
  if (is_awaited()) return;
  Core::Lock lock(mutex);
  opened_.wait(lock, [&] {
    return !closing || std::any_of(jobs.begin(), jobs.end(),
                                   [](const Job* job) { return job->state() == JobState::calling; });
  });
}

void Dispatch::shut_down() {
  if (Quiescence::is_for_good()) return;  // the process ends: threads stay where they are
  if (is_awaited()) fail(ErrorCode::busy, "shutdown() in a callback or a custom layer would wait for itself");
  Core::Lock lock(mutex);
  if (closing) fail(ErrorCode::busy, "shutdown() is under way in another thread");
  closing = true;
  const auto at_peace = [&] {
    return std::all_of(jobs.begin(), jobs.end(), [](const Job* job) { return at_rest(job->state()); }) &&
           std::all_of(cores.begin(), cores.end(), [](const Core* core) { return core->free_.all_free(); });
  };
  // A run() gets some time to finish; jobs that were started are canceled at once.
  using Clock = std::chrono::steady_clock;
  const auto late = Clock::now() + kPatience;
  while (!at_peace()) {
    const bool patient = Clock::now() < late;
    for (auto* job : jobs)
      if (!patient || job->self_ != nullptr) job->scheduler().core_->cancel(*job);
    opened_.notify_all();
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock.lock();
  }
  join_threads(lock);
  closing = false;
  opened_.notify_all();
}

/// Joins the threads of streams, then those of the library, which end only when no arena is left.
void Dispatch::join_threads(Core::Lock& lock) {
  std::vector<std::vector<std::shared_ptr<Worker>>> workers(cores.size());
  std::transform(cores.begin(), cores.end(), workers.begin(), [](Core* core) { return core->dismiss(); });
  lock.unlock();
  const Uninterrupted here;  // the library must not be found in between by fork()
  for (const auto& some : workers)
    for (const auto& worker : some) worker->thread.join();
  OwnThread::join_leftovers();
  Quiescence::dismiss_helpers();
  drop_idle_arenas();
  tbb::task_scheduler_handle handle{tbb::attach{}};
  if (tbb::finalize(handle, std::nothrow)) helpers_ended();
  lock.lock();
}

}  // namespace lamina
