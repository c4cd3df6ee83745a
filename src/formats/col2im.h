#pragma once
/// Col2Im: blocks as columns, added up where they overlap. As operators: a Reshape to the grid of the blocks
/// and a transposed convolution of each channel by itself.
#include <string>

#include "ops/convolution.h"

namespace lamina {

struct Col2Im {
  Ints image, block, strides, dilations, pads_begin, pads_end;  ///< by spatial axis

  /// Why the columns [N, channels * block, blocks] do not fit this, in one line; "" when they do.
  std::string fault(const TensorType& columns) const;
  /// Why they fit, but are no operators of ours; "" when they are. After fault().
  std::string beyond(const TensorType& columns) const;

  // Call these only when fault() and beyond() are empty.
  ConvolutionBackpropData convolution(std::int64_t channels) const;
  /// One kernel for each place of a block, which is 1 there: [channels * block, 1, block...].
  Tensor kernels(std::int64_t channels, ElementType type) const;
  Ints grid() const;                ///< how many blocks along each axis
  std::int64_t block_size() const;  ///< product of `block`
};

}  // namespace lamina
