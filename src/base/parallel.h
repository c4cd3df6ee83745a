#pragma once
/// Loops over the threads of the current arena (oneTBB behind).
#include <cstdint>
#include <functional>

namespace lamina {

/// Calls body(begin, end) on pieces that cover [0, count), in parallel. Pieces hold at least `grain` items; a
/// loop of one piece runs in the calling thread without waking others. Exceptions of the body reach the
/// caller.
void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace lamina
