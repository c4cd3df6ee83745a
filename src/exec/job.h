#pragma once
/// One inference at a time of one request, as the queues of streams see it.
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "base/cancellation.h"
#include "base/condition_variable.h"

namespace lamina {

class Stream;
class Scheduler;

/// The state of a job. It rests in all states before `queued`. `dropped`: canceled before it began, and run()
/// or the callback has not been told yet. From `running` on it has a stream, and the lock of exclusive
/// models.
enum class JobState : std::uint8_t {
  idle,
  done,
  failed,
  canceled,
  queued,
  dropped,
  running,
  stopping,
  calling
};
constexpr bool at_rest(JobState state) { return state < JobState::queued; }

/// The exception of canceled inferences; one for the process.
const std::exception_ptr& canceled_error();
/// A copy, if the exception is one of lamina's own, so that no thread reads an object that another one frees.
/// Other exceptions are shared.
std::exception_ptr own_copy(const std::exception_ptr& error) noexcept;
/// The state in which a job rests whose inference threw this exception; null: it threw nothing.
JobState outcome_of(const std::exception_ptr& error) noexcept;

/// Thread-safe where a Scheduler uses it; the hooks are called by one thread at a time.
class Job : public std::enable_shared_from_this<Job>, public StopSignal {
 public:
  using Callback = std::function<void(std::exception_ptr)>;

  Job();
  virtual ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  JobState state() const noexcept { return state_.load(std::memory_order_acquire); }
  /// True if the running inference was asked to stop.
  bool stopping() const noexcept { return state_.load(std::memory_order_relaxed) == JobState::stopping; }
  bool stop_requested() const noexcept final { return stopping(); }
  bool dropped() const noexcept { return state() == JobState::dropped; }
  /// The calling thread is in this job's callback.
  bool in_own_callback() const noexcept;
  /// True at rest, or in the own callback: inputs of the next inference may be set, by one thread at a time.
  bool settable() const noexcept { return at_rest(state()) || in_own_callback(); }
  /// The exception of the last inference, or of its callback; null: none. To be called at rest, or in the
  /// callback.
  std::exception_ptr error() const noexcept { return error_; }

  /// Seconds that the running inference may take; 0: any. For infer().
  double seconds_left() const noexcept { return seconds_left_; }

  /// Requires settable().
  void set_callback(Callback callback);

 private:
  friend class Scheduler;
  friend class Dispatch;
  using List = std::list<Job*>;

  /// The scheduler of the job's model, which outlives the job.
  virtual Scheduler& scheduler() noexcept = 0;
  /// One inference; can be stopped by this job (base/cancellation.h), and calls stream.checkpoint() between
  /// its steps.
  virtual void infer(Stream& stream) = 0;
  /// Called when the job was canceled before it began, or while it ran: there is no result.
  virtual void forget_result() noexcept = 0;
  /// Called when the callback threw an exception.
  virtual void callback_failed(const std::exception_ptr& error) noexcept = 0;

  std::atomic<JobState> state_{JobState::idle};
  std::atomic<std::thread::id> caller_{};  // the thread in which the callback runs
  std::atomic<std::thread::id> runner_{};  // that which is in run(), or infers what was started
  std::atomic<int> waiting_{0};            // how many are in waiters_
  double seconds_left_ = 0;                // of the thread in run()
  std::exception_ptr error_;
  std::shared_ptr<const Callback> callback_;

  /// In a child of fork(), whose only thread that is: it works on the job, or is in its callback.
  bool belongs_to(std::thread::id thread) const noexcept { return caller_ == thread || runner_ == thread; }
  void end_in_child() noexcept;
  /// Puts the job at the end of a list; removes it from its list.
  void join(List& list) noexcept;
  void leave() noexcept;
  void wake_waiters() noexcept;

  /// A thread that waits until the job is at rest.
  struct Waiter {
    ConditionVariable& waker;
    Waiter* next;
  };

  // Guarded by the mutex of all queues.
  Waiter* waiters_ = nullptr;
  List place_;  // has its element while it is in no list: joining one allocates nothing
  List::iterator element_;
  List* in_ = nullptr;                           // the list that it waits in
  std::shared_ptr<Job> self_;                    // of a job that was started, until it rests
  ConditionVariable* thread_ = nullptr;          // of a job that a thread waits for to run itself
  int stream_ = -1;                              // of a thread in run(): which it has; -1: none
  bool again_ = false, again_canceled_ = false;  // started in its own callback
  bool abandoned_ = false;                       // its owner has gone: it is not started any more
};

}  // namespace lamina
