#pragma once
/// Work on so many threads.
#include <tbb/task_arena.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>

namespace lamina {

/// An arena of so many threads, the user's own included, for one user at a time. It is lent: oneTBB gives an
/// arena back only when one of its own threads has looked at it once more, for which a busy machine may have
/// no time, so that memory would grow with each model that comes and goes. There are as many arenas of a size
/// as were used at once.
class LentArena {
 public:
  explicit LentArena(int threads);
  ~LentArena();
  LentArena(const LentArena&) = delete;
  LentArena& operator=(const LentArena&) = delete;

  tbb::task_arena& operator*() const { return *node_.mapped().arena; }
  /// Keeps the arena from being lent again or destroyed: its threads are gone, or the process ends.
  void forget() noexcept;

  /// After a use by loops. `helped`: one of the arena's own threads was there since the last use. oneTBB
  /// addresses parts of a loop to threads of the arena (a task_proxy each), and such a note stays when
  /// another thread has done the part, until the thread that it names comes. On a busy machine, or where one
  /// thread serves many arenas, that may be never: after many uses without help the notes are cleared away
  /// here.
  void used(bool helped) noexcept;

  struct Lent {
    std::unique_ptr<tbb::task_arena> arena;
    int uses = 0;                                            ///< without help
    std::chrono::steady_clock::time_point clear_again = {};  ///< not before
  };
  /// Idle ones by their number of threads.
  using Idle = std::multimap<int, Lent>;

 private:
  Idle::node_type node_;
};

/// Lets go of the arenas that nobody uses.
void drop_idle_arenas() noexcept;
/// Forgets idle arenas after fork(), in the child: they hold the library's state of threads that no longer
/// exist.
void forget_idle_arenas() noexcept;

/// Brings the helpers of an arena of so many threads (the caller's included) about: threads inherit what
/// their maker blocks, and those that oneTBB makes in a caller's loop would take the application's signals.
/// Nothing to do where there are that many of them already. With one thread none is ever made.
void bring_helpers(tbb::task_arena& arena, int threads);

/// Calls it in the calling thread, where loops have so many threads, the caller's included; with one thread
/// none other is ever made.
void on_threads(int threads, const std::function<void()>& body);

}  // namespace lamina
