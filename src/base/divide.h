#pragma once
/// How work is divided.
#include <concepts>
#include <type_traits>

namespace lamina {

/// How many parts of that size there are, the last one perhaps smaller; for a >= 0, b > 0.
template <std::integral A, std::integral B>
requires(std::is_signed_v<A> == std::is_signed_v<B>) constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

}  // namespace lamina
