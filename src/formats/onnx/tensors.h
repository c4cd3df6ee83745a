#pragma once
/// Tensors of ONNX files as constants: shared with the mapped file where their encoding allows it.
#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "formats/onnx/proto.h"

namespace lamina::onnx {

/// Knows where the data of a model's tensors is: in the file itself and in files beside it.
class TensorReader {
 public:
  explicit TensorReader(std::shared_ptr<const MappedFile> model) : model_(std::move(model)) {}

  /// Throws Error(bad_file): "tensor \"w\": ..."; Error(unsupported) for element types that lamina does not
  /// have.
  Tensor read(const TensorProto& t);
  /// A sparse tensor made dense.
  Tensor read(const SparseTensorProto& t);

 private:
  Tensor read_external(const TensorProto& t, ElementType type, std::size_t bytes);
  std::shared_ptr<const MappedFile> external_file(const std::string& location);

  std::shared_ptr<const MappedFile> model_;
  std::map<std::string, std::shared_ptr<const MappedFile>> external_;
};

}  // namespace lamina::onnx
