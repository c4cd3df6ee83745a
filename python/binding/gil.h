#pragma once
/// The GIL in threads of the library, and what becomes of it when the interpreter ends.
#include "common.h"

namespace lamina::python {

/// True once the interpreter has begun to end, or has ended.
bool is_ending() noexcept;
/// True when it does not give the GIL to the calling thread any more. The main thread ends the interpreter,
/// and has the GIL until the end.
bool is_too_late() noexcept;
[[noreturn]] void sleep_for_ever() noexcept;

/// Calls functions of Python's that may wait for the GIL. Those that run a program of Python's do, too.
///
/// Once the interpreter has begun to end, other threads do not get the GIL any more. Python before 3.14 ends
/// such a thread where it waits, by unwinding its stack, which ends the whole process when a function of C++
/// is on it that must not throw; and destructors on the way would use objects of Python's without the GIL. So
/// the thread sleeps instead until the process has ended, as Python itself lets it from 3.14 on. Functions of
/// Python's throw nothing, so what is caught here can only be the end of the thread. The handler must not
/// return, since unwinding to end a thread cannot be stopped.
template <class Function>
auto in_python(Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    sleep_for_ever();
  }
}

/// Releases the GIL for a while. If the interpreter begins to end meanwhile, the thread does not come back.
class Unlocked {
 public:
  Unlocked() noexcept : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

template <class Function>
auto unlocked(Function&& function) {
  const Unlocked release;
  return function();
}

/// The GIL for a while, in a thread that does not have it, such as one of the library. If the interpreter
/// begins to end before the thread gets it, the thread does not come back. A callback that only tells
/// something asks is_too_late() before: then the work of the library goes on.
class Locked {
 public:
  Locked() noexcept;
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Calls a callable of Python's and drops its result. Requires the GIL. Throws nb::python_error.
inline void call_python(nb::handle callable, const nb::tuple& arguments) {
  const bool done = in_python([&] {
    Py_INCREF(callable.ptr());  // it may be let go of while it runs
    PyObject* const result = PyObject_CallObject(callable.ptr(), arguments.ptr());
    Py_XDECREF(result);
    Py_DECREF(callable.ptr());
    return result != nullptr;
  });
  if (!done) throw nb::python_error();
}

/// Tells Python something from a thread of the library, where it is not too late.
template <class Function>
void tell_python(Function&& function) {
  if (is_too_late()) return;
  const Locked held;
  function();
}

}  // namespace lamina::python
