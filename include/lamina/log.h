#pragma once
/// Messages of the library. It never prints: they go to a callback.
#include <cstdint>
#include <functional>
#include <string_view>

namespace lamina {

enum class LogLevel : std::uint8_t { error, warning, info, debug };

/// Gets one line without a line end. May be called from several threads at the same time; must not throw. It
/// may use models, but a call that would wait for the call that logs throws Error(busy).
using LogCallback = std::function<void(LogLevel, std::string_view)>;

}  // namespace lamina
