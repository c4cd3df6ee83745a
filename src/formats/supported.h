#pragma once
/// What the readers know, for `lamina ops`.
#include <string>
#include <vector>

namespace lamina {

/// ONNX operators, sorted; those of other domains as "com.microsoft:QGemm".
std::vector<std::string> supported_onnx();
/// Caffe's layer types, sorted.
std::vector<std::string> supported_caffe();
/// A layer type of OpenVINO IR 10 and 11, and the first operation set that has it.
struct SupportedLayer {
  std::string type;
  int opset = 1;
};
/// Sorted by type. Each is also read in all later sets, up to newest_ir_opset().
std::vector<SupportedLayer> supported_ir();
int newest_ir_opset();
/// Layer types of IR 2 to 7, sorted. Layers that are called as those of IR 10, with the same attributes, are
/// read there, too.
std::vector<std::string> supported_legacy_ir();
/// Operators of TensorFlow graphs, sorted.
std::vector<std::string> supported_tensorflow();
/// Operations of oneDNN Graph, sorted.
std::vector<std::string> supported_onednn_graph();

}  // namespace lamina
