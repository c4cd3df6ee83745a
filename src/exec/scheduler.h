#pragma once
/// Queues of inferences before the streams of compiled models.
///
/// One mutex guards all queues of the process: it is held for list operations only, one fork handler knows
/// it, and a thread of one model may wait for a request of another. run() on a free stream does not take it.
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "base/log.h"
#include "base/processor_locks.h"
#include "exec/job.h"
#include "exec/stream.h"

namespace lamina {

/// The streams of one compiled model and the queue before them. Thread-safe.
class Scheduler {
 public:
  class Core;  // exec/dispatch.h
  /// If the placement has no streams, each caller's thread does the work. `exclusive`: started inferences of
  /// all such models of the process run one after another.
  Scheduler(const Placement& placement, bool exclusive, HeldProcessors held, Logger log = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  int streams() const;

  /// Runs one inference in the calling thread and throws its exception; throws Error(busy) while the job is
  /// under way, Error(canceled), and Error(over_limit) if it takes longer than `time`, the queue included.
  void run(Job& job, std::optional<std::chrono::nanoseconds> time = {});
  /// Queues one inference. Throws Error(busy).
  void start(const std::shared_ptr<Job>& job);
  /// Waits until the job rests, and throws the exception of its last inference or callback. Throws
  /// Error(busy) in the job's own callback. False if the time is over.
  static bool wait(Job& job, std::optional<std::chrono::nanoseconds> time, std::exception_ptr& error);
  static void cancel(Job& job) noexcept;
  /// For the destructor of the job's owner: cancels the job and waits until it rests, except in its own
  /// callback, which ends it. While the process exits, a job is left alone if another thread is in its run()
  /// or wait().
  static void abandon(Job& job) noexcept;

  /// Cancels the queued jobs of the process, waits for running ones, and joins the threads of all streams,
  /// which are made again when they are needed. Throws Error(busy) in a callback.
  static void shut_down();

 private:
  friend class Dispatch;
  std::shared_ptr<Core> core_;
};

}  // namespace lamina
