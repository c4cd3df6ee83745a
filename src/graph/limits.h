#pragma once
/// The limits of base/limits.h on shapes of which not all is known.
#include <string>

#include "graph/shape.h"

namespace lamina {

/// What is too large in a shape ("has shape [0,1099511627776,2], wanted at most 2^40 elements beside
/// zeros"); empty when nothing is. Unknown dimensions count with their lower bounds.
std::string beyond_limits(const Shape& shape);

}  // namespace lamina
