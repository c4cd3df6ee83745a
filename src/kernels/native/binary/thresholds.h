#pragma once
/// Epilogues of binary convolutions that end in a sign: of a sum they ask whether it is above a number.
#include <optional>
#include <vector>

#include "kernels/kernel.h"

namespace lamina::binary {

/// The sum above which the epilogue is 1, for each output. Where the epilogue falls as the sum grows, the sum
/// is taken with the opposite weights.
struct Thresholds {
  std::vector<float> above;  ///< between whole numbers
  std::vector<bool> opposite;

  /// Weights of u1 or other numbers, some outputs' turned, as u1.
  Tensor turned(const Tensor& weights) const;
  /// The outputs with inverted signs, in a few characters, for the key of packed weights in a WeightStore.
  std::string turned_key() const;
  /// What sums are compared with, likewise.
  std::string above_key() const;
  /// What sums are taken from, [kind][output] in rows of `stride`, for signs: they are above 0 then.
  void take_from(Tensor& starts, std::int64_t outputs, std::int64_t group, std::int64_t stride) const;
};

/// Nothing when the epilogue makes something else than booleans, reads more than constants per output, or
/// may rise and fall. `counted`: sums are at most so large.
std::optional<Thresholds> thresholds_of(const NodeView& v, std::int64_t counted);

}  // namespace lamina::binary
