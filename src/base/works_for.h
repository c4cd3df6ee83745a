#pragma once
/// What the calling thread works for, so that nobody waits for what waits for him. Threads that help in a
/// loop work for what its caller works for.
#include <thread>

namespace lamina {

/// While it lives, the calling thread works for that, too.
class WorksFor {
 public:
  explicit WorksFor(const void* what) noexcept;
  ~WorksFor();
  WorksFor(const WorksFor&) = delete;
  WorksFor& operator=(const WorksFor&) = delete;
  static bool anything() noexcept;
  static bool has(const void* what) noexcept;

 private:
  const void* what_;
  const WorksFor* outer_;
};

class Helping;

/// Of a loop; valid in other threads while it runs.
struct LoopCaller {
  std::thread::id thread;
  const WorksFor* works;
  const Helping* helps;
  static LoopCaller here() noexcept;
};

/// A thread's part of a loop. In the caller's own thread it is nothing.
class Helping {
 public:
  explicit Helping(const LoopCaller& caller) noexcept;
  ~Helping();
  Helping(const Helping&) = delete;
  Helping& operator=(const Helping&) = delete;
  static bool is_here() noexcept;
  /// That thread waits for the calling one.
  static bool helps(std::thread::id thread) noexcept;

 private:
  LoopCaller caller_;
  bool helps_;
  LoopCaller before_ = {};
};

}  // namespace lamina
