#pragma once
/// Reading a model of whatever format.
#include "formats/loaded.h"

namespace lamina {

/// Reads ONNX or OpenVINO IR, told apart by content: XML starts with '<'. Throws Error(bad_file) naming the
/// path.
Loaded read_file(const std::string& path);

/// As read_file, the graph alone.
Graph read_model(const std::string& path);

}  // namespace lamina
