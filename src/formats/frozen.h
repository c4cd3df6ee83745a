#pragma once
/// Values of inputs that a caller wants to be constants.
#include <string_view>

#include "graph/op.h"

namespace lamina {

/// "1.5", "True", "[1 2 3]", "(1,2,3)" as a tensor of that type: as many numbers as it has elements. Of sizes
/// that are not known the last one has what is left. Throws ReadError(bad_option) naming the input.
Tensor frozen_value(std::string_view name, std::string_view text, const TensorType& type);

}  // namespace lamina
