#pragma once
/// Calls that run in the library's threads: of asyncio and of Queue.
#include <atomic>

#include "compiled.h"

namespace lamina::python {

/// Calls that have ended, until Python takes them. Threads of the library add to it without the GIL, and wake
/// the reader once for all that came since it took the last ones.
///
/// There is no mutex: a fork does not wait for a thread that adds a call, since that is a request's callback,
/// and the child would find the mutex taken by a thread that it does not have.
class Ended {
 public:
  /// Throws Error(out_of_memory) if no file descriptor is left.
  Ended();
  ~Ended();
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
  /// Adds a call, with its reference.
  void add(PyObject* call) noexcept;
  /// A descriptor that can be read when there are calls, or after wake().
  int descriptor() const noexcept { return descriptor_; }
  /// Takes all. Requires the GIL.
  nb::list take();
  /// Waits for a call, without the GIL. False if there is none: the time is over, or the wait was ended.
  bool wait(std::chrono::nanoseconds time);
  /// Ends a wait(), or the next one before take().
  void wake() noexcept;
  /// Nobody takes calls any more: they are let go of.
  void close() noexcept;
  /// In a child: there are no calls, and the descriptor is not the parent's.
  void after_fork_in_child() noexcept;

 private:
  struct One {
    PyObject* call;
    One* before;
  };
  bool has_some() const noexcept;
  void drop(One* then) noexcept;
  static One closed_;  // the last one of a list that is closed

  std::atomic<One*> last_{nullptr};
  int descriptor_;
};

/// What the callback of a slot's request does.
class Flight {
 public:
  std::shared_ptr<Ended> ended;
  PyObject* call = nullptr;  // a reference while the inference is under way
};

}  // namespace lamina::python
