#pragma once
/// The formats of models that are read.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamina {

enum class ModelFormat : std::uint8_t { onnx, ir, caffe, tensorflow, onednn_graph };

/// "ONNX", "OpenVINO IR", "Caffe", "TensorFlow", "oneDNN Graph".
const std::string& name_of(ModelFormat format);
/// The format of that name.
std::optional<ModelFormat> model_format_named(std::string_view name);

}  // namespace lamina
