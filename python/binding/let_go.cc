#include "let_go.h"

#include <atomic>

namespace lamina::python {
namespace {

struct Object {
  PyObject* object;
  Object* next;
};

/// No mutex: a child of fork() would find it taken by a thread that it does not have.
std::atomic<Object*> first{nullptr};
std::atomic<bool> announced{false};  // the main thread has been asked

int release_in_main_thread(void*) {
  release_let_go();
  return 0;
}

}  // namespace

void let_go(PyObject* object) noexcept {
  auto* const one = new Object{object, first.load()};
  while (!first.compare_exchange_weak(one->next, one)) {
  }
  if (Py_IsInitialized() && !announced.exchange(true) &&
      Py_AddPendingCall(release_in_main_thread, nullptr) != 0)
    announced = false;  // the queue is full: the next object asks again
}

void let_go_after_fork_in_child() noexcept { announced = false; }

void release_let_go() noexcept {
  announced = false;
  for (auto* one = first.exchange(nullptr); one != nullptr;) {
    Py_DECREF(one->object);
    auto* const gone = one;
    one = one->next;
    delete gone;
  }
}

}  // namespace lamina::python
