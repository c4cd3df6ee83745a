#pragma once
/// Memory of the process, as the operating system counts it.
#include "base/command_api.h"

namespace lamina {

/// Resident memory of the process in MiB: now, and at most so far; 0 where it cannot be read.
LAMINA_COMMAND_API double resident_mb();
LAMINA_COMMAND_API double peak_resident_mb();

}  // namespace lamina
