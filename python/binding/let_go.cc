#include "let_go.h"

#include <mutex>
#include <vector>

namespace lamina::python {
namespace {

struct Objects {
  std::mutex mutex;
  std::vector<PyObject*> list;
  bool announced = false;  // the main thread has been asked
};

/// Never destroyed: threads of the library may let go of objects until the process has ended.
Objects& objects() {
  static auto* const all = new Objects;
  return *all;
}

int release_in_main_thread(void*) {
  release_let_go();
  return 0;
}

}  // namespace

void let_go(PyObject* object) noexcept {
  auto& all = objects();
  const std::lock_guard lock(all.mutex);
  all.list.push_back(object);
  if (!all.announced && Py_IsInitialized())
    all.announced = Py_AddPendingCall(release_in_main_thread, nullptr) == 0;
}

void release_let_go() noexcept {
  std::vector<PyObject*> list;
  {
    auto& all = objects();
    const std::lock_guard lock(all.mutex);
    list.swap(all.list);
    all.announced = false;
  }
  for (auto* object : list) Py_DECREF(object);
}

}  // namespace lamina::python
