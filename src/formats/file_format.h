#pragma once
/// What a file is, by its content; where that leaves a choice, by the ending of its name.
#include <cstdint>

#include "base/mapped_file.h"

namespace lamina {

enum class FileFormat : std::uint8_t {
  ir,             ///< the .xml of OpenVINO
  onnx,           ///< also any file that is no other format
  caffe_text,     ///< net.prototxt
  caffe_weights,  ///< net.caffemodel
  tensorflow,     ///< graph.pb or graph.pbtxt
  onednn_graph,   ///< graph.json
};

FileFormat format_of(const MappedFile& file);

}  // namespace lamina
