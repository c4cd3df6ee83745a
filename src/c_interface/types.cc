#include "c_interface/types.h"

#include <array>

#include "c_interface/call.h"
#include "c_interface/structs.h"

namespace lamina::c_interface {
namespace {

/// The types in the order of their numbers.
constexpr std::array kNumbers{
    ElementType::undefined,  ElementType::boolean, ElementType::f16,        ElementType::bf16,
    ElementType::f32,        ElementType::f64,     ElementType::i8,         ElementType::i16,
    ElementType::i32,        ElementType::i64,     ElementType::u8,         ElementType::u16,
    ElementType::u32,        ElementType::u64,     ElementType::u1,         ElementType::i4,
    ElementType::u4,         ElementType::i2,      ElementType::u2,         ElementType::f8e4m3,
    ElementType::f8e4m3fnuz, ElementType::f8e5m2,  ElementType::f8e5m2fnuz, ElementType::f8e8m0,
    ElementType::f4e2m1,     ElementType::nf4};
static_assert(kNumbers.size() == static_cast<std::size_t>(ElementType::undefined) + 1);
static_assert(kNumbers[LAMINA_C_F32] == ElementType::f32 && kNumbers[LAMINA_C_U64] == ElementType::u64 &&
              kNumbers[LAMINA_C_U1] == ElementType::u1 && kNumbers[LAMINA_C_NF4] == ElementType::nf4);

}  // namespace

std::int32_t number_of(ElementType type) noexcept {
  for (std::size_t i = 0; i < kNumbers.size(); ++i)
    if (kNumbers[i] == type) return static_cast<std::int32_t>(i);
  return LAMINA_C_NO_TYPE;
}

ElementType type_of(std::int32_t number) {
  if (number < 0 || static_cast<std::size_t>(number) >= kNumbers.size())
    fail(ErrorCode::bad_input, "{} is no element type, wanted 0 to {}", number, kNumbers.size() - 1);
  return kNumbers[static_cast<std::size_t>(number)];
}

}  // namespace lamina::c_interface

using namespace lamina;
using namespace lamina::c_interface;

lamina_c_status lamina_c_type_get(int32_t type, lamina_c_type_info* info) {
  return call("lamina_c_type_get", [&] {
    const auto of = type_of(type);
    lamina_c_type_info out{};
    out.name = name_of(of).data();  // of a table: ends with a zero
    out.bits = bits_of(of);
    out.is_float = is_float(of);
    out.is_integer = is_integer(of);
    out.is_signed = is_signed(of);
    give(info, out, "lamina_c_type_info");
  });
}

lamina_c_status lamina_c_type_named(const char* name, int32_t* type) {
  return call("lamina_c_type_named", [&] {
    const auto found = element_type_named(text_argument(name, "the name"));
    argument(type, "where to put the type") = number_of(found.value_or(ElementType::undefined));
  });
}
