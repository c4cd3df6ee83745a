#pragma once
/// The state that all schedulers of the process share, and the inside of one. Only for exec/scheduler.cc,
/// stream_slots.cc and processes.cc.
#include <atomic>
#include <mutex>

#include "base/condition_variable.h"
#include "base/no_destructor.h"
#include "base/threads.h"
#include "exec/callers_streams.h"
#include "exec/free_streams.h"
#include "exec/scheduler.h"

namespace lamina {

struct Worker;

/// A stream and its next job. Guarded by the mutex of all queues, except for the use of the stream itself.
struct StreamSlot {
  StreamSlot(int number, const StreamPlace& place, int threads, Binding binding)
      : index(number), stream(place, threads, binding) {}

  const int index;
  Stream stream;
  Worker* worker = nullptr;  ///< null before the first request that is started
  std::shared_ptr<Job> job;  ///< for the worker to run, or whose callback to call
};

/// A thread that serves a stream. When it begins to wait in a callback, it passes its stream to another
/// worker and continues without one; it is a spare worker when the callback has returned.
struct Worker {
  explicit Worker(Scheduler::Core& of) : core(of) {}

  Scheduler::Core& core;
  OwnThread thread;
  ConditionVariable wake;
  StreamSlot* slot = nullptr;  ///< null: a spare one, or in a callback that waited
  bool spare = false;          ///< it may be given a stream
  bool infers = false;         ///< on its stream
  bool quit = false;           ///< it ends
};

class Scheduler::Core : public std::enable_shared_from_this<Core> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Core(const Placement& placement, bool exclusive, HeldProcessors held, Logger log);
  ~Core();

  using Clock = std::chrono::steady_clock;
  static constexpr auto kNever = Clock::time_point::max();
  void run(Job& job, Clock::time_point until);
  void start(const std::shared_ptr<Job>& job);
  void cancel(Job& job) noexcept;
  void quit() noexcept;
  static bool await_rest(Lock& lock, Job& job, const Clock::time_point* until, bool destroyed);

 private:
  friend class Scheduler;
  friend class Dispatch;
  void work(Worker& worker);

  static void set_error(Job& job, std::exception_ptr error) noexcept;
  static void begin(Job& job);
  static bool stop(Job& job) noexcept;
  void await_stream(Job& job, Clock::time_point until);
  class Urged;
  /// True if the job is queued for, or its callback needs, what the calling thread's inference holds: a
  /// stream of this model, all of which are taken, or the turn of exclusive models.
  bool waits_for_this_thread(const Job& job) const noexcept;
  void give_back(int stream) noexcept;
  void enqueue(Job& job);
  void advance();
  void tell_of_fork(Lock& lock);
  void make_workers();
  void take_worker(StreamSlot& slot);
  std::vector<std::shared_ptr<Worker>> dismiss() noexcept;
  void pass_on(Worker& worker);
  void hand_to(StreamSlot& slot, Job& job);
  void infer_here(Job& job, StreamSlot* slot);
  void infer_started(Lock& lock, Job& job, StreamSlot* slot);
  void after_inference(Lock& lock, Job& job);
  void call_later(Job& job);
  void call(Lock& lock, Job& job);
  void start_here(Lock& lock, Job& job);
  void rest(Job& job, JobState state) noexcept;
  void child_begins() noexcept;

  const bool exclusive_;
  CallersStreams callers_;
  FreeStreams free_;
  std::vector<std::unique_ptr<StreamSlot>> slots_;
  std::vector<std::shared_ptr<Worker>> workers_;  // each thread has a hand on its own
  Job::List queue_, callbacks_;
  HeldProcessors held_;
  Logger log_;
  bool forked_ = false;  // nobody has been told yet
};

/// The state of the process.
class Dispatch {
 public:
  using Core = Scheduler::Core;
  static Dispatch& here();

  std::mutex mutex;
  std::vector<Core*> cores;
  std::vector<Job*> jobs;
  std::atomic<bool> closing{false};  ///< shut_down() is under way
  /// run() waits for its end. Not where is_awaited(), nor while some request's callback runs.
  void await_opening();
  /// True if the calling thread is in a callback, or in the middle of work for which shut_down() would wait.
  static bool is_awaited() noexcept;

  // The exclusive job that may run. It keeps the turn until its status says that it has ended, its callback
  // included.
  Job* turn = nullptr;
  Job::List waiting_for_turn;
  void next_turn();
  void end_turn(Job& job);

  /// The calling thread's worker; null if the thread is none of a stream's.
  static Worker*& worker() noexcept;

  /// The calling thread is about to wait for others, who may need the stream and the turn that it has and
  /// does not use, in a callback. Under the mutex. Throws Error(out_of_memory), and has done nothing then.
  static void before_waiting();

  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;
  void shut_down();

 private:
  friend class NoDestructor<Dispatch>;
  Dispatch();
  void join_threads(Core::Lock& lock);
  ConditionVariable opened_;
  void child_begins() noexcept;
};

}  // namespace lamina
