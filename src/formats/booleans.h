#pragma once
/// Booleans of files.
#include "lamina/tensor.h"

namespace lamina {

/// Booleans are bytes of 0 or 1 here; files may hold any byte. Other tensors, and good ones, are not copied.
Tensor normalized(Tensor t);

}  // namespace lamina
