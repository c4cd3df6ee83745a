#include "base/terminal.h"

#include <unistd.h>

namespace lamina {
bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }
}  // namespace lamina
