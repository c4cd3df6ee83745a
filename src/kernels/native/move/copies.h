#pragma once
/// Nodes that move elements, as strided copies.
#include "kernels/native/move/strided.h"

namespace lamina {

/// What a node comes down to: copies, and for Pad a value that fills the border.
struct Moves {
  std::vector<CopyJob> jobs;
  Tensor fill;
  std::vector<CopyJob> border;  ///< copies of `fill`
};

/// The node, of which is_movement() holds, with input 0 (or all inputs) and outputs in `layout`.
Verdict copies_of(const NodeView& v, Layout layout, Moves& moves);

}  // namespace lamina
