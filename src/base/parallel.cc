#include "base/parallel.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/awaited_by.h"
#include "base/cancellation.h"
#include "base/subprocess.h"
#include "base/work_bounds.h"

namespace lamina {

namespace {

/// What is left of a thread's part of a loop, in a cache line of its own.
struct alignas(64) Share {
  std::int64_t next, end;
};

/// Takes a part of what is left, `grain` to `most` units, from its front; empty when there is nothing.
Share take(Share& share, std::int64_t grain, std::int64_t most) {
  constexpr std::int64_t kPart = 4;
  std::atomic_ref<std::int64_t> next(share.next);
  auto begin = next.load(std::memory_order_relaxed);
  for (;;) {
    const auto left = share.end - begin;
    const auto part = left < 2 * grain ? std::max<std::int64_t>(left, 0) : std::max(grain, left / kPart);
    const auto count = std::min(part, most);
    if (count == 0) return {begin, begin};
    if (next.compare_exchange_weak(begin, begin + count, std::memory_order_relaxed))
      return {begin, begin + count};
  }
}

/// One thread's part of a loop. It can be stopped as its caller can be, has its caller's limits, and does not
/// pause.
class LoopPart {
 public:
  LoopPart(const LoopCaller& caller, const StopScope* scope, const WorkBounds* bounds) noexcept
      : helper_(caller), scope_(scope), bounds_(bounds) {}

 private:
  const LoopHelper helper_;
  const StopScopeOf scope_;
  const Within bounds_;
  const Quiescence::Moving moving_;
};

/// `kMost`: slots for which there is memory on the stack.
template <std::int64_t kMost>
void run_shares(const WorkPartition& d, std::int64_t slots, const PieceBody& body) {
  Share shares[kMost];
  for (std::int64_t i = 0; i < slots; ++i) shares[i] = {d.units * i / slots, d.units * (i + 1) / slots};
  const auto caller = LoopCaller::here();
  const auto* const scope = StopScope::here();
  const auto* const bounds = Within::here();
  const bool may_pause = !Quiescence::Moving::is_here() && !LoopHelper::is_here();
  std::atomic<bool> leave = false;  // the pieces that are left wait, or are not done at all
  /// `pieces`: that the thread has done. The clock is not read for each of them.
  const auto must_leave = [&](unsigned pieces) {
    constexpr unsigned kPieces = 8;
    if (leave.load(std::memory_order_relaxed)) return true;
    bool now = may_pause && Quiescence::is_wanted();
    if (scope != nullptr) now |= pieces % kPieces == 0 ? scope->must_stop() : scope->stop_requested();
    if (now) leave.store(true, std::memory_order_relaxed);
    return now;
  };
  const auto work = [&](std::int64_t index) {
    const LoopPart here(caller, scope, bounds);
    // The caller, who always comes and takes share 0, has the last slot: tests see where there is too
    // little scratch memory even when no other thread comes in time.
    const auto slot = slots - 1 - index;
    unsigned pieces = 0;
    // The own share, then some others': to look at all of them would take long where there are many.
    for (std::int64_t i = 0; i < slots; i = std::max<std::int64_t>(1, 2 * i))
      for (auto& share = shares[(index + i) % slots];;) {
        const auto piece = take(share, d.grain, d.most);
        if (piece.next == piece.end) break;
        body(piece.next, piece.end, slot);
        if (must_leave(++pieces)) return;
      }
  };
  for (;;) {
    // Helpers round as the calling thread does. A context without that trait has what its arena was made
    // with, which may be the application's.
    using Context = tbb::task_group_context;
    Context context(Context::bound, Context::default_traits | Context::fp_settings);
    tbb::parallel_for(
        std::int64_t{0}, slots,
        [&](std::int64_t index) {
          try {
            work(index);
          } catch (...) {
            leave.store(true, std::memory_order_relaxed);  // the others need not go on
            throw;
          }
        },
        tbb::static_partitioner(), context);
    if (!leave.load(std::memory_order_relaxed)) return;
    if (std::all_of(shares, shares + slots, [](const Share& s) { return s.next >= s.end; })) return;
    stop_point();
    leave.store(false, std::memory_order_relaxed);
  }
}

}  // namespace

void run_in_slots(const WorkPartition& d, PieceBody body) {
  const auto slots = std::min<std::int64_t>({d.slots, d.units, threads_here(), kMostThreads});
  if (slots > 64) return run_shares<kMostThreads>(d, slots, body);
  if (slots > 1) return run_shares<64>(d, slots, body);
  run_in_pieces(d, body);
}

void run_in_pieces(const WorkPartition& d, PieceBody body) {
  if (d.units <= 0) return;
  const auto parts = even_parts(d.units, d.most);
  for (std::int64_t begin = 0; begin < d.units; begin += parts.size) {
    if (begin > 0) stop_point();
    body(begin, std::min(begin + parts.size, d.units), 0);
  }
}

void parallel_for(std::int64_t count, std::int64_t grain, PieceBody body) {
  parallel_for(partition_units(count, grain, threads_here()), body);
}

int threads_here() { return is_subprocess() ? 1 : tbb::this_task_arena::max_concurrency(); }

int threads_of_own_arena() {
  const int here = threads_here();
  return here == tbb::info::default_concurrency() ? 0 : here;
}

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
