#pragma once
/// Loops over the threads of the current arena (oneTBB behind).
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/work_partition.h"

namespace lamina {

/// A reference to something that takes a piece [begin, end), or that and its slot; valid as long as that is.
/// Copies nothing, so that a loop allocates nothing.
class PieceBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, PieceBody>)
      PieceBody(const F& body)  // implicit, so that lambdas can be passed
      : object_(std::addressof(body)),
        call_([](const void* object, std::int64_t begin, std::int64_t end, std::int64_t slot) {
          const auto& f = *static_cast<const F*>(object);
          if constexpr (std::is_invocable_v<const F&, std::int64_t, std::int64_t, std::int64_t>)
            f(begin, end, slot);
          else
            f(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end, std::int64_t slot) const {
    call_(object_, begin, end, slot);
  }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t, std::int64_t, std::int64_t);
};

/// parallel_for() where there are several slots.
void run_in_slots(const WorkPartition& partition, PieceBody body);
/// parallel_for() with one slot, where the whole may be too long for one piece.
void run_in_pieces(const WorkPartition& partition, PieceBody body);

/// Calls body(begin, end[, slot]) on pieces that cover all units, in parallel. Each thread begins with its
/// share, the same one in every loop, so that it finds in its cache what it wrote there; it takes that piece
/// by piece, and then pieces of what some others have not finished. Pieces of one slot (0 <= slot <
/// partition.slots) run one after the other. A loop of one slot is in the calling thread, without waking
/// others; a short one is one piece. All threads round as the calling one. Exceptions of the body reach the
/// caller. Between pieces are stop points (base/cancellation.h): Stopped is thrown in the caller, and in a
/// quiescent state the caller pauses once its helpers have left the loop, which then continues.
template <class F>
void parallel_for(const WorkPartition& partition, const F& body) {
  const PieceBody piece(body);
  if (partition.slots > 1) return run_in_slots(partition, piece);
  if (partition.units > partition.most) return run_in_pieces(partition, piece);
  if (partition.units > 0) piece(0, partition.units, 0);
}

/// parallel_for for units of unknown duration, of which about `grain` are worth a thread: with 1 each may
/// take long.
void parallel_for(std::int64_t count, std::int64_t grain, PieceBody body);

/// Threads that a loop started here may use, the caller's included.
int threads_here();

/// Threads of the caller's arena, where that is another than oneTBB's own; 0: it is in none. oneTBB's own has
/// as many as the process might use at its first use, which says nothing about now.
int threads_of_own_arena();

/// Work of so many microseconds, in units of equal size, for the threads here.
inline WorkPartition partitioned_here(std::int64_t units, double total) {
  if (units <= 1 || total <= kWorthAThread) return {units, units, 1};  // for small steps this takes time
  return partition_work(units, total / static_cast<double>(units), threads_here());
}

/// Most threads of an arena.
constexpr int kMostThreads = 1024;

/// How many of that many threads oneTBB would give an arena, after asking it for them: fewer only where the
/// process has a limit of its own (tbb::global_control). Without the asking it gives those that were thought
/// of at its first use, and prints a warning.
int allowed_threads(int wanted);

}  // namespace lamina
