#pragma once
/// Comparisons whose booleans lie as bits.
#include "kernels/bits.h"

namespace lamina::bits {

/// Channels-last floats to compare with a number per channel.
struct Line {
  const float* in;
  std::int64_t in_step, count;  ///< floats from point to point; points
  std::int64_t channels;
  const float* limits;  ///< what is more is a 1; infinities behind the last channel, up to whole words
  std::uint8_t* out;
};
using Compare = void (*)(const Line&);
/// The function that uses the vectors of effective_isa().
Compare compare();

}  // namespace lamina::bits
