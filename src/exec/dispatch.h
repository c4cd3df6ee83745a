#pragma once
/// What all schedulers of the process share, and the inside of one. For exec/scheduler.cc, lanes.cc and
/// processes.cc.
#include <functional>
#include <mutex>

#include "base/threads.h"
#include "exec/free_streams.h"
#include "exec/scheduler.h"

namespace lamina {

/// A stream with its thread. Guarded by the mutex of all queues, but for what the stream's user does with it.
struct Lane {
  Lane(Scheduler::Core& core, int number, const StreamPlace& place, int threads, Binding binding)
      : core(core), index(number), stream(place, threads, binding) {}

  Scheduler::Core& core;
  const int index;
  Stream stream;
  OwnThread thread;
  std::unique_ptr<std::condition_variable> wake = std::make_unique<std::condition_variable>();
  std::shared_ptr<Job> job;      ///< for the thread to run, or whose callback to call
  const Job* lent_to = nullptr;  ///< who runs on the stream while its thread waits in a callback
  int helping = 0;               ///< its thread waits in a callback, and may run inferences
  bool quit = false;             ///< the thread ends
};

class Scheduler::Core : public std::enable_shared_from_this<Core> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Core(const Placement& placement, bool exclusive, HeldProcessors held, Logger log);
  ~Core();

  void run(Job& job);
  void start(const std::shared_ptr<Job>& job);
  void cancel(Job& job) noexcept;
  void quit() noexcept;

 private:
  friend class Scheduler;
  friend class Dispatch;
  void work(Lane& lane);

  static void set_error(Job& job, std::exception_ptr error) noexcept;
  int await_stream(Job& job);
  void give_back(int stream) noexcept;
  void enqueue(Job& job);
  void advance();
  void tell_of_fork(Lock& lock);
  void make_threads();
  void hand_to(Lane& lane, Job& job);
  void infer_started(Lock& lock, Job& job, Stream& stream);
  void after_inference(Lock& lock, Job& job, bool call_now);
  void call_later(Job& job);
  static std::shared_ptr<Job> due_before(const Job* target);
  void call(Lock& lock, Job& job);
  void start_here(Lock& lock, Job& job);
  void rest(Job& job) noexcept;
  void help(Lock& lock, Lane& lane, const Job* target, const std::function<bool()>& done,
            const std::chrono::steady_clock::time_point* until);

  const bool exclusive_;
  FreeStreams free_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Job::List queue_, callbacks_;
  HeldProcessors held_;
  Logger log_;
  bool forked_ = false;    // nobody has been told yet
  bool quitting_ = false;  // quit() ends the threads
};

/// The process' part.
class Dispatch {
 public:
  using Core = Scheduler::Core;
  static Dispatch& here();

  std::mutex mutex;
  std::vector<Core*> cores;
  std::vector<Job*> jobs;
  bool closing = false;  ///< shut_down() is under way

  // Of exclusive models.
  Job* turn = nullptr;
  Job::List waiting_for_turn;
  void next_turn();
  void end_turn(Job& job);

  /// The stream whose thread this is.
  static Lane*& lane() noexcept;
  /// Whose callback the calling thread runs, the innermost; or null.
  static Job*& callback_here() noexcept;

  /// Threads of streams that wait in callbacks look again at what is due before what they wait for.
  void wake_helpers() noexcept;
  /// What wakes the calling thread: its stream's, else `own`.
  static std::condition_variable& waker(std::condition_variable& own) noexcept;
  /// Waits until `done`, or the time is over: a stream's thread works off its queue meanwhile. `waker` is
  /// notified when `done` may have changed. `target`: the job that it is about; its callback is called here
  /// when it is due.
  static void block(Core::Lock& lock, std::condition_variable& waker, const Job* target,
                    const std::function<bool()>& done,
                    const std::chrono::steady_clock::time_point* until = nullptr);

  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;
  void shut_down();

 private:
  Dispatch();
  void join_threads(Core::Lock& lock);
  void child_begins() noexcept;
};

}  // namespace lamina
