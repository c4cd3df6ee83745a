#pragma once
/// Vector code of TopK with k = 1 (topk_loops.simd.cc): where the largest or smallest f32 is.
#include <cstdint>

namespace lamina {

struct BestLoops {
  std::int64_t lanes = 0;
  /// First of the largest (smallest) elements of a line of `lanes` elements and more; -1 when there is a NaN.
  std::int64_t (*line)(const float* x, std::int64_t count, bool smallest) = nullptr;
  /// The loop for `lanes` adjacent columns of `count` rows that are `stride` elements apart.
  void (*columns)(const float* x, std::int64_t count, std::int64_t stride, bool smallest,
                  std::int32_t* indices) = nullptr;
};

/// The loops for the effective instruction set.
const BestLoops& best_loops();

}  // namespace lamina
