#pragma once

namespace lamina {

/// Inference looks so many nodes up from a value for the sizes that it is computed from (shape_value.h):
/// longer chains are not followed, and what is further away than that from a value that changes need not be
/// inferred anew.
inline constexpr int kFollowedSizes = 64;

}  // namespace lamina
