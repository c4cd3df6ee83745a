#include "formats/ir/write/text_out.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/numbers.h"

namespace lamina::ir {
namespace {

template <class T, class F>
std::string joined(const std::vector<T>& list, F&& text) {
  std::string out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i != 0) out += ',';
    out += text(list[i]);
  }
  return out;
}

std::string dim_text(const Dim& dim) {
  if (dim.known()) return std::to_string(dim.size());
  const bool low = dim.low() > 0, high = dim.high() != Dim::kUnbounded;
  if (!low && !high) return "?";
  return fmt::format("{}..{}", low ? std::to_string(dim.low()) : "", high ? std::to_string(dim.high()) : "");
}

struct AsText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return shortest(v); }
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(const Ints& v) const { return joined(v, *this); }
  std::string operator()(const Floats& v) const { return joined(v, *this); }
  std::string operator()(const Strings& v) const { return joined(v, *this); }
  std::string operator()(ElementType v) const { return element_type_text(v); }
  std::string operator()(const Shape& v) const { return shape_text(v); }
  std::string operator()(const Tensor&) const {
    fail(ErrorCode::unsupported, "IR has no attributes that are tensors");
  }
};

}  // namespace

std::string_view precision_text(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "FP32";
    case ElementType::f16:
      return "FP16";
    case ElementType::bf16:
      return "BF16";
    case ElementType::f64:
      return "FP64";
    case ElementType::i64:
      return "I64";
    case ElementType::i32:
      return "I32";
    case ElementType::i16:
      return "I16";
    case ElementType::i8:
      return "I8";
    case ElementType::u64:
      return "U64";
    case ElementType::u32:
      return "U32";
    case ElementType::u16:
      return "U16";
    case ElementType::u8:
      return "U8";
    case ElementType::boolean:
      return "BOOL";
    case ElementType::u1:
      return "BIN";
    case ElementType::i4:
      return "I4";
    case ElementType::u4:
      return "U4";
    case ElementType::i2:
      return "I2";
    case ElementType::u2:
      return "U2";
    case ElementType::f8e4m3:
      return "F8E4M3";
    case ElementType::f8e5m2:
      return "F8E5M2";
    case ElementType::f8e8m0:
      return "F8E8M0";
    case ElementType::f4e2m1:
      return "F4E2M1";
    case ElementType::nf4:
      return "NF4";
    case ElementType::f8e4m3fnuz:
    case ElementType::f8e5m2fnuz:
    case ElementType::undefined:
      return "UNSPECIFIED";
  }
  return "UNSPECIFIED";
}

std::string element_type_text(ElementType type) {
  if (type == ElementType::i2 || type == ElementType::f8e4m3fnuz || type == ElementType::f8e5m2fnuz)
    fail(ErrorCode::unsupported, "element type {} is not one of OpenVINO's", name_of(type));
  return type == ElementType::undefined ? "dynamic" : std::string(name_of(type));
}

std::string shape_text(const Shape& shape) { return shape.ranked() ? joined(shape.dims(), dim_text) : "..."; }

std::string dims_text(const Dims& dims) { return joined(dims, AsText{}); }

std::string names_text(const Strings& names) {
  return joined(names, [](const std::string& name) {
    std::string out;
    for (const char c : name) out += c == ',' ? std::string("\\,") : std::string(1, c);
    return out;
  });
}

std::string attribute_text(const Attribute& value) { return std::visit(AsText{}, value); }

}  // namespace lamina::ir
