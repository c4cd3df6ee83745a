#pragma once
/// Work partition: how loops are divided among threads.
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace lamina {

/// The number of parts of size b, the last one perhaps smaller; for a >= 0, b > 0.
template <std::integral A, std::integral B>
requires(std::is_signed_v<A> == std::is_signed_v<B>) constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

/// The next multiple of `unit`.
template <std::integral A, std::integral B>
constexpr auto round_up(A a, B unit) {
  return ceil_div(a, unit) * unit;
}

/// Parts of one size, the last one perhaps smaller.
struct Parts {
  std::int64_t size = 1, number = 1;
};
/// The fewest parts of at most `most`, about equal; for count > 0.
constexpr Parts even_parts(std::int64_t count, std::int64_t most) {
  const auto size = ceil_div(count, ceil_div(count, most < 1 ? std::int64_t{1} : most));
  return {size, ceil_div(count, size)};
}

/// Work that is worth another thread, in microseconds. Waking goes down a tree, so that it takes the
/// logarithm of their number times some 3 us: the best number of threads grows with the work.
inline constexpr double kWorthAThread = 4;
/// Microseconds that a thread should work, as estimated, until it looks whether it is to stop
/// (base/cancellation.h): short beside the 100 ms in which that is promised, since estimates may be far off.
inline constexpr double kLongestPiece = 5000;

/// A loop over units of work, which parallel_for() runs. Made with a plan, used at each run.
struct WorkPartition {
  std::int64_t units = 0;
  std::int64_t grain = 1;  ///< units that one thread takes at a time, at least
  /// Threads that take part, at most: so many pieces run at the same time, each with a slot of scratch memory
  /// of its own.
  std::int64_t slots = 1;
  std::int64_t most = INT64_MAX;  ///< units that one thread takes at a time, at most
};

/// Divides units of about so many microseconds each (on one thread) among so many threads.
WorkPartition partition_work(std::int64_t units, double microseconds, std::int64_t threads);
/// A partition in which `worth` units are worth a thread. If that is one, a unit may take any time: threads
/// take one at a time.
WorkPartition partition_units(std::int64_t units, std::int64_t worth, std::int64_t threads);

/// The number of units for work that can be divided anywhere: several for each thread, since cores differ,
/// but none too small.
std::int64_t units_wanted(double microseconds, std::int64_t threads);

}  // namespace lamina
