#pragma once
/// Small TensorFlow graphs written by tests, message by message.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing::tf {

/// An attribute: its name and the bytes of an AttrValue.
using Attr = std::pair<std::string, std::string>;
Attr integer(std::string_view name, std::int64_t value);
Attr number(std::string_view name, float value);
Attr flag(std::string_view name, bool value);
Attr word(std::string_view name, std::string_view value);
Attr type(std::string_view name, std::int64_t number);  ///< 1 f32, 3 i32, 10 boolean, ...
Attr list(std::string_view name, const std::vector<std::int64_t>& values);
Attr shape(std::string_view name, const std::vector<std::int64_t>& sizes);
Attr function(std::string_view name, std::string_view of);
/// Bytes of a TensorProto as they are.
Attr tensor(std::string_view name, std::string_view bytes);

/// Bytes of a TensorProto: with its data, or a shape and values of a typed field.
std::string tensor_proto(const Tensor& tensor);
std::string repeated_float(const std::vector<std::int64_t>& sizes, const std::vector<float>& values);

/// Bytes of a NodeDef.
std::string node(std::string_view op, std::string_view name, const Texts& inputs = {},
                 const std::vector<Attr>& attributes = {});

class TensorflowGraph {
 public:
  TensorflowGraph& node(std::string_view op, std::string_view name, const Texts& inputs = {},
                        const std::vector<Attr>& attributes = {});
  TensorflowGraph& input(std::string_view name, const std::vector<std::int64_t>& sizes,
                         std::int64_t type = 1);
  TensorflowGraph& constant(std::string_view name, const Tensor& value);
  /// A function of the library; `results` are pairs of output and "node:argument:index".
  TensorflowGraph& function(std::string_view name, const Texts& inputs, const Texts& nodes,
                            const std::vector<std::pair<std::string, std::string>>& results);
  std::string bytes(int producer = 1087) const;

 private:
  std::string nodes_, functions_;
};

Loaded read_bytes(std::string_view bytes, const ReadSettings& settings = {}, const char* name = "m.pb");
/// Reads and interprets.
std::vector<Tensor> run(const TensorflowGraph& graph, const std::vector<Tensor>& inputs);
/// What reading throws, without the path; "" when it does not throw.
std::string refusal(std::string_view bytes, const ReadSettings& settings = {}, const char* name = "m.pb");

}  // namespace lamina::testing::tf
