#pragma once
/// Machines as JSON: what `lamina version --json` writes under "machine" and `lamina explain --machine`
/// reads.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/machine.h"

namespace lamina {

nlohmann::json to_json(const Machine& machine);

/// Reads the description of another machine. Throws Error that names the file, the field, and what was wanted
/// there. Rates that the file does not say are those of its processor family, or 1.
Machine read_machine_file(const std::string& path);

}  // namespace lamina
