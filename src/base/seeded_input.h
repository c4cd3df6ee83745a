#pragma once
/// Values for inputs of models that nobody gives.
#include "base/command_api.h"
#include "base/random.h"

namespace lamina {

/// seeded_tensor(), but quantised numbers and pixels have their type's whole range. Wider integers are small:
/// most are indices.
LAMINA_COMMAND_API Tensor seeded_input(ElementType type, Dims shape, std::uint64_t seed);

}  // namespace lamina
