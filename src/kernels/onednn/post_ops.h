#pragma once
/// Epilogues as post-ops of oneDNN's primitives.
#include "kernels/onednn/onednn.h"

namespace lamina::onednn {

struct PostOps {
  dnnl::primitive_attr attr;                    ///< with the user's scratchpad
  std::size_t stages = 0;                       ///< taken from the front
  ElementType result = ElementType::f32;        ///< type that the last stage makes
  Cost cost;                                    ///< of these
  std::string refusal;                          ///< why it stopped there, empty when all were taken
  std::vector<Arg> args;                        ///< operands, scales
  std::vector<float> bias;                      ///< of integer sums, per channel; none: empty
  bool operands = false;                        ///< some stage has one that oneDNN reads from memory
  bool whole_constant = false;                  ///< an operand is a constant of the result's shape
  std::vector<std::size_t> same_layout_inputs;  ///< inputs of the node that must lie as the result does
};
/// Result of the compute node: dims `out`, lying in `layout`; channels on `channel_axis`, which are the
/// weights' axes of `weights_mask`. What the epilogue of integer sums begins with becomes scales and a bias.
PostOps post_ops(const NodeView& view, const Dims& out, Layout layout, std::size_t channel_axis,
                 int weights_mask);

}  // namespace lamina::onednn
