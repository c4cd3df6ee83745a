#pragma once
/// How work is divided.
#include <cstdint>

namespace lamina {

/// How many parts of that size there are, the last one perhaps smaller; for a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace lamina
