#pragma once
/// Stop points (base/cancellation.h) of code that goes through a file's bytes.
#include <cstddef>

#include "base/cancellation.h"

namespace lamina {

/// Bytes that this thread has read since its last stop point.
inline constinit thread_local std::size_t bytes_since_stop_point = 0;

/// So many bytes more of a file are gone through, or what takes about as long: a stop point once in so many.
/// Readers whose pieces are tiny share one count, so that none of the pieces is too small to count.
inline void note_read(std::size_t bytes) {
  constexpr std::size_t kGrain = std::size_t{1} << 15;
  if ((bytes_since_stop_point += bytes) < kGrain) [[likely]]
    return;
  bytes_since_stop_point = 0;
  stop_point();
}

/// What note_read() is told of a node, a layer or a constant that a reader looks at: about the bytes whose
/// reading takes as long.
inline constexpr std::size_t kReadOfNode = 256;

}  // namespace lamina
