#pragma once
/// Brings all that runs to a stop between two steps: for fork(), which must not find a library's locks held,
/// and for the end of the process, which must not find work on what it takes down.
#include <atomic>
#include <memory>
#include <thread>

namespace lamina {

/// Something that works in one thread at a time, and in its helpers.
class Activity {
 public:
  Activity() = default;
  virtual ~Activity() = default;
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  /// The calling thread works from here to leave(); waits while there is a standstill.
  void enter() noexcept {
    worker_.store(std::this_thread::get_id(), std::memory_order_seq_cst);
    if (wanted_.load(std::memory_order_seq_cst)) stop_here();
  }
  void leave() noexcept { worker_.store({}, std::memory_order_release); }
  /// Between two steps: takes part in a standstill.
  void checkpoint() noexcept {
    if (wanted_.load(std::memory_order_relaxed)) stop_here();
  }

 protected:
  /// Standstills know it from here on: called when it is complete, and again before it is taken down.
  void enlist();
  void delist() noexcept;
  /// Threads that help come and go; they have a copy, since they may outlive this.
  const std::shared_ptr<std::atomic<int>>& helpers() const { return helpers_; }
  /// Lets go of helpers, at rest.
  virtual void dismiss() noexcept {}
  /// In a child of fork(): they are not there.
  virtual void forget_helpers() noexcept {}
  /// It lies in the stack of a thread other than this one, and is gone where that is not.
  virtual bool is_of_another(std::thread::id) const noexcept { return false; }
  /// In a child of fork(), where the thread is not that it is of.
  virtual void forsaken() noexcept {}

 private:
  friend class Standstill;
  friend struct AllActivities;
  void stop_here() noexcept;

  static std::atomic<bool> wanted_;
  std::atomic<std::thread::id> worker_{};  // none: at rest
  std::thread::id stopped_{};              // of the thread that stands still in the midst of its work
  Activity* next_ = nullptr;               // that the same thread has stopped with this one
  std::shared_ptr<std::atomic<int>> helpers_ = std::make_shared<std::atomic<int>>(0);
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
  bool is_of_another(std::thread::id here) const noexcept override { return thread_ != here; }
  const std::thread::id thread_ = std::this_thread::get_id();
};

/// While it lives the calling thread is in code of the user's, or waits for a thread that may be: that may
/// wait for a thread that forks, which does not wait for it. What it was at stands still, in the midst of a
/// step, too; what begins in here is a piece of work of its own.
class Outside {
 public:
  Outside() noexcept;
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  int depth_;
  Activity* chain_ = nullptr;  // what stands
};
/// How deep the calling thread is in public functions, the innermost of which are part of the outermost.
int& depth_of_work() noexcept;

class Standstill {
 public:
  /// Waits until no activity works but those of the calling thread, and helpers have gone (a second at most);
  /// others that want to work wait until end().
  static void begin() noexcept;
  static void end() noexcept;

  /// Around a fork(), inside a standstill: no activity comes or goes.
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  /// Where no other thread is: what others did is at rest, and the standstill is over.
  static void after_fork_in_child() noexcept;

  /// Lets go of the helpers of all activities that rest.
  static void dismiss_helpers() noexcept;

  /// There is one that will not end: the process does.
  static void for_good() noexcept;
  /// exit() begins with that, before it destroys what has been made so far, by libraries too.
  static void stop_at_exit() noexcept;
  static bool is_for_good() noexcept;
  /// The calling thread is the one that ends the process, after for_good().
  static bool ends_process() noexcept;

  /// exit() says is_exiting() before it destroys static objects that are there now. Nothing from the 4096th
  /// call on, which a process with so many objects does not need.
  static void notice_exit() noexcept;
  static bool is_exiting() noexcept;
  /// While that is so, it is not destroyed: another thread may use the static object that had it.
  static void keep_at_exit(const std::shared_ptr<const void>& what) noexcept;
};

/// The three calls at each fork() of the process from now on, as pthread_atfork has them. False: no memory.
bool at_fork(void (*prepare)(), void (*parent)(), void (*child)()) noexcept;

}  // namespace lamina
