#pragma once
/// Constants that repeat themselves.
#include "rules/support.h"

namespace lamina {

/// The tensor with size 1 along each axis whose slices are all equal. Elements have 8 bits or more.
Tensor without_repeats(Tensor tensor);

}  // namespace lamina
