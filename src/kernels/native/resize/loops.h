#pragma once
/// Vector code of Interpolate (loops.simd.cc): weighted sums of rows, pixels and single elements.
#include <cstdint>

namespace lamina {

struct ResizeLoops {
  /// out[i] = sum over k of weights[k] * rows[k][i], i < count.
  void (*rows)(const float* const* rows, const float* weights, std::int64_t taps, float* out,
               std::int64_t count) = nullptr;
  /// Pixels of `inner` elements: out[o] = sum over k of weights[o][k] * in[index[o][k]], o < count.
  void (*pixels)(const float* in, const std::int32_t* index, const float* weights, std::int64_t taps,
                 float* out, std::int64_t count, std::int64_t inner) = nullptr;
  /// Elements: out[i] = sum over k of weights[k][i] * in[index[k][i]], i < count, a row of tables per tap.
  /// Null weights: one tap of weight 1.
  void (*elements)(const float* in, const std::int32_t* index, const float* weights, std::int64_t taps,
                   float* out, std::int64_t count) = nullptr;
  /// Each of `count` elements twice.
  void (*doubled)(const float* in, float* out, std::int64_t count) = nullptr;
  /// Shuffles bytes as ResizeShuffles describe it.
  void (*shuffled)(const std::uint8_t* in, const std::int32_t* from, const std::uint8_t* places,
                   std::uint8_t* out, std::int64_t bytes) = nullptr;
};

/// The loops for the effective instruction set.
const ResizeLoops& resize_loops();

}  // namespace lamina
