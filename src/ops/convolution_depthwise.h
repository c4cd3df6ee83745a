#pragma once
/// A convolution and the depthwise convolution behind it as one node.
#include "ops/convolution.h"

namespace lamina {

/// The depthwise convolution with this window of what the node's second body, its parent, makes of input 0:
/// one convolution with its own epilogue. Outside of the parent's result stand zeros.
///
/// Inputs: x, weights [C, 1, spatial...], bias [C]. Bodies: the epilogue (perhaps without stages), then the
/// parent: one parameter, x, and one result with C channels, of x's element type.
struct ConvolutionDepthwise : Window {
  static constexpr OpInfo info{"ConvolutionDepthwise",
                               2,
                               3,
                               1,
                               Trait::epilogue | Trait::control_flow,
                               "A convolution with its epilogue, then a depthwise one"};
  template <class V>
  void visit(V& v) {
    v("strides", strides);
    v("dilations", dilations);
    v("pads_begin", pads_begin);
    v("pads_end", pads_end);
    v("auto_pad", auto_pad);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// The nodes that a ConvolutionDepthwise was made of.
struct ApartNodes {
  NodeId parent, depthwise;
};
/// Replaces the node by its parent and a depthwise Convolution, which has the node's name and epilogue.
ApartNodes take_apart(Graph& graph, NodeId node);

/// A graph of its own with the two; what the node reads is constant or an input there.
struct Apart {
  Graph graph;
  ApartNodes nodes;
};
Apart taken_apart(const Graph& graph, NodeId node);

}  // namespace lamina
