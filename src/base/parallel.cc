#include "base/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace lamina {

void parallel_for(std::int64_t count, std::int64_t grain, PieceBody body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  if (count <= grain || threads_here() == 1) return body(0, count);
  const auto pieces = std::min<std::int64_t>(threads_here(), (count + grain - 1) / grain);
  // Each thread gets the same part of every loop, so that it finds in its cache what it wrote there.
  tbb::parallel_for(
      std::int64_t{0}, pieces,
      [&](std::int64_t piece) { body(count * piece / pieces, count * (piece + 1) / pieces); },
      tbb::static_partitioner());
}

int threads_here() { return tbb::this_task_arena::max_concurrency(); }

int allowed_threads(int wanted) {
  using tbb::global_control;
  static std::mutex mutex;
  static global_control* asked = nullptr;  // stays: arenas of that size may be there until the very end
  static std::size_t most = 0;
  const auto limit = [] { return global_control::active_value(global_control::max_allowed_parallelism); };
  std::lock_guard lock(mutex);
  const auto count = static_cast<std::size_t>(wanted);
  if (count <= limit()) return wanted;
  if (count > most) {  // the least of all limits counts: the new one first, lest there be none for a moment
    auto* const more = new global_control(global_control::max_allowed_parallelism, count);
    delete std::exchange(asked, more);
    most = count;
  }
  return static_cast<int>(std::min(count, limit()));
}

}  // namespace lamina
