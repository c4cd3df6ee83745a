#pragma once
/// Constants that repeat themselves.
#include "rules/support.h"

namespace lamina {

/// Of size 1 along each axis where all slices are alike. Elements of 8 bits and more.
Tensor without_repeats(Tensor tensor);

}  // namespace lamina
