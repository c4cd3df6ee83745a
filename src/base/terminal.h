#pragma once
#include "base/command_api.h"

namespace lamina {
/// True when the file descriptor (1: standard output, 2: standard error) is a terminal.
LAMINA_COMMAND_API bool is_terminal(int descriptor);
}  // namespace lamina
