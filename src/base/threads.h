#pragma once
/// Threads of lamina's own, and where threads may run.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace lamina {

/// A thread with a name in which all asynchronous signals are blocked, so that the application's threads get
/// them. It computes with floating-point numbers in the standard way, whatever its maker does. Movable.
class OwnThread {
 public:
  OwnThread() = default;
  /// Throws Error(out_of_memory) where there can be no other thread.
  OwnThread(const std::string& name, std::function<void()> body);
  OwnThread(OwnThread&&) noexcept = default;
  OwnThread& operator=(OwnThread&&) noexcept = default;
  /// join()
  ~OwnThread() { join(); }

  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }
  /// Waits until the body has returned. From the body itself: it is left over.
  void join() noexcept;
  /// Gives up ownership: the thread ends by itself, and is joined by one of the next two functions.
  void leave_over() noexcept;
  /// To be called in a child of fork(), where the thread does not exist: there is nothing to wait for.
  void forget() noexcept;
  /// Joins those left-over threads that have ended, without waiting.
  static void join_ended() noexcept;
  /// All of them but the calling one. They may wait for what callbacks do, and for each other.
  static void join_leftovers() noexcept;
  /// To be called in a child of fork().
  static void forget_leftovers() noexcept;

 private:
  static void join_some(bool ended_only) noexcept;
  std::thread thread_;
  std::shared_ptr<std::atomic<bool>> ended_;  // nothing of ours runs in it any more
};

/// Blocks asynchronous signals in the calling thread, and in threads that it makes.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Up to 15 characters are kept.
void name_thread_here(const std::string& name);

/// Processor time of the calling thread so far.
double thread_microseconds();

/// The calling thread, which a library made for us, blocks asynchronous signals for good, and has not the
/// name of the stream that woke it first. Cheap from the second call on.
void become_helper();
/// How many have.
int helpers_made();
/// Helper threads on their way to sleep, during which they take the library's own locks.
class FallingAsleep {
 public:
  FallingAsleep() noexcept;
  /// True if each helper sleeps, or has used so much processor time since this object was made that it works
  /// for somebody else. On a busy machine the little that it takes to fall asleep may take seconds.
  bool is_over() noexcept;

 private:
  struct Seen {
    double microseconds = 0;  // of processor time that it has used
    std::chrono::steady_clock::time_point since = {};
  };
  std::map<pid_t, double> before_;  // microseconds that each has used
  std::map<pid_t, Seen> seen_;      // of those whose state the system does not tell
};
/// The library has ended them all.
void helpers_ended();
/// To be called in a child of fork(), where helper threads do not exist and the library does not know it.
void helpers_lost();
/// The parent, or a parent of that, had helpers at its fork(): no thread helps in this process, nor ever
/// will.
bool helpers_are_lost();

/// Binds the calling thread to these processors. False where the system refuses all of them; it stays where
/// it was then.
bool bind_here(const std::vector<int>& cpus);
/// The calling thread may run again where it might before bind_here().
void unbind_here();

}  // namespace lamina
