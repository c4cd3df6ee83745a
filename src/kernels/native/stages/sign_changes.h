#pragma once
/// Epilogues that end in a sign: where among whole numbers it changes.
#include <optional>
#include <vector>

#include "kernels/kernel.h"

namespace lamina {

/// Where the sign of each channel's result changes as the sum grows. The result rises or falls with the sum
/// throughout, so its sign changes once at most.
struct SignChanges {
  std::vector<bool> first, last;  ///< of the least and the largest sum
  std::vector<double> at;         ///< the largest sum whose sign is the first
};

/// Sign changes for the sums [least, most] of a node with channels along axis 1. Nothing when the epilogue
/// does not make booleans, reads more than constants per channel, or may rise and fall.
std::optional<SignChanges> sign_changes(const NodeView& v, ElementType sums, double least, double most);

}  // namespace lamina
