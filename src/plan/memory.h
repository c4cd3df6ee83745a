#pragma once
/// Places tensors in one arena by the steps during which they are alive.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamina {

struct Block {
  std::size_t bytes = 0;
  std::uint32_t first = 0, last = 0;  ///< steps during which it is alive, both included
  std::size_t offset = 0;             ///< the answer
};

/// Sets the offsets (multiples of 64) so that blocks alive together do not overlap; returns the arena's size.
/// Largest first, each at the lowest place that is free during its life.
std::size_t place(std::vector<Block>& blocks);

/// Largest sum of blocks alive at one step: no arena can be smaller.
std::size_t live_bound(const std::vector<Block>& blocks);

}  // namespace lamina
