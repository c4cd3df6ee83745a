#pragma once
/// Reading a model of whatever format.
#include "formats/loaded.h"

namespace lamina {

/// Reads ONNX, OpenVINO IR, Caffe, TensorFlow or oneDNN Graph, told apart by content (file_format.h). Throws
/// Error(bad_file) naming the path. Only ONNX and TensorFlow have settable inputs.
Loaded read(const ModelSource& source, const ReadSettings& settings = {});

/// Reads a file, with the files beside it.
Loaded read_file(const std::string& path);
Loaded read_onnx(const std::string& path);
Loaded read_ir(const std::string& xml_path);

/// read_file() for the graph alone.
Graph read_model(const std::string& path);

}  // namespace lamina
