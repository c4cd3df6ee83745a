#include "base/arena.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/apart.h"
#include "base/immortal.h"
#include "base/parallel.h"
#include "base/threads.h"

namespace lamina {
namespace {

struct IdleArenas {
  std::mutex mutex;
  LentArena::Idle all;
};
IdleArenas& idle_arenas() {
  static const Lasting idle([] { return std::make_unique<IdleArenas>(); });
  return **idle;
}

}  // namespace

LentArena::LentArena(int threads) {
  const int allowed = allowed_threads(threads);
  {
    auto& idle = idle_arenas();
    const std::lock_guard lock(idle.mutex);
    if (const auto it = idle.all.find(allowed); it != idle.all.end()) {
      node_ = idle.all.extract(it);
      return;
    }
  }
  Idle fresh;
  fresh.emplace(allowed, std::make_unique<tbb::task_arena>(allowed))->second->initialize();
  node_ = fresh.extract(fresh.begin());
}

LentArena::~LentArena() {
  if (node_.empty()) return;
  auto& idle = idle_arenas();
  const std::lock_guard lock(idle.mutex);
  idle.all.insert(std::move(node_));
}

void LentArena::forget() noexcept {
  if (!node_.empty()) (void)node_.mapped().release();
  node_ = {};
}

void drop_idle_arenas() noexcept {
  LentArena::Idle gone;
  auto& idle = idle_arenas();
  const std::lock_guard lock(idle.mutex);
  gone.swap(idle.all);
}

void forget_idle_arenas() noexcept {
  auto& idle = idle_arenas();
  new (&idle.mutex) std::mutex;  // another thread may have held it at the fork
  for (auto& [threads, arena] : idle.all) (void)arena.release();
  idle.all.clear();
}

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
  const LentArena arena(threads);
  bring_helpers(*arena, threads);
  (*arena).execute(body);
}

}  // namespace lamina
