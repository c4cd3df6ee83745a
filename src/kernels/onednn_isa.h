#pragma once
/// The instruction set of oneDNN, which is the process's: others may have used or limited the same library
/// before.
#include <string>

#include "base/cpu.h"

namespace lamina {

/// What oneDNN runs. The first call limits it to effective_isa(), where that is still possible.
Isa onednn_isa();

/// For limit_isa(): limits oneDNN. Throws Error(bad_option) when it runs more, and nothing can change that.
void limit_onednn(Isa isa);

/// One line for the log when oneDNN runs something else than effective_isa(), else empty.
std::string onednn_isa_note();

}  // namespace lamina
