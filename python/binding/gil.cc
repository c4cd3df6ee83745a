#include "gil.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "interrupts.h"

namespace lamina::python {
namespace {

/// The function is not in the stable interface before Python 3.13. It is looked for when the module is
/// loaded: a child of fork() that meets a static object of a function which a thread of the parent was
/// making would wait for that thread.
int (*const is_finalizing)() = [] {
  void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
  if (!found) found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
  return reinterpret_cast<int (*)()>(found);
}();

}  // namespace

bool is_ending() noexcept { return Py_IsInitialized() == 0 || (is_finalizing && is_finalizing() != 0); }

bool is_too_late() noexcept {
  const bool finalizing = is_finalizing && is_finalizing() != 0;  // no more once it has ended
  return finalizing ? !Interrupts::is_main_thread() : Py_IsInitialized() == 0;
}

void sleep_for_ever() noexcept {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

Unlocked::~Unlocked() {
  if (is_too_late()) sleep_for_ever();
  in_python([this] { PyEval_RestoreThread(state_); });
}

Locked::Locked() noexcept {
  if (is_too_late()) sleep_for_ever();
  state_ = in_python([] { return PyGILState_Ensure(); });
}

Locked::~Locked() {
  in_python([this] { PyGILState_Release(state_); });
}

}  // namespace lamina::python
