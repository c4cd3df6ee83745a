#pragma once
/// A quiescent state: all tracked activities pause between two steps. fork() needs it, so that no lock of a
/// library is held, and so does the end of the process, which destroys objects that work may use.
#include <atomic>
#include <thread>

#include "base/guard.h"
#include "base/work_bounds.h"

namespace lamina {

class StopScope;

/// Tracked work, in one thread at a time and in its helpers.
class Activity {
 public:
  Activity() = default;
  virtual ~Activity() = default;
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  /// The calling thread works from here to leave(); waits while there is a quiescent state.
  void enter() noexcept {
    worker_.store(std::this_thread::get_id(), std::memory_order_seq_cst);
    if (wanted_.load(std::memory_order_seq_cst)) stop_here();
  }
  void leave() noexcept { worker_.store({}, std::memory_order_release); }
  /// Between two steps: takes part in a quiescent state.
  void checkpoint() noexcept {
    if (wanted_.load(std::memory_order_relaxed)) stop_here();
  }
  /// After urge(+1) the activity continues during a quiescent state, since a thread waits for it in the
  /// middle of a step; until urge(-1).
  void urge(int by) noexcept;

 protected:
  /// Registers the activity, once it is completely constructed; delist() removes it before it is destroyed.
  void enlist() noexcept;
  void delist() noexcept;
  /// The number of threads that help it now.
  virtual int helpers() const noexcept { return 0; }
  /// Releases the helpers of an activity at rest.
  virtual void dismiss() noexcept {}
  /// Called in a child of fork(), whose only thread is `here`: forgets other threads. False if the activity
  /// was on the stack of another thread, which does not exist in the child.
  virtual bool child_begins(std::thread::id) noexcept { return true; }

 private:
  friend class Quiescence;
  friend struct AllActivities;
  static void stop_here() noexcept;

  static std::atomic<bool> wanted_;
  std::atomic<std::thread::id> worker_{};  // none: at rest
  std::thread::id stopped_{};              // the thread that has paused in the middle of this work
  int urgent_ = 0;
  Activity* next_ = nullptr;                       // paused by the same thread together with this one
  Activity *before_ = nullptr, *after_ = nullptr;  // of all that are enlisted
};

/// A piece of work without steps, in the calling thread.
class Uninterrupted : public Activity {
 public:
  Uninterrupted() {
    enlist();
    enter();
  }
  ~Uninterrupted() override { delist(); }

 private:
  bool child_begins(std::thread::id here) noexcept override { return thread_ == here; }
  const std::thread::id thread_ = std::this_thread::get_id();
};

/// While this object exists, the work of the calling thread counts as paused, also in the middle of a step: a
/// quiescent state does not wait for it. Work that begins meanwhile is an activity of its own.
class CountsAsPaused {
 public:
  CountsAsPaused() noexcept;
  ~CountsAsPaused();
  CountsAsPaused(const CountsAsPaused&) = delete;
  CountsAsPaused& operator=(const CountsAsPaused&) = delete;

 private:
  int depth_;
  Activity* chain_ = nullptr;  // the paused activities
};

/// Around each call of a log, progress or request callback, which may wait for a thread that forks. Not of
/// functions of libraries: those are work, for which fork() waits. The callback computes with floating-point
/// numbers as the caller of the public function does; what it changes of that ends with it. Limits of the
/// model that the thread works for do not hold in it.
class InUsersCallback {
 public:
  InUsersCallback() noexcept;
  ~InUsersCallback();
  InUsersCallback(const InUsersCallback&) = delete;
  InUsersCallback& operator=(const InUsersCallback&) = delete;
  /// The calling thread is in such a call.
  static bool is_here() noexcept;

 private:
  const CountsAsPaused paused_;
  const FloatingPoint computes_;  // the mode of lamina's code, restored afterwards
  const Entries entries_;         // of the public interface, that the call comes from
  const StopScope* scope_;        // what could be stopped there
  const Within bounds_{nullptr};  // the user's tensors are not the model's
  int moving_;
};
/// How deep the calling thread is in public functions, the innermost of which are part of the outermost.
int& depth_of_work() noexcept;

class Quiescence {
 public:
  /// The calling thread is in the midst of work that a quiescent state waits for.
  static bool awaits_this_thread() noexcept;
  /// True if there is a quiescent state, or a thread waits for one; perhaps the calling thread.
  static bool is_wanted() noexcept { return Activity::wanted_.load(std::memory_order_relaxed); }
  /// True if another thread wants one and the calling thread may pause here: not in a loop that others help
  /// in, nor where a Moving forbids it.
  static bool may_pause_here() noexcept;
  /// In the midst of a step: takes part in a quiescent state that another thread wants, where that may be.
  static void pause_here() noexcept {
    if (may_pause_here()) Activity::stop_here();
  }
  /// While it lives, the calling thread pauses between steps only (Activity::checkpoint): it is in a loop
  /// that others help in, or in code that may hold locks, such as a library's.
  class Moving {
   public:
    Moving() noexcept { ++depth_; }
    ~Moving() { --depth_; }
    Moving(const Moving&) = delete;
    Moving& operator=(const Moving&) = delete;
    static bool is_here() noexcept { return depth_ > 0; }

   private:
    friend class InUsersCallback;
    static constinit thread_local int depth_;
  };

  /// Waits until no activity works but those of the calling thread, and helpers have gone (a second at most;
  /// not if the calling thread is in the midst of work, which may need them) and sleep (10 seconds at most;
  /// one that others keep busy counts as gone). Others that want to work wait until end(). Once there is a
  /// state for good, nothing works, and this returns at once.
  static void begin() noexcept;
  static void end() noexcept;

  /// While it lives, which must be short, there is no fork(), and no other object of this class. What is
  /// changed outside activities, such as in destructors of public objects, is changed under it: a child of
  /// fork() would find a mutex taken, and a list half changed, by a thread that it does not have.
  class Undisturbed {
   public:
    Undisturbed() noexcept;
    ~Undisturbed();
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;
  };

  /// A fork() begins. Called first of all; await_forks() counts from here.
  static void fork_begins() noexcept;
  /// Waits for the forks that have begun, a second at most: they run code of other libraries, too, which may
  /// wait for what the calling thread has.
  static void await_forks() noexcept;
  /// Around a fork(), inside a quiescent state: no activity comes or goes.
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  /// To be called in a child of fork(), where no other thread exists: the others' activities and the
  /// quiescent state are over.
  static void after_fork_in_child() noexcept;

  /// Releases the helpers of all activities at rest.
  static void dismiss_helpers() noexcept;

  /// Begins a quiescent state that does not end: the process ends.
  static void for_good() noexcept;
  /// Makes exit(), and dlclose(), begin with for_good(), before objects that exist now are destroyed, those
  /// of libraries too.
  static void stop_at_exit() noexcept;
  static bool is_for_good() noexcept;
  /// The calling thread is the one that ends the process, after for_good().
  static bool ends_process() noexcept;
};

/// The three calls at each fork() of the process from now on, as pthread_atfork has them. False: no memory.
bool at_fork(void (*prepare)(), void (*parent)(), void (*child)()) noexcept;

}  // namespace lamina
