#include "base/arena.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/no_destructor.h"
#include "base/parallel.h"
#include "base/subprocess.h"
#include "base/threads.h"

namespace lamina {
namespace {

/// Has one thread at a time in each place of the arena, the caller in the first one, where it waits for work:
/// that clears the place's mailbox. Places are taken at random, so that all are needed at once. What is
/// missed here is found the next time.
void clear_mailboxes(tbb::task_arena& arena, int places) {
  using namespace std::chrono_literals;
  const SignalsBlocked blocked;
  std::atomic<int> here = 1;
  arena.execute([&] {
    tbb::task_group group;
    std::vector<OwnThread> others;
    auto held = group.defer([] {});  // the others wait for it; goes first when there are no more threads
    const auto wait_there = [&] {
      try {
        arena.execute([&] {
          ++here;
          group.wait();
        });
      } catch (...) {  // there is no memory for a place
        return;
      }
    };
    for (int i = 1; i < places; ++i) others.emplace_back("lamina-mail", wait_there);
    const auto late = std::chrono::steady_clock::now() + 5ms;
    while (here < places && std::chrono::steady_clock::now() < late) std::this_thread::yield();
    std::this_thread::sleep_for(100us);
    group.run(std::move(held));
    group.wait();
  });
}

struct IdleArenas {
  std::mutex mutex;
  LentArena::Idle all;
};
IdleArenas& idle_arenas() {
  static const ProcessLifetime idle([] { return std::make_unique<IdleArenas>(); });
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
  fresh.emplace(allowed, Lent{std::make_unique<tbb::task_arena>(allowed)})->second.arena->initialize();
  node_ = fresh.extract(fresh.begin());
}

void LentArena::used(bool helped) noexcept {
  constexpr int kUses = 16;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(50);  // by place: clearing one takes less than 0.1 ms
  auto& lent = node_.mapped();
  const int places = node_.key();
  if (helped) lent.uses = 0;
  if (helped || places < 2 || is_subprocess() || ++lent.uses < kUses * places) return;
  const auto now = Clock::now();
  if (now < lent.clear_again) return;
  lent.uses = 0;
  lent.clear_again = now + places * kPause;
  try {
    clear_mailboxes(*lent.arena, places);
  } catch (...) {  // there is no memory, or no thread: another time
  }
}

LentArena::~LentArena() {
  if (node_.empty()) return;
  auto& idle = idle_arenas();
  const std::lock_guard lock(idle.mutex);
  idle.all.insert(std::move(node_));
}

void LentArena::forget() noexcept {
  if (!node_.empty()) (void)node_.mapped().arena.release();
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
  // Another thread may have held the mutex at the fork, in the midst of a change: the old arenas stay as they
  // are.
  new (&idle.mutex) std::mutex;
  new (&idle.all) LentArena::Idle;
}

void bring_helpers(tbb::task_arena& arena, int threads) {
  using tbb::global_control;
  const auto most = static_cast<int>(global_control::active_value(global_control::max_allowed_parallelism));
  threads = std::min(threads, most);
  if (threads <= helpers_made() + 1 || helpers_are_lost() || is_subprocess()) return;
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
  LentArena arena(threads);
  bring_helpers(*arena, threads);
  (*arena).execute(body);
  arena.used(false);
}

}  // namespace lamina
