#pragma once
/// Ctrl-C while the library works.
///
/// Python's handlers of signals run in the main thread, between two instructions of its program; so during a
/// call of the library they wait for its end. A thread of the binding therefore looks at each call of the
/// main thread that takes longer than a few hundredths of a second: it puts a handler before Python's own for
/// SIGINT, and stops the call's work when one arrives. A short call only writes two words.
#include <atomic>

#include "gil.h"

namespace lamina::python {

/// What stops the work of a call, from any thread. It may be called several times, and before the work can
/// hear of it.
struct Stop {
  void (*function)(void*);
  void* argument;
};

class Interrupts {
 public:
  static void the_calling_thread_is_the_main_one();
  static void after_fork_in_child();
  /// True in the thread that runs Python's handlers.
  static bool is_main_thread() noexcept;

  /// True once for SIGINTs since the last call. Python's handler may have run for them since.
  static bool had_signal() noexcept;

  /// Watches the work of the calling thread, if that is the main one and no other call of it is watched.
  class Watched {
   public:
    explicit Watched(Stop stop) noexcept;
    ~Watched() { end(); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    /// The end of the work. True if it was stopped because of a signal.
    bool end() noexcept;

   private:
    bool on_ = false;
  };
};

/// Does the work without the GIL, so that Ctrl-C stops it: then the handler of Python's runs, and its
/// exception (KeyboardInterrupt) is thrown. If the handler raises nothing, the work is done again from its
/// beginning. The work must throw Error(canceled) when it is stopped.
template <class Work>
void without_the_gil(Stop stop, Work&& work) {
  for (;;) {
    if (Interrupts::had_signal() && PyErr_CheckSignals() != 0) throw nb::python_error();
    std::exception_ptr error;
    bool interrupted = false;
    {
      const Unlocked release;
      Interrupts::Watched watch(stop);
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      interrupted = watch.end();
    }
    if (!error) return;
    if (!interrupted) std::rethrow_exception(error);
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::canceled) throw;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace lamina::python
