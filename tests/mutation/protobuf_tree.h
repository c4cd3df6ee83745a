#pragma once
/// Messages of protobuf as trees. Fields that no schema here names stay bytes.
#include "tests/mutation/tree.h"

namespace lamina::testing {

Tree onnx_tree(std::string_view bytes);
Tree tensorflow_tree(std::string_view bytes);
Tree caffemodel_tree(std::string_view bytes);
std::string protobuf_bytes(const Tree& tree);

/// One tensor of ONNX, TensorFlow or Caffe (a BlobProto) by its message's name.
void repair_tensor(Tree& tensor, std::string_view message);

}  // namespace lamina::testing
