#pragma once
/// Stop points (base/cancellation.h) of code that goes through a file's bytes.
#include <cstddef>

#include "base/cancellation.h"

namespace lamina {

/// Bytes that this thread has read since its last stop point.
inline constinit thread_local std::size_t bytes_since_stop_point = 0;

/// A reader has gone through so many more bytes of a file, or has done work that takes about as long. Every
/// 32 KiB that is a stop point. The count is the thread's, so that pieces of any size add up.
inline void note_read(std::size_t bytes) {
  constexpr std::size_t kGrain = std::size_t{1} << 15;
  if ((bytes_since_stop_point += bytes) < kGrain) [[likely]]
    return;
  bytes_since_stop_point = 0;
  stop_point();
}

/// The bytes that readers note for looking at a node, a layer or a constant, which takes about as long as
/// reading them.
inline constexpr std::size_t kReadOfNode = 256;

}  // namespace lamina
