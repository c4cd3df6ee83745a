#include "base/arena.h"

#include <tbb/task_arena.h>

namespace lamina {

void on_threads(int threads, const std::function<void()>& body) {
  tbb::task_arena arena(threads);
  arena.execute(body);
}

}  // namespace lamina
