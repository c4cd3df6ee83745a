#pragma once
/// Zero points of convolutions and matrix products of integers.
#include <cstdint>
#include <vector>

#include "kernels/node_view.h"

namespace lamina {

struct ZeroPoints {
  std::size_t source_input = 0, weights_input = 0;  ///< of the node
  std::int32_t source = 0;                          ///< where it is no input that is given at run time
  bool source_at_run = false;
  /// None where all are 0, one where all are the same, or all.
  std::vector<std::int32_t> weights = {};
  bool weights_at_run = false;
  std::vector<std::size_t> constants = {};  ///< of these inputs: they are read when a kernel is made
};

/// A refusal where the source has several: those of a matrix may be by row.
Verdict zero_points_of(const NodeView& v, ZeroPoints& out);

}  // namespace lamina
