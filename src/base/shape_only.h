#pragma once
/// Tensors that stand for a type and a shape.
#include "lamina/tensor.h"

namespace lamina {

/// A tensor without data, null whatever its size: where only type and shape are looked at.
Tensor shape_only(ElementType type, Dims shape);

}  // namespace lamina
