#pragma once
/// A number as another C++ type, as Convert makes it, in the interpreter and in kernels.
#include <cmath>
#include <limits>
#include <type_traits>

namespace lamina {

/// To booleans: whether it is not 0. From floats to integers: towards 0, within the bounds of the type; NaN
/// becomes 0. Between integers: the low bits.
template <class To, class From>
To convert_number(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(v)) return 0;
    if (v <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (v >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace lamina
