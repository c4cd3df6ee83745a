#pragma once
/// Copies of a resized line's pixels of few bytes as shuffles: 16 bytes of the result come of 16 of the
/// input.
#include <cstdint>
#include <vector>

#include "kernels/native/resize/taps.h"

namespace lamina {

struct ResizeShuffles {
  std::int64_t bytes = 0;            ///< of the result's line; 0: there are none
  std::vector<std::int32_t> from;    ///< where the 16 bytes begin; those of the last ones overlap
  std::vector<std::uint8_t> places;  ///< [16] for each

  bool empty() const { return bytes == 0; }
};

/// None where lines are shorter, or where neighbours lie further apart.
ResizeShuffles shuffles_of(const ResizeTable& copies, std::int64_t pixel_bytes);

}  // namespace lamina
