#pragma once
/// Work in child processes, which may crash or hang.
#include <functional>
#include <string>
#include <vector>

namespace lamina::testing {

/// What went wrong with one number.
struct Failure {
  std::uint64_t number = 0;
  std::string what;
};

struct WatchOptions {
  std::uint64_t batch = 200;   ///< numbers that one process tries
  int processor_seconds = 20;  ///< that one number may take
  int seconds = 600;           ///< of the clock, for what waits for ever
};

/// Calls `body` with each number from `first` on, in children of this process one after the other, and gives
/// what it returns where that is not empty, and how children died. `body` is followed by the next number
/// whatever happens. This process must have no threads.
std::vector<Failure> watched(std::uint64_t first, std::uint64_t count,
                             const std::function<std::string(std::uint64_t)>& body,
                             const WatchOptions& options = {});

}  // namespace lamina::testing
