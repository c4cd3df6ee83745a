#pragma once
/// OpenVINO IR, versions 10 and 11: the .xml with the network and the .bin with its constants.
#include "formats/loaded.h"

namespace lamina {

/// Reads the .xml; the .bin is asked for only when a constant needs it.
Loaded read_ir(const ModelSource& source);

}  // namespace lamina
