#pragma once
/// What the readers know, for `lamina ops`.
#include <string>
#include <vector>

namespace lamina {

/// ONNX operators, sorted; those of other domains as "com.microsoft:QGemm".
std::vector<std::string> supported_onnx();
/// Layer types of OpenVINO IR 10 and 11, sorted.
std::vector<std::string> supported_ir();

}  // namespace lamina
