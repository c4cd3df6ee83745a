#pragma once
/// Python objects that threads without the GIL let go of.
#include "common.h"

namespace lamina::python {

/// Releases a reference from any thread, without waiting for the GIL: a thread of the library that waited for
/// it could never pause for a fork by the thread that has it. The reference is released soon afterwards by
/// the main thread, or by release_let_go().
void let_go(PyObject* object) noexcept;
/// Releases what was let go of. Requires the GIL.
void release_let_go() noexcept;
/// In a child: a thread of the parent may have been about to ask the main thread.
void let_go_after_fork_in_child() noexcept;

/// A callable of Python's that the library calls. It may outlive the object of Python that has it.
class Callback {
 public:
  explicit Callback(nb::object callable) : callable_(callable.release().ptr()) {}
  ~Callback() {
    if (callable_) let_go(callable_);
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  /// Null when it was cleared. Requires the GIL, as all others do.
  PyObject* get() const noexcept { return callable_; }
  /// For the garbage collector.
  int visit(visitproc visit, void* arg) const {
    Py_VISIT(callable_);
    return 0;
  }
  void clear() noexcept { Py_CLEAR(callable_); }

 private:
  PyObject* callable_;
};

}  // namespace lamina::python
