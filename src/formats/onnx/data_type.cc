/// TensorProto.DataType and our element types.
#include <array>

#include "formats/onnx/proto.h"

namespace lamina::onnx {
namespace {

constexpr std::array<std::string_view, 29> kTypeNames{
    "undefined",      "float",      "uint8",          "int8",       "uint16",    "int16",
    "int32",          "int64",      "string",         "bool",       "float16",   "double",
    "uint32",         "uint64",     "complex64",      "complex128", "bfloat16",  "float8e4m3fn",
    "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",      "float4e2m1",
    "float8e8m0",     "uint2",      "int2",           "float6e2m3", "float6e3m2"};

}  // namespace

ElementType element_type_of_onnx(std::int64_t data_type) {
  switch (static_cast<DataType>(data_type)) {
    case DataType::float32:
      return ElementType::f32;
    case DataType::uint8:
      return ElementType::u8;
    case DataType::int8:
      return ElementType::i8;
    case DataType::uint16:
      return ElementType::u16;
    case DataType::int16:
      return ElementType::i16;
    case DataType::int32:
      return ElementType::i32;
    case DataType::int64:
      return ElementType::i64;
    case DataType::boolean:
      return ElementType::boolean;
    case DataType::float16:
      return ElementType::f16;
    case DataType::float64:
      return ElementType::f64;
    case DataType::uint32:
      return ElementType::u32;
    case DataType::uint64:
      return ElementType::u64;
    case DataType::bfloat16:
      return ElementType::bf16;
    case DataType::uint4:
      return ElementType::u4;
    case DataType::int4:
      return ElementType::i4;
    default:
      return ElementType::undefined;
  }
}

std::string name_of_onnx_type(std::int64_t data_type) {
  if (data_type < 0 || data_type >= static_cast<std::int64_t>(kTypeNames.size()))
    return std::to_string(data_type);
  return std::string(kTypeNames[static_cast<std::size_t>(data_type)]);
}

}  // namespace lamina::onnx
