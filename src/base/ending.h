#pragma once
/// The end of the process in a signal handler: nothing here allocates or takes a lock.
#include <chrono>
#include <string_view>

#include "base/command_api.h"

namespace lamina {

/// Removes files that are being written under names for the time being, writes the line to standard error in
/// the place of what stands there without a line end (`over`), and ends the process without exit handlers.
[[noreturn]] LAMINA_COMMAND_API void end_process_now(std::string_view line, bool over, int status) noexcept;

/// SIGALRM comes once after that time; 0: not at all any more.
LAMINA_COMMAND_API void signal_after(std::chrono::milliseconds time) noexcept;

}  // namespace lamina
