/// Loops for all types and operators that have no vector code: a function per element; see loops.h.
#include <type_traits>

#include "base/convert_number.h"
#include "base/error.h"
#include "base/half.h"
#include "kernels/native/stages/loops.h"

namespace lamina::stages {
namespace {

/// Calls f.template operator()<T>(); boolean is bool.
template <class F>
Loop with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::f32:
      return f.template operator()<float>();
    case ElementType::f64:
      return f.template operator()<double>();
    case ElementType::i64:
      return f.template operator()<std::int64_t>();
    case ElementType::i32:
      return f.template operator()<std::int32_t>();
    case ElementType::i16:
      return f.template operator()<std::int16_t>();
    case ElementType::i8:
      return f.template operator()<std::int8_t>();
    case ElementType::u64:
      return f.template operator()<std::uint64_t>();
    case ElementType::u32:
      return f.template operator()<std::uint32_t>();
    case ElementType::u16:
      return f.template operator()<std::uint16_t>();
    case ElementType::u8:
      return f.template operator()<std::uint8_t>();
    case ElementType::boolean:
      return f.template operator()<bool>();
    default:
      return nullptr;
  }
}

template <class To, class From>
void convert(const LoopArgs& a) {
  // Booleans are read as bytes: other values than 0 and 1 are true.
  using Memory = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;
  const auto* x = static_cast<const Memory*>(a.in[0]);
  auto* out = static_cast<To*>(a.out);
  const auto count = a.count;  // which bytes that are written might be
  for (std::int64_t i = 0; i < count; ++i)
    if constexpr (std::is_same_v<From, bool>)
      out[i] = static_cast<To>(x[i] != 0);
    else
      out[i] = convert_number<To>(x[i]);
}

/// Operand k at element i, as a function's parameter.
template <class P, class T>
P operand(const LoopArgs& a, int k, std::int64_t i) {
  const auto* p = static_cast<const T*>(a.in[k]);
  return static_cast<P>(p[(a.vectors >> k & 1) != 0 ? i : 0]);
}

template <class P, class T>
void map_one(const LoopArgs& a) {
  const auto f = reinterpret_cast<P (*)(P)>(const_cast<void*>(a.function));
  auto* out = static_cast<T*>(a.out);
  for (std::int64_t i = 0; i < a.count; ++i) out[i] = static_cast<T>(f(operand<P, T>(a, 0, i)));
}
template <class P, class T>
void map_two(const LoopArgs& a) {
  const auto f = reinterpret_cast<P (*)(P, P)>(const_cast<void*>(a.function));
  auto* out = static_cast<T*>(a.out);
  for (std::int64_t i = 0; i < a.count; ++i)
    out[i] = static_cast<T>(f(operand<P, T>(a, 0, i), operand<P, T>(a, 1, i)));
}
template <class P, class T>
void map_three(const LoopArgs& a) {
  const auto f = reinterpret_cast<P (*)(P, P, P)>(const_cast<void*>(a.function));
  auto* out = static_cast<T*>(a.out);
  for (std::int64_t i = 0; i < a.count; ++i)
    out[i] = static_cast<T>(f(operand<P, T>(a, 0, i), operand<P, T>(a, 1, i), operand<P, T>(a, 2, i)));
}

template <class P, class T>
Loop map_of(int operands) {
  return operands == 1 ? map_one<P, T> : operands == 2 ? map_two<P, T> : map_three<P, T>;
}

void compare_f64(const LoopArgs& a) {
  const auto f = reinterpret_cast<double (*)(double, double)>(const_cast<void*>(a.function));
  auto* out = static_cast<std::uint8_t*>(a.out);
  for (std::int64_t i = 0; i < a.count; ++i)
    out[i] = f(operand<double, double>(a, 0, i), operand<double, double>(a, 1, i)) != 0;
}

}  // namespace

Loop convert_loop(ElementType from, ElementType to) {
  if (from == to) return nullptr;
  const auto& fast = convert_loops();
  if (from == ElementType::f32)
    if (const auto loop = fast.f32_to[static_cast<int>(to)]) return loop;
  if (to == ElementType::f32)
    if (const auto loop = fast.to_f32[static_cast<int>(from)]) return loop;
  const auto loop = with_type(from, [&]<class From>() -> Loop {
    return with_type(to, [&]<class To>() -> Loop { return convert<To, From>; });
  });
  LAMINA_CHECK(loop, "no conversion from {} to {}", name_of(from), name_of(to));
  return loop;
}

Loop real_map(ElementType type, int operands) {
  return type == ElementType::f64 ? map_of<double, double>(operands) : map_of<double, float>(operands);
}

Loop integer_map(ElementType type, int operands) {
  return with_type(type, [&]<class T>() -> Loop {
    using Memory = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    if constexpr (std::is_floating_point_v<T>)
      return nullptr;
    else
      return map_of<std::conditional_t<std::is_same_v<T, std::uint64_t>, std::uint64_t, std::int64_t>,
                    Memory>(operands);
  });
}

Loop real_compare() { return compare_f64; }

}  // namespace lamina::stages
