#include "base/arena.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/apart.h"
#include "base/parallel.h"
#include "base/threads.h"

namespace lamina {

void bring_helpers(tbb::task_arena& arena, int threads) {
  using tbb::global_control;
  const auto most = static_cast<int>(global_control::active_value(global_control::max_allowed_parallelism));
  threads = std::min(threads, most);
  if (threads <= helpers_made() + 1 || is_apart()) return;
  const SignalsBlocked here;
  arena.execute([&] {
    using Clock = std::chrono::steady_clock;
    const auto late = Clock::now() + std::chrono::milliseconds(20);
    const int caller = tbb::this_task_arena::current_thread_index();
    // Each waits for the others, so that each thread takes one; not for long: there may be no such threads.
    const auto come = [&](int) {
      if (tbb::this_task_arena::current_thread_index() != caller) become_helper();
      while (threads > helpers_made() + 1 && Clock::now() < late) std::this_thread::yield();
    };
    tbb::parallel_for(0, threads, come, tbb::static_partitioner());
  });
}

void on_threads(int threads, const std::function<void()>& body) {
  tbb::task_arena arena(allowed_threads(threads));
  bring_helpers(arena, threads);
  arena.execute(body);
}

}  // namespace lamina
