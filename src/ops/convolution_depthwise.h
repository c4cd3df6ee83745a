#pragma once
/// A convolution and the depthwise convolution behind it as one node.
#include "ops/convolution.h"

namespace lamina {

/// The depthwise convolution with this window of what the node's second body, its parent, makes of input 0:
/// one convolution with its own epilogue. Outside of the parent's result stand zeros.
///
/// Inputs: x, weights [C, 1, spatial...], bias [C]. Bodies: the epilogue (perhaps without stages), then the
/// parent: one parameter, x, and one result with C channels, of the element type of the weights.
struct ConvolutionDepthwise : Window {
  static constexpr OpInfo info{"ConvolutionDepthwise",
                               2,
                               3,
                               1,
                               Trait::epilogue | Trait::host | Trait::control_flow | Trait::weights,
                               "A convolution with its epilogue, then a depthwise one",
                               0,
                               OpFamily::convolution};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const;
  /// The parent's nodes and a depthwise Convolution.
  std::vector<NodeId> decompose(Graph& graph, const Node& node) const;
};

}  // namespace lamina
