#pragma once
/// Calls that run in the library's threads: of asyncio and of Queue.
#include <condition_variable>
#include <mutex>
#include <vector>

#include "compiled.h"

namespace lamina::python {

/// Calls that have ended, until Python takes them. Threads of the library add to it without the GIL, and wake
/// the reader once for all that came since it took the last ones.
class Ended {
 public:
  Ended() = default;
  ~Ended();
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
  /// Adds a call, with its reference.
  void add(PyObject* call) noexcept;
  /// A descriptor that can be read when there are calls.
  int descriptor();
  /// Takes all. Requires the GIL.
  nb::list take();
  /// Waits for a call, without the GIL. False if the time is over.
  bool wait(std::chrono::nanoseconds time);
  /// Ends a wait(), or the next one.
  void wake() noexcept;
  /// Nobody takes calls any more: they are let go of.
  void close() noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::vector<PyObject*> list_;
  int descriptor_ = -1;
  bool closed_ = false, woken_ = false;
};

/// What the callback of a slot's request does.
class Flight {
 public:
  std::shared_ptr<Ended> ended;
  PyObject* call = nullptr;  // a reference while the inference is under way
};

}  // namespace lamina::python
