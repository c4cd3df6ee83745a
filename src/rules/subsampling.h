#pragma once
/// What can be computed on every step-th position of the pictures only, as whoever reads it wants no more.
///
/// Picture axes are those from axis 2 on. A *strided point* takes every stride-th position by itself: a
/// convolution or a maximum over a window of 1 without pads. Between it and what made its picture may lie
/// nodes that compute each position from the same position of their operands: these work on fewer positions
/// as well. A convolution above them takes the step into its strides. Where a value is wanted in full, too,
/// a pooling takes every step-th position of it.
#include <unordered_map>
#include <vector>

#include "ops/convolution.h"
#include "rules/support.h"

namespace lamina {

/// Window of a convolution that can take a step into its strides; null for others.
const Window* convolution_window(const Node& node);
/// Window of a node that is a strided point but for its pads; null for others.
const Window* strided_window(const Graph& graph, const Node& node);
/// The strides of a window, one per axis.
Ints all_strides(const Window& window, std::size_t axes);

/// Values that nobody wants in full.
struct Subsampled {
  Ints step;  ///< per picture axis
  /// In an order of execution; each is made by a convolution or by a node that computes positions by itself.
  std::vector<ValueId> values;
  std::vector<NodeId> points;                  ///< strided points that read them
  std::vector<ValueId> pooled;                 ///< wanted in full, too
  std::unordered_map<NodeId, Window> windows;  ///< of convolutions that take the step into their strides
};

/// From the strides of a strided point on; or why that cannot be, or would not pay.
Found<Subsampled> subsampled_above(const Match& match, NodeId point);

}  // namespace lamina
