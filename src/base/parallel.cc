#include "base/parallel.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

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

}  // namespace lamina
