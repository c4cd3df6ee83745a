#pragma once
/// Tensors that stand for a type and a shape.
#include "base/command_api.h"
#include "lamina/tensor.h"

namespace lamina {

/// A tensor without data, null whatever its size: where only type and shape are looked at.
LAMINA_COMMAND_API Tensor shape_only(ElementType type, Dims shape);

}  // namespace lamina
