/// The queue before the streams of a model, and the assignment of waiting jobs to free streams.
#include "exec/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/awaited_by.h"
#include "base/error.h"
#include "base/exiting.h"
#include "base/threads.h"
#include "exec/dispatch.h"

namespace lamina {

namespace {

[[noreturn]] void fail_busy() {
  fail(ErrorCode::busy, "an inference of the request is under way: wait() for it first");
}

}  // namespace

Scheduler::Core::Core(const Placement& placement, bool exclusive, HeldProcessors held, Logger log)
    : exclusive_(exclusive),
      callers_(placement.callers, placement.threads_each, placement.binding),
      free_(static_cast<int>(placement.streams.size())),
      held_(std::move(held)),
      log_(std::move(log)) {
  for (const auto& place : placement.streams)
    slots_.push_back(std::make_unique<StreamSlot>(static_cast<int>(slots_.size()), place,
                                                  placement.threads_each, placement.binding));
  auto& d = Dispatch::here();
  const std::lock_guard lock(d.mutex);
  d.cores.push_back(this);
}

Scheduler::Core::~Core() {
  auto& d = Dispatch::here();
  const std::lock_guard lock(d.mutex);
  std::erase(d.cores, this);
}

/// Runs the job in the calling thread, which may be a stream's thread if a callback calls this. The state is
/// `running` only while the job has a stream: it is `queued` before, and at rest when the stream is free.
void Scheduler::Core::run(Job& job, Clock::time_point until) {
  if (Dispatch::here().closing.load(std::memory_order_relaxed)) Dispatch::here().await_opening();
  auto state = job.state();
  do {
    if (!at_rest(state)) fail_busy();
  } while (!job.state_.compare_exchange_weak(state, JobState::queued, std::memory_order_seq_cst));
  std::exception_ptr error;
  if (job.error_) set_error(job, nullptr);
  job.runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  try {
    if (!slots_.empty()) {
      job.stream_ = free_.take();
      if (job.stream_ < 0) await_stream(job, until);
    }
    begin(job);
    if (until != kNever)
      job.seconds_left_ =
          std::max(std::chrono::duration<double>(until - Clock::now()), std::chrono::duration<double>(1e-9))
              .count();
    infer_here(job, slots_.empty() ? nullptr : slots_[static_cast<std::size_t>(job.stream_)].get());
  } catch (...) {
    error = std::current_exception();
  }
  const int stream = std::exchange(job.stream_, -1);  // the next run() of the job may begin before it is free
  job.runner_.store({}, std::memory_order_relaxed);
  job.seconds_left_ = 0;
  if (error) set_error(job, own_copy(error));
  job.state_.store(outcome_of(error), std::memory_order_seq_cst);
  if (job.waiting_.load(std::memory_order_seq_cst) > 0) {
    const std::lock_guard lock(Dispatch::here().mutex);
    job.wake_waiters();
  }
  if (stream >= 0) give_back(stream);
  if (error) std::rethrow_exception(error);
}

/// Begins a queued job that has all it needs. Throws Error(canceled) if it was canceled before. A job that
/// waited for a stream is running already.
void Scheduler::Core::begin(Job& job) {
  auto queued = JobState::queued;
  if (job.state_.compare_exchange_strong(queued, JobState::running) || !job.dropped()) return;
  job.forget_result();
  std::rethrow_exception(canceled_error());
}

/// Runs the job on a slot's stream, or, without slots, on that of the calling thread.
void Scheduler::Core::infer_here(Job& job, StreamSlot* slot) {
  const AwaitedBy model(this), request(&job);
  if (slot != nullptr)
    job.infer(slot->stream);
  else
    job.infer(*CallersStreams::Lent(callers_));
}

/// Sets the error of a job in run(), under the lock: wait() may be reading the last one in another thread.
void Scheduler::Core::set_error(Job& job, std::exception_ptr error) noexcept {
  const std::lock_guard lock(Dispatch::here().mutex);
  job.error_.swap(error);
}

/// While it exists, the model's streams continue during a quiesce, for a thread that waits for them in the
/// middle of a step. To be used under the mutex.
class Scheduler::Core::Urged {
 public:
  explicit Urged(const Core& core) noexcept : core_(Quiescence::awaits_this_thread() ? &core : nullptr) {
    urge(1);
  }
  ~Urged() { urge(-1); }
  Urged(const Urged&) = delete;
  Urged& operator=(const Urged&) = delete;

 private:
  void urge(int by) noexcept {
    if (core_ != nullptr)
      for (const auto& slot : core_->slots_) slot->stream.urge(by);
  }
  const Core* core_;
};

/// Waits for a stream, in one queue with the jobs that were started: first come, first served. Where one is
/// free, nobody waits.
void Scheduler::Core::await_stream(Job& job, Clock::time_point until) {
  Lock lock(Dispatch::here().mutex);
  tell_of_fork(lock);
  job.stream_ = free_.take_locked();
  if (job.stream_ >= 0) return;
  if (AwaitedBy::has(this))
    fail(ErrorCode::busy, "run() inside an inference of the same model while no stream is free");
  Dispatch::before_waiting();
  if (!job.dropped()) {
    ConditionVariable waker;
    job.thread_ = &waker;
    job.join(queue_);
    advance();
    const Urged here(*this);
    const auto done = [&] { return job.stream_ >= 0 || job.dropped() || Quiescence::ends_process(); };
    bool in_time = true;
    if (until == kNever)
      waker.wait(lock, done);
    else
      in_time = waker.wait_until(lock, until, done);
    job.thread_ = nullptr;
    if (job.stream_ >= 0) return;
    job.leave();
    if (!in_time) {
      job.forget_result();
      fail(ErrorCode::over_limit, "no stream was free in the time of run_for");
    }
  }
  job.forget_result();
  std::rethrow_exception(canceled_error());
}

void Scheduler::Core::give_back(int stream) noexcept {
  if (free_.give_back(stream)) return;
  const std::lock_guard lock(Dispatch::here().mutex);
  free_.give_back_locked(stream);
  advance();
}

void Scheduler::Core::enqueue(Job& job) {
  auto& d = Dispatch::here();
  job.state_ = JobState::queued;
  if (exclusive_) {
    job.join(d.waiting_for_turn);
    return d.next_turn();
  }
  job.join(queue_);
  advance();
}

/// Gives waiting jobs to free streams, callbacks of canceled jobs first.
void Scheduler::Core::advance() {
  if (slots_.empty()) return;
  free_.somebody_waits(true);
  while (!callbacks_.empty() || !queue_.empty()) {
    const int stream = free_.take_locked();
    if (stream < 0) break;
    auto& list = callbacks_.empty() ? queue_ : callbacks_;
    auto& job = *list.front();
    job.leave();
    if (job.thread_ != nullptr) {
      job.state_ = JobState::running;
      job.stream_ = stream;
      job.thread_->notify_all();
    } else {
      hand_to(*slots_[static_cast<std::size_t>(stream)], job);
    }
  }
  free_.somebody_waits(!queue_.empty() || !callbacks_.empty());
}

void Scheduler::Core::hand_to(StreamSlot& slot, Job& job) {
  job.state_ = job.dropped() ? JobState::calling : JobState::running;
  slot.job = job.self_;
  slot.worker->wake.notify_all();
}

/// Logs without the mutex: the log is user code.
void Scheduler::Core::tell_of_fork(Lock& lock) {
  if (!std::exchange(forked_, false)) return;
  lock.unlock();
  constexpr auto kText =
      "after fork() the parent's threads are missing: {} threads of streams are made again{}";
  if (helpers_are_lost())
    log_.warning(kText, slots_.size(),
                 "; loops run in one thread, since the parent did not call shutdown() before");
  else
    log_.info(kText, slots_.size(), "");
  lock.lock();
}

void Scheduler::Core::start(const std::shared_ptr<Job>& shared) {
  auto& job = *shared;
  std::exception_ptr last;  // may be the user's: it goes without the lock
  Lock lock(Dispatch::here().mutex);
  tell_of_fork(lock);
  const auto* const turn = Dispatch::here().turn;
  if (exclusive_ && slots_.empty() && turn != nullptr && AwaitedBy::has(turn))
    fail(ErrorCode::busy, "start() without streams inside an exclusive inference would wait for that");
  if (job.abandoned_ || Dispatch::here().closing)
    fail(ErrorCode::canceled, "{}",
         job.abandoned_ ? "the request is being destroyed" : "lamina is shutting down");
  make_workers();
  if (job.state() == JobState::calling && job.in_own_callback() && !job.again_) {
    job.again_ = true;
    return;
  }
  if (!at_rest(job.state())) fail_busy();
  if (slots_.empty() && exclusive_) Dispatch::before_waiting();
  job.error_.swap(last);
  job.self_ = shared;
  if (slots_.empty()) return start_here(lock, job);
  enqueue(job);
}

bool Scheduler::Core::waits_for_this_thread(const Job& job) const noexcept {
  const auto& d = Dispatch::here();
  const bool for_turn = job.in_ == &d.waiting_for_turn && d.turn != nullptr && AwaitedBy::has(d.turn);
  return job.in_ != nullptr && (AwaitedBy::has(this) || for_turn);
}

/// start() of a model without streams: runs the job and those that its callback starts, in the calling
/// thread. A canceled job that has a callback waits for its turn in the exclusive queue, too.
void Scheduler::Core::start_here(Lock& lock, Job& job) {
  do {
    if (!job.dropped()) job.state_ = JobState::queued;
    if (exclusive_) {
      ConditionVariable waker;
      job.thread_ = &waker;
      job.join(Dispatch::here().waiting_for_turn);
      Dispatch::here().next_turn();
      waker.wait(
          lock, [&] { return Dispatch::here().turn == &job || (job.dropped() && job.callback_ == nullptr); });
      job.thread_ = nullptr;
    }
    auto queued = JobState::queued;
    if (job.state_.compare_exchange_strong(queued, JobState::running)) {
      infer_started(lock, job, nullptr);
    } else {
      job.error_ = canceled_error();
      job.forget_result();
    }
    after_inference(lock, job);
  } while (!at_rest(job.state()));
}

/// Stops a job: if it runs, it ends before its next step; if it is queued, it does not begin. False if it is
/// neither.
bool Scheduler::Core::stop(Job& job) noexcept {
  for (auto state = job.state();;) {
    if (state != JobState::running && state != JobState::queued) return false;
    const auto stopped = state == JobState::running ? JobState::stopping : JobState::dropped;
    if (job.state_.compare_exchange_weak(state, stopped)) return true;
  }
}

void Scheduler::Core::cancel(Job& job) noexcept {
  if (job.again_) job.again_canceled_ = true;
  if (!stop(job) || !job.dropped()) return;
  if (job.self_ == nullptr) {  // of a thread in run(), which goes on by itself
    job.leave();
    if (job.thread_ != nullptr) job.thread_->notify_all();
    return;
  }
  job.error_ = canceled_error();
  job.forget_result();
  if (job.callback_) return call_later(job);
  job.leave();
  if (job.thread_ == nullptr) return rest(job, JobState::canceled);
  job.thread_->notify_all();  // start_here() goes on
  Dispatch::here().end_turn(job);
}

Scheduler::Scheduler(const Placement& placement, bool exclusive, HeldProcessors held, Logger log)
    : core_(std::make_shared<Core>(placement, exclusive, std::move(held), std::move(log))) {}
Scheduler::~Scheduler() { core_->quit(); }

int Scheduler::streams() const { return static_cast<int>(core_->slots_.size()); }
void Scheduler::run(Job& job, std::optional<std::chrono::nanoseconds> time) {
  const auto now = time ? Core::Clock::now() : Core::Clock::time_point();
  if (time && *time <= Core::Clock::time_point::max() - now)
    core_->run(job, now + std::max(*time, std::chrono::nanoseconds(0)));
  else
    core_->run(job, Core::kNever);
}
void Scheduler::start(const std::shared_ptr<Job>& job) { core_->start(job); }

/// Waits until the job rests, or the time is over. True if it rests, or if the process ends: destructors and
/// the thread that calls exit() do not wait then, and other threads never return.
bool Scheduler::Core::await_rest(Lock& lock, Job& job, const Clock::time_point* until, bool destroyed) {
  const auto done = [&] {
    return at_rest(job.state_.load()) || (destroyed ? Quiescence::is_for_good() : Quiescence::ends_process());
  };
  const Urged here(*job.scheduler().core_);
  ConditionVariable waker;
  Job::Waiter waiter{waker, job.waiters_};
  job.waiters_ = &waiter;
  ++job.waiting_;
  if (until != nullptr)
    waker.wait_until(lock, *until, done);
  else
    waker.wait(lock, done);
  auto** link = &job.waiters_;
  while (*link != &waiter) link = &(*link)->next;
  *link = waiter.next;
  --job.waiting_;
  return done();
}

bool Scheduler::wait(Job& job, std::optional<std::chrono::nanoseconds> time, std::exception_ptr& error) {
  if (job.in_own_callback())
    fail(ErrorCode::busy, "wait() in the request's own callback would wait for itself");
  if (AwaitedBy::has(&job))
    fail(ErrorCode::busy, "wait() inside the request's own inference would wait for itself");
  Core::Lock lock(Dispatch::here().mutex);
  if (!at_rest(job.state())) {
    if (time && time->count() <= 0) return false;
    if (job.scheduler().core_->waits_for_this_thread(job))
      fail(ErrorCode::busy,
           "wait() inside an inference of the same model, or of an exclusive one, would wait for itself");
    const auto now = Core::Clock::now();
    const bool forever = !time || *time > Core::Clock::time_point::max() - now;
    const auto until = forever ? Core::Clock::time_point::max() : now + *time;
    Dispatch::before_waiting();
    if (!Core::await_rest(lock, job, forever ? nullptr : &until, false)) return false;
    if (!at_rest(job.state()) && Quiescence::ends_process())
      fail(ErrorCode::canceled, "the process ends: the inference does not");
  }
  error = own_copy(job.error_);
  return true;
}

void Scheduler::cancel(Job& job) noexcept {
  const std::lock_guard lock(Dispatch::here().mutex);
  job.scheduler().core_->cancel(job);
}

void Scheduler::abandon(Job& job) noexcept {
  Core::Lock lock(Dispatch::here().mutex);
  // Another thread of the user may use a static object that exit() destroys: it continues until all work is
  // paused, and would throw otherwise. At rest `self_` is null.
  const bool in_users_thread = job.self_ == nullptr || job.scheduler().core_->slots_.empty();
  if (is_exiting() && (in_users_thread || job.waiting_ > 0)) return;
  job.abandoned_ = true;
  job.scheduler().core_->cancel(job);
  if (job.in_own_callback() || AwaitedBy::has(&job) || job.scheduler().core_->waits_for_this_thread(job) ||
      at_rest(job.state()))
    return;
  try {
    Dispatch::before_waiting();
  } catch (const Error&) {  // no thread for it: the job may need others only
  }
  Core::await_rest(lock, job, nullptr, true);
}

void Scheduler::shut_down() { Dispatch::here().shut_down(); }

}  // namespace lamina
