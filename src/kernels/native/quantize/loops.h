#pragma once
/// Vector code of DynamicQuantize (loops.simd.cc).
#include <cstdint>

namespace lamina {

struct DynamicQuantizeTable {
  /// Widens [low, high] to hold `count` elements; NaN is in no range.
  void (*range)(const float* x, std::int64_t count, float& low, float& high) = nullptr;
  /// y = x / scale, rounded to even, + zero, saturated; NaN gives 0.
  void (*quantize)(const float* x, std::uint8_t* y, std::int64_t count, float scale, float zero) = nullptr;
};

/// The loops for the effective instruction set.
const DynamicQuantizeTable& dynamic_quantize_table();

}  // namespace lamina
