#pragma once
/// What lies in a folder.
#include <string>
#include <system_error>
#include <vector>

#include "base/command_api.h"

namespace lamina {

/// Names of all entries but . and .. in any order; `error` says why there are none. (libstdc++'s
/// directory_iterator ends the process where it has no memory for a name.)
LAMINA_COMMAND_API std::vector<std::string> names_in(const std::string& folder, std::error_code& error);

}  // namespace lamina
