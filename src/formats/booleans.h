#pragma once
/// Booleans of files.
#include <cstddef>
#include <span>

#include "lamina/tensor.h"

namespace lamina {

/// Whether each byte is 0 or 1.
bool are_proper_booleans(std::span<const std::byte> bytes);

/// Booleans are bytes of 0 or 1 here; files may hold any byte. Other tensors, and good ones, are not copied.
Tensor normalized(Tensor t);

}  // namespace lamina
