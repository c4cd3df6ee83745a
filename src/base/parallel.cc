#include "base/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace lamina {

void parallel_for(std::int64_t count, std::int64_t grain, PieceBody body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  if (count <= grain || threads_here() == 1) return body(0, count);
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count, static_cast<std::size_t>(grain)),
                    [&](const auto& r) { body(r.begin(), r.end()); });
}

void on_one_thread(PieceBody body) {
  if (threads_here() == 1) return body(0, 1);
  thread_local tbb::task_arena alone(1, 1);  // entered within 40 ns
  alone.execute([&] { body(0, 1); });
}

int threads_here() { return tbb::this_task_arena::max_concurrency(); }

}  // namespace lamina
