/// Element types and tensors on streams.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ostream>

#include "base/guard.h"
#include "base/half.h"
#include "base/small_float.h"
#include "lamina/tensor.h"

namespace lamina {
namespace {

template <class T>
T element(const Tensor& t, std::size_t i) {
  T value;
  std::memcpy(&value, t.raw() + i * sizeof(T), sizeof(T));  // it may lie at any address
  return value;
}

/// The i-th of numbers of less than a byte, low bits first.
int packed(const Tensor& t, std::size_t i, std::size_t bits) {
  const auto byte = static_cast<unsigned>(t.raw()[i * bits / 8]);
  return static_cast<int>(byte >> (i * bits % 8) & ((1u << bits) - 1));
}

float small_float(const Tensor& t, std::size_t i) {
  const auto code = bits_of(t.element_type()) == 8 ? element<std::uint8_t>(t, i)
                                                   : static_cast<std::uint8_t>(packed(t, i, 4));
  return small_float_value(t.element_type(), code);
}

std::string value_text(const Tensor& t, std::size_t i) {
  switch (t.element_type()) {
    case ElementType::f32:
      return fmt::format("{:.6g}", element<float>(t, i));
    case ElementType::f64:
      return fmt::format("{:.6g}", element<double>(t, i));
    case ElementType::f16:
      return fmt::format("{:.6g}", to_float(element<f16_t>(t, i)));
    case ElementType::bf16:
      return fmt::format("{:.6g}", to_float(element<bf16_t>(t, i)));
    case ElementType::i64:
      return fmt::format("{}", element<std::int64_t>(t, i));
    case ElementType::i32:
      return fmt::format("{}", element<std::int32_t>(t, i));
    case ElementType::i16:
      return fmt::format("{}", element<std::int16_t>(t, i));
    case ElementType::i8:
      return fmt::format("{}", int{element<std::int8_t>(t, i)});
    case ElementType::u64:
      return fmt::format("{}", element<std::uint64_t>(t, i));
    case ElementType::u32:
      return fmt::format("{}", element<std::uint32_t>(t, i));
    case ElementType::u16:
      return fmt::format("{}", element<std::uint16_t>(t, i));
    case ElementType::u8:
      return fmt::format("{}", unsigned{element<std::uint8_t>(t, i)});
    case ElementType::boolean:
      return element<std::uint8_t>(t, i) != 0 ? "true" : "false";
    case ElementType::u1:
      return fmt::format("{}", packed(t, i, 1));
    case ElementType::u4:
      return fmt::format("{}", packed(t, i, 4));
    case ElementType::i4:
      return fmt::format("{}", (packed(t, i, 4) ^ 8) - 8);
    case ElementType::u2:
      return fmt::format("{}", packed(t, i, 2));
    case ElementType::i2:
      return fmt::format("{}", (packed(t, i, 2) ^ 2) - 2);
    case ElementType::f8e4m3:
    case ElementType::f8e4m3fnuz:
    case ElementType::f8e5m2:
    case ElementType::f8e5m2fnuz:
    case ElementType::f8e8m0:
    case ElementType::f4e2m1:
    case ElementType::nf4:
      return fmt::format("{:.6g}", small_float(t, i));
    case ElementType::undefined:
      break;
  }
  return "?";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, ElementType type) {
  return guarded("operator<<", [&]() -> std::ostream& { return out << name_of(type); });
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return guarded("operator<<", [&]() -> std::ostream& {
    if (!tensor.valid()) return out << "no tensor";
    constexpr std::size_t kMost = 8;
    auto text = fmt::format("{}[{}] {{", name_of(tensor.element_type()), fmt::join(tensor.shape(), ","));
    for (std::size_t i = 0; i < std::min(kMost, tensor.size()); ++i)
      text += (i ? ", " : "") + value_text(tensor, i);
    return out << text << (tensor.size() > kMost ? ", ...}" : "}");
  });
}

}  // namespace lamina
