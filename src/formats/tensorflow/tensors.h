#pragma once
/// Tensors of TensorFlow's files as constants: shared with the file where their encoding allows it.
#include <memory>

#include "formats/tensorflow/proto.h"

namespace lamina::tensorflow {

/// A tensor, or one element that stands for all of a shape.
struct ReadTensor {
  Tensor data;  ///< of `shape`, or one element when it is repeated
  Dims shape;
  bool repeated = false;
};

/// `owner` keeps the memory that the message lies in. `budget`: elements that may still be made by repeating
/// the last one; few numbers for more than that stay repeated when it is one, and are refused when they are
/// more. Throws Error(bad_file); Error(unsupported) for element types that lamina does not have.
ReadTensor read_tensor(const TensorProto& t, const std::shared_ptr<const void>& owner, std::int64_t& budget);

}  // namespace lamina::tensorflow
