/// What the threads of streams do: inferences that were started, and callbacks.
#include <utility>

#include "base/error.h"
#include "exec/dispatch.h"

namespace lamina {

/// With the first request that is started.
void Scheduler::Core::make_threads() {
  for (auto& lane : lanes_) {
    if (lane->thread.running()) continue;
    lane->quit = false;
    lane->thread = OwnThread("lamina-s" + std::to_string(lane->index),
                             [core = shared_from_this(), &it = *lane] { core->work(it); });
  }
}

/// What the thread of a stream does.
void Scheduler::Core::work(Lane& lane) {
  Dispatch::lane() = &lane;
  lane.stream.bind_own_thread();
  Lock lock(Dispatch::here().mutex);
  for (;;) {
    lane.wake->wait(lock, [&] { return lane.job != nullptr || lane.quit; });
    if (lane.job == nullptr) return;
    auto job = std::move(lane.job);
    if (job->state() == JobState::calling) {
      call(lock, *job);
    } else {
      infer_started(lock, *job, lane.stream);
      after_inference(lock, *job, true);
    }
    lock.unlock();
    job.reset();  // its last owner may be here, and what that owns may call us, and wait for the stream
    lock.lock();
    free_.give_back_locked(lane.index);
    advance();
  }
}

void Scheduler::Core::infer_started(Lock& lock, Job& job, Stream& stream) {
  lock.unlock();
  std::exception_ptr error;
  try {
    job.infer(stream);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  job.error_ = std::move(error);
  Dispatch::here().end_turn(job);
}

void Scheduler::Core::after_inference(Lock& lock, Job& job, bool call_now) {
  if (!job.callback_) return rest(job);
  if (!call_now) return call_later(job);
  job.state_ = JobState::calling;
  call(lock, job);
}

/// From the next free stream, or in a callback that waits for it, of whichever model.
void Scheduler::Core::call_later(Job& job) {
  job.state_ = JobState::calling;
  job.join(callbacks_);
  Dispatch::here().wake_helpers();
  advance();
}

void Scheduler::Core::call(Lock& lock, Job& job) {
  auto callback = job.callback_;
  const auto error = job.error_;
  job.caller_ = std::this_thread::get_id();
  auto* const outer = std::exchange(Dispatch::callback_here(), &job);
  auto* const awaited = outer ? std::exchange(outer->awaits_, &job) : nullptr;
  lock.unlock();
  std::exception_ptr thrown;
  try {
    (*callback)(error);
  } catch (...) {
    thrown = std::current_exception();
  }
  callback.reset();  // it may have set another one, and what it owned may call us
  if (thrown) job.callback_failed(thrown);
  if (job.again_) thrown = nullptr;
  lock.lock();
  Dispatch::callback_here() = outer;
  if (outer) outer->awaits_ = awaited;
  job.caller_ = std::thread::id();
  if (!job.again_) {
    if (thrown && !job.error_) job.error_ = thrown;
    return rest(job);
  }
  job.again_ = false;
  job.error_ = nullptr;
  if (!job.again_canceled_) {
    job.state_ = JobState::queued;
    if (!lanes_.empty()) enqueue(job);
    return;
  }
  job.again_canceled_ = false;
  job.error_ = canceled_error();
  job.forget_result();
  after_inference(lock, job, lanes_.empty());
}

void Scheduler::Core::rest(Job& job) noexcept {
  job.state_ = outcome_of(job.error_);
  job.wake_waiters();
  if (job.self_ == nullptr) return;
  // The caller has another reference, or goes without the lock: not here.
  if (auto self = std::move(job.self_); self.use_count() == 1) job.self_ = std::move(self);
}

/// A job whose callback nobody calls yet, and without which the target does not come to rest: itself, or what
/// its callback waits for, in whichever thread.
std::shared_ptr<Job> Scheduler::Core::due_before(const Job* target) {
  for (auto most = Dispatch::here().jobs.size(); target != nullptr && most > 0; --most) {
    if (target->callback_waits()) return target->self_;
    target = target->awaits_;
  }
  return nullptr;
}

/// In a callback, where the thread of the stream waits: its inferences come first, callbacks of others have
/// to wait, since they might wait for this one.
void Scheduler::Core::help(Lock& lock, Lane& lane, const Job* target, const std::function<bool()>& done,
                           const std::chrono::steady_clock::time_point* until) {
  const auto over = [&] { return until != nullptr && std::chrono::steady_clock::now() >= *until; };
  ++lane.helping;
  while (!done() && (lane.lent_to != nullptr || !over())) {
    if (auto job = due_before(target)) {
      job->leave();
      job->scheduler().core_->call(lock, *job);
      lock.unlock();
      job.reset();  // its last owner may be here
      lock.lock();
    } else if (lane.lent_to == nullptr && !queue_.empty()) {
      auto& job = *queue_.front();
      job.leave();
      job.state_ = JobState::running;
      if (job.thread_ != nullptr) {
        lane.lent_to = &job;
        free_.somebody_waits(true);
        job.granted_ = lane.index;
        job.thread_->notify_all();
      } else {
        auto self = job.self_;
        infer_started(lock, job, lane.stream);
        after_inference(lock, job, false);
        lock.unlock();
        self.reset();
        lock.lock();
      }
    } else if (until != nullptr && lane.lent_to == nullptr) {
      lane.wake->wait_until(lock, *until);
    } else {
      lane.wake->wait(lock);
    }
  }
  // The stream is this callback's again, unless it was lent to what this very callback runs.
  lane.wake->wait(lock, [&] { return lane.lent_to == nullptr || lane.lent_to == target; });
  --lane.helping;
}

/// The thread of the last handle may be one of these itself: it ends when its callback has returned, and is
/// left over before anybody can think that the model has no threads. Others that were left over are joined
/// only if they have ended: they may wait for this very thread.
void Scheduler::Core::quit() noexcept {
  {
    const std::lock_guard lock(Dispatch::here().mutex);
    quitting_ = true;
    for (auto& lane : lanes_) {
      lane->quit = true;
      lane->wake->notify_all();
      if (lane->thread.is_this_thread() && !Standstill::is_for_good()) lane->thread.leave_over();
    }
  }
  for (auto& lane : lanes_) {
    OwnThread thread;
    {
      const std::lock_guard lock(Dispatch::here().mutex);  // shut_down() may be about to join it
      thread = std::move(lane->thread);
    }
    Standstill::is_for_good() ? thread.forget() : thread.join();
  }
  OwnThread::join_ended();
}

}  // namespace lamina
