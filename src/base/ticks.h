#pragma once
/// Ticks that are read in few nanoseconds.
#include <cstdint>

namespace lamina {

/// The processor's own counter where it runs at one speed, a clock otherwise: how long a tick is, only a
/// clock beside it tells.
std::uint64_t ticks() noexcept;

}  // namespace lamina
