#pragma once
/// Which objects wait for the calling thread's work, so that the thread does not wait for them: a deadlock.
/// Threads that come into a loop of base/parallel.h are awaited by whatever awaits its caller, and by the
/// caller.
#include <thread>

namespace lamina {

/// While this object exists, `that` (the address of a model's scheduler, of a request) waits for the calling
/// thread's work. Objects of one thread nest.
class AwaitedBy {
 public:
  explicit AwaitedBy(const void* what) noexcept;
  ~AwaitedBy();
  AwaitedBy(const AwaitedBy&) = delete;
  AwaitedBy& operator=(const AwaitedBy&) = delete;
  static bool anything() noexcept;
  static bool has(const void* what) noexcept;

 private:
  const void* what_;
  const AwaitedBy* outer_;
};

class LoopHelper;

/// The thread that begins a loop; valid in others while that runs.
struct LoopCaller {
  std::thread::id thread;
  const AwaitedBy* awaited_by;
  const LoopHelper* helper;  ///< of another loop, or null
  static LoopCaller here() noexcept;
};

/// Marks a thread's part of a loop. In the caller's own thread it has no effect.
class LoopHelper {
 public:
  explicit LoopHelper(const LoopCaller& caller) noexcept;
  ~LoopHelper();
  LoopHelper(const LoopHelper&) = delete;
  LoopHelper& operator=(const LoopHelper&) = delete;
  /// The calling thread is one.
  static bool is_here() noexcept;
  /// True if the thread waits for a loop that this thread began, or for one inside that loop.
  static bool is_awaited_by(std::thread::id thread) noexcept;

 private:
  LoopCaller caller_;
  bool helps_;
  LoopCaller before_ = {};
};

}  // namespace lamina
