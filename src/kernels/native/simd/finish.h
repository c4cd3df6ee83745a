#pragma once
/// What kernels do with a result while it is in registers.
#include <cstdint>

namespace lamina {

/// What happens to a sum before it is stored. NaN passes through all of them.
struct Finish {
  enum class Kind : std::uint8_t { none, clamp, leaky } kind = Kind::none;
  float low = 0, high = 0;  ///< clamp
  float slope = 0;          ///< leaky: x * slope below 0
};

}  // namespace lamina
