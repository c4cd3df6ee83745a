#pragma once
/// Tensors of ONNX files as constants: shared with the file where their encoding allows it.
#include <map>
#include <memory>
#include <string>

#include "formats/onnx/proto.h"
#include "formats/source.h"

namespace lamina::onnx {

/// Knows where the data of a model's tensors is: in the file itself and in others.
class TensorReader {
 public:
  explicit TensorReader(const ModelSource& source) : source_(source) {}

  /// Throws Error(bad_file): "tensor \"w\": ..."; Error(unsupported) for element types that lamina does not
  /// have.
  Tensor read(const TensorProto& t);
  /// A sparse tensor made dense.
  Tensor read(const SparseTensorProto& t);

 private:
  Tensor read_external(const TensorProto& t, ElementType type, std::size_t bytes);
  std::shared_ptr<const MappedFile> external_file(const std::string& location);

  const ModelSource& source_;
  std::map<std::string, std::shared_ptr<const MappedFile>> external_;
};

}  // namespace lamina::onnx
