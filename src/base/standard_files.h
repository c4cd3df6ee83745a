#pragma once
/// Standard input, output and error of a process.
#include "base/command_api.h"

namespace lamina {

/// Files that are opened later must not become standard output or standard error where these are closed:
/// /dev/null takes their places. What is written to standard output fails as before. For the start of a
/// program.
LAMINA_COMMAND_API void occupy_standard_files();

}  // namespace lamina
