#pragma once
/// The messages of onnx.proto as plain structs. Text and tensor data are views into the file, nothing is
/// copied.
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/op.h"

namespace lamina::onnx {

using Names = std::vector<std::string_view>;

/// TensorProto.DataType
enum class DataType : std::int32_t {
  undefined,
  float32,
  uint8,
  int8,
  uint16,
  int16,
  int32,
  int64,
  string,
  boolean,
  float16,
  float64,
  uint32,
  uint64,
  complex64,
  complex128,
  bfloat16,
  float8e4m3fn,
  float8e4m3fnuz,
  float8e5m2,
  float8e5m2fnuz,
  uint4,
  int4,
  float4e2m1,
  float8e8m0,
  uint2,
  int2,
  float6e2m3,
  float6e3m2,
};
/// Ours, or undefined when there is none (strings, complex numbers, f8, ...).
ElementType element_type_of_onnx(std::int64_t data_type);
/// ONNX's type of an element type; undefined for those that ONNX does not have.
DataType onnx_type_of(ElementType type);
/// "string", "float8e5m2", or "17".
std::string name_of_onnx_type(std::int64_t data_type);

struct TensorProto {
  std::string_view name;
  Ints dims;
  std::int64_t data_type = 0;
  std::string_view message;  ///< the whole message, for the typed data fields
  std::optional<std::string_view> raw_data;
  bool external = false;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
};

struct SparseTensorProto {
  TensorProto values, indices;
  Ints dims;
};

struct GraphProto;

struct AttributeProto {
  enum Type {
    undefined,
    float_,
    int_,
    string,
    tensor,
    graph,
    floats_,
    ints_,
    strings_,
    tensors,
    graphs,
    sparse = 11
  };
  std::string_view name;
  std::string_view reference;  ///< name of the function's attribute that gives the value
  int type = undefined;
  float f = 0;
  std::int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  Ints ints;
  Names strings;
  std::shared_ptr<const TensorProto> t;
  std::shared_ptr<const SparseTensorProto> sparse_tensor;
  std::shared_ptr<const GraphProto> g;
};

struct NodeProto {
  Names inputs, outputs;
  std::string_view name, op_type, domain, overload;
  std::vector<AttributeProto> attributes;
};

/// Type of a graph's input or output.
struct ValueInfoProto {
  std::string_view name;
  std::int64_t data_type = 0;
  std::string_view kind;  ///< "tensor", "sequence", ...; empty when not given
  Shape shape;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfoProto> inputs, outputs;
};

struct OpsetId {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  Names inputs, outputs;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::vector<OpsetId> opsets;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
};

/// Throws Error(bad_file) without the path: "damaged: ...".
ModelProto parse_model(std::string_view bytes);
/// Parses one message. Throws Error(bad_file), protozero::exception.
TensorProto parse_tensor(std::string_view bytes);
ValueInfoProto parse_value_info(std::string_view bytes);

}  // namespace lamina::onnx
