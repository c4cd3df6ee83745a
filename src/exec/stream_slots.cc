/// The threads of streams, which run inferences that were started, and callbacks.
#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "exec/dispatch.h"

namespace lamina {
namespace {

std::string name_of(const StreamSlot& slot) { return "lamina-s" + std::to_string(slot.index); }

}  // namespace

/// Makes the workers when the first request is started.
void Scheduler::Core::make_workers() {
  for (auto& slot : slots_)
    if (slot->worker == nullptr) take_worker(*slot);
}

/// A spare worker, or else a new one.
void Scheduler::Core::take_worker(StreamSlot& slot) {
  const auto spare = std::find_if(workers_.begin(), workers_.end(), [](const auto& w) { return w->spare; });
  auto worker = spare != workers_.end() ? *spare : std::make_shared<Worker>(*this);
  if (spare == workers_.end()) {
    workers_.reserve(workers_.size() + 1);
    worker->thread = OwnThread(name_of(slot), [core = shared_from_this(), worker] { core->work(*worker); });
    workers_.push_back(worker);
  }
  worker->spare = false;
  worker->slot = &slot;
  slot.worker = worker.get();
}

/// Passes the stream to another thread, which serves it from now on.
void Scheduler::Core::pass_on(Worker& worker) {
  auto& slot = *worker.slot;
  take_worker(slot);
  worker.slot = nullptr;
  free_.give_back_locked(slot.index);
  advance();
}

void Dispatch::before_waiting() {
  auto* const worker_here = worker();
  if (worker_here != nullptr && worker_here->slot != nullptr && !worker_here->infers)
    worker_here->core.pass_on(*worker_here);
  auto& d = here();
  if (d.turn != nullptr && d.turn->in_own_callback()) d.end_turn(*d.turn);
}

void Scheduler::Core::work(Worker& worker) {
  Dispatch::worker() = &worker;
  const StreamSlot* bound = nullptr;
  Lock lock(Dispatch::here().mutex);
  for (;;) {
    worker.wake.wait(lock, [&] { return worker.quit || (worker.slot != nullptr && worker.slot->job); });
    if (worker.slot == nullptr || !worker.slot->job) return;
    auto& slot = *worker.slot;
    auto job = std::move(slot.job);
    if (bound != std::exchange(bound, &slot)) {
      name_thread_here(name_of(slot));
      slot.stream.bind_own_thread();
    }
    if (job->state() == JobState::calling) {
      call(lock, *job);
    } else {
      worker.infers = true;
      infer_started(lock, *job, &slot);
      worker.infers = false;
      after_inference(lock, *job);
    }
    lock.unlock();
    job.reset();  // its last owner may be here, and what that owns may call us, and wait for the stream
    lock.lock();
    if (worker.slot != nullptr) {
      free_.give_back_locked(worker.slot->index);
      advance();
    }
    worker.spare = worker.slot == nullptr;
  }
}

void Scheduler::Core::infer_started(Lock& lock, Job& job, StreamSlot* slot) {
  lock.unlock();
  job.runner_ = std::this_thread::get_id();
  std::exception_ptr error;
  try {
    infer_here(job, slot);
  } catch (...) {
    error = std::current_exception();
  }
  job.runner_ = std::thread::id();
  lock.lock();
  job.error_ = std::move(error);
}

void Scheduler::Core::after_inference(Lock& lock, Job& job) {
  if (!job.callback_) return rest(job, outcome_of(job.error_));
  job.state_ = JobState::calling;
  call(lock, job);
}

/// Calls the callback of a job that was canceled before it ran: from the next free stream, and in turn.
void Scheduler::Core::call_later(Job& job) {
  auto& d = Dispatch::here();
  if (exclusive_ && d.turn != &job) {
    job.join(d.waiting_for_turn);
    return d.next_turn();
  }
  if (job.thread_ != nullptr) return job.thread_->notify_all();  // start_here() goes on
  job.join(callbacks_);
  advance();
}

void Scheduler::Core::call(Lock& lock, Job& job) {
  auto callback = job.callback_;
  const auto error = job.error_;
  job.caller_ = std::this_thread::get_id();
  lock.unlock();
  std::exception_ptr thrown;
  {
    const InUsersCallback here;
    try {
      (*callback)(error);
    } catch (...) {
      thrown = std::current_exception();
    }
    callback.reset();  // it may have set another one, and what it owned may call us
  }
  if (thrown) job.callback_failed(thrown);
  if (job.again_) thrown = nullptr;
  lock.lock();
  job.caller_ = std::thread::id();
  if (job.again_) {
    try {
      make_workers();  // in a child of fork() they are gone
    } catch (...) {
      job.again_ = job.again_canceled_ = false;
      thrown = std::current_exception();
    }
  }
  if (!job.again_) {
    if (!thrown || job.error_) return rest(job, outcome_of(job.error_));
    job.error_ = thrown;
    return rest(job, JobState::failed);
  }
  job.again_ = false;
  const bool canceled = std::exchange(job.again_canceled_, false);
  job.error_ = canceled ? canceled_error() : nullptr;
  if (canceled) job.forget_result();
  job.state_ = canceled ? JobState::dropped : JobState::queued;
  Dispatch::here().end_turn(job);
  if (slots_.empty()) return;  // start_here() goes on
  canceled ? call_later(job) : enqueue(job);
}

/// Sets the job's final state before the exclusive lock goes to the next job. The caller frees the stream
/// afterwards.
void Scheduler::Core::rest(Job& job, JobState state) noexcept {
  job.state_ = state;
  job.wake_waiters();
  Dispatch::here().end_turn(job);
  if (job.self_ == nullptr) return;
  // A last reference is kept: the job must not be destroyed under the lock.
  if (auto self = std::move(job.self_); self.use_count() == 1) job.self_ = std::move(self);
}

/// Ends the threads of the streams. If the model is destroyed in a thread of a stream, its own or another's,
/// it waits for none of them, since they may wait for this thread: they are detached first.
void Scheduler::Core::quit() noexcept {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    const std::lock_guard lock(Dispatch::here().mutex);
    workers = dismiss();
    for (auto& worker : workers) {
      if (Quiescence::is_for_good())
        worker->thread.forget();
      else if (Dispatch::worker() != nullptr)
        worker->thread.leave_over();
    }
  }
  for (auto& worker : workers) worker->thread.join();
  OwnThread::join_ended();
}

/// Detaches the workers: each exits after its current job. The caller joins them.
std::vector<std::shared_ptr<Worker>> Scheduler::Core::dismiss() noexcept {
  for (auto& worker : workers_) {
    worker->quit = true;
    worker->wake.notify_all();
  }
  for (auto& slot : slots_) slot->worker = nullptr;
  return std::exchange(workers_, {});
}

}  // namespace lamina
