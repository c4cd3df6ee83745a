#pragma once
/// Small ONNX files written by tests, message by message.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "lamina/tensor.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {

/// Bytes of an AttributeProto.
std::string attribute(std::string_view name, std::int64_t value);
std::string attribute(std::string_view name, int value);
std::string attribute(std::string_view name, float value);
std::string attribute(std::string_view name, std::string_view text);
std::string attribute(std::string_view name, const char* text);
std::string attribute(std::string_view name, const std::vector<std::int64_t>& values);
std::string attribute(std::string_view name, const std::vector<float>& values);
std::string attribute(std::string_view name, const std::vector<std::string>& texts);
std::string attribute(std::string_view name, const Tensor& tensor);
std::string graph_attribute(std::string_view name, std::string_view graph);
std::string reference_attribute(std::string_view name, std::string_view of);

using Texts = std::vector<std::string>;

/// Bytes of a NodeProto.
std::string node(std::string_view type, const Texts& inputs, const Texts& outputs,
                 const Texts& attributes = {}, std::string_view name = {}, std::string_view domain = {});
/// Bytes of a TensorProto with raw data.
std::string tensor_proto(const Tensor& tensor, std::string_view name);
/// TensorProto.DataType of an element type.
int onnx_type(ElementType type);

/// A GraphProto that grows.
class OnnxGraph {
 public:
  /// A dimension is a number, a name, or "?"; no list at all is an unknown rank.
  OnnxGraph& input(std::string_view name, ElementType type, const Texts& dims);
  OnnxGraph& input_without_shape(std::string_view name, ElementType type);
  OnnxGraph& output(std::string_view name);
  OnnxGraph& initializer(std::string_view name, const Tensor& tensor);
  OnnxGraph& raw_initializer(std::string_view tensor_proto);
  OnnxGraph& sparse_initializer(std::string_view bytes);
  OnnxGraph& node(std::string_view type, const Texts& inputs, const Texts& outputs,
                  const Texts& attributes = {}, std::string_view name = {}, std::string_view domain = {});
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Bytes of a FunctionProto in the domain "local".
std::string function(std::string_view name, const Texts& inputs, const Texts& outputs, const Texts& nodes,
                     const Texts& defaults = {});
/// Bytes of a ModelProto.
std::string onnx_model(const OnnxGraph& graph, int opset = 13, const Texts& functions = {},
                       int ir_version = 8);

Loaded read_onnx_bytes(std::string_view bytes);
/// Reads and interprets.
std::vector<Tensor> run_onnx(const OnnxGraph& graph, const std::vector<Tensor>& inputs, int opset = 13);
/// What reading throws, without the path; "" when it does not throw.
std::string onnx_refusal(std::string_view bytes);

/// One node whose inputs are the graph's: "" leaves one out. Returns the first output.
Tensor run_node(std::string_view type, const std::vector<Tensor>& inputs, const Texts& attributes = {},
                int opset = 13, std::string_view domain = {});

}  // namespace lamina::testing
