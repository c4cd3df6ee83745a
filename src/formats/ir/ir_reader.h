#pragma once
/// OpenVINO IR, versions 10 and 11: the .xml with the network and the .bin with its constants.
#include "formats/loaded.h"

namespace lamina {

/// Reads path (.xml); the .bin is looked for beside it under the same name, and only when a constant needs
/// it.
Loaded read_ir(const std::string& xml_path);

}  // namespace lamina
