#pragma once
/// Layout::channels_last_bits: booleans of rank 3 and more, point after point. Channel c of a point is bit
/// c % 8 of its byte c / 8; a point has whole words of 32 bits, and those behind the last channel are 0. What
/// binary convolutions read and make.
#include "kernels/layout.h"

namespace lamina::bits {

/// Bytes of a point.
inline std::int64_t point_bytes(std::int64_t channels) { return (channels + 31) / 32 * 4; }

/// The row of bits in the table of layouts. Nothing is copied from it or to it while a plan runs.
PackedLayout packing();

}  // namespace lamina::bits
