#pragma once
/// Values of inputs that a caller wants to be constants.
#include <string_view>

#include "graph/op.h"

namespace lamina::tensorflow {

/// A tensor of the type from texts: one for all elements, or one for each. Sizes that are not known are 1, of
/// the last one as many as there are texts for. Throws Error(bad_option) naming the input.
Tensor frozen_value(std::string_view name, const Strings& texts, const TensorType& type);

}  // namespace lamina::tensorflow
