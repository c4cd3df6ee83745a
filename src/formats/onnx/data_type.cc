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

constexpr std::pair<DataType, ElementType> kElementTypes[] = {
    {DataType::float32, ElementType::f32},
    {DataType::uint8, ElementType::u8},
    {DataType::int8, ElementType::i8},
    {DataType::uint16, ElementType::u16},
    {DataType::int16, ElementType::i16},
    {DataType::int32, ElementType::i32},
    {DataType::int64, ElementType::i64},
    {DataType::boolean, ElementType::boolean},
    {DataType::float16, ElementType::f16},
    {DataType::float64, ElementType::f64},
    {DataType::uint32, ElementType::u32},
    {DataType::uint64, ElementType::u64},
    {DataType::bfloat16, ElementType::bf16},
    {DataType::uint4, ElementType::u4},
    {DataType::int4, ElementType::i4},
    {DataType::uint2, ElementType::u2},
    {DataType::int2, ElementType::i2},
    {DataType::float8e4m3fn, ElementType::f8e4m3},
    {DataType::float8e4m3fnuz, ElementType::f8e4m3fnuz},
    {DataType::float8e5m2, ElementType::f8e5m2},
    {DataType::float8e5m2fnuz, ElementType::f8e5m2fnuz},
    {DataType::float8e8m0, ElementType::f8e8m0},
    {DataType::float4e2m1, ElementType::f4e2m1}};

}  // namespace

ElementType element_type_of_onnx(std::int64_t data_type) {
  for (const auto& [onnx, ours] : kElementTypes)
    if (static_cast<std::int64_t>(onnx) == data_type) return ours;
  return ElementType::undefined;
}

DataType onnx_type_of(ElementType type) {
  for (const auto& [onnx, ours] : kElementTypes)
    if (ours == type) return onnx;
  return DataType::undefined;
}

std::string name_of_onnx_type(std::int64_t data_type) {
  if (data_type < 0 || data_type >= static_cast<std::int64_t>(kTypeNames.size()))
    return std::to_string(data_type);
  return std::string(kTypeNames[static_cast<std::size_t>(data_type)]);
}

}  // namespace lamina::onnx
