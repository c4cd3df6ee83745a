#pragma once
/// Loops over the threads of the current arena (oneTBB behind).
#include <cstdint>
#include <memory>
#include <type_traits>

namespace lamina {

/// A reference to something that takes a piece [begin, end); valid as long as that is. Copies nothing, so
/// that a loop allocates nothing.
class PieceBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, PieceBody>)
      PieceBody(const F& body)  // implicit, so that lambdas can be passed
      : object_(std::addressof(body)), call_([](const void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<const F*>(object))(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t, std::int64_t);
};

/// Calls body(begin, end) on pieces that cover [0, count), in parallel: at most one per thread, with about
/// `grain` items or more; a loop of one piece runs in the calling thread without waking others. Exceptions of
/// the body reach the caller.
void parallel_for(std::int64_t count, std::int64_t grain, PieceBody body);

/// Threads that a loop started here may use, the caller's included.
int threads_here();

/// As many threads as an arena may have.
constexpr int kMostThreads = 1024;

/// How many of that many threads oneTBB would give an arena, after asking it for them: fewer only where the
/// process has a limit of its own (tbb::global_control). Without the asking it gives those that were thought
/// of at its first use, and prints a warning.
int allowed_threads(int wanted);

}  // namespace lamina
