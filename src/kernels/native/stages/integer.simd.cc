/// Integer loops: plain loops that the compiler turns into vector code for each instruction set; see loops.h.
#include "kernels/native/simd/per_isa.h"
#include "kernels/native/stages/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/integer.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using stages::Compare;
using stages::Integer;
using stages::IntegerLoops;
using stages::Loop;
using stages::LoopArgs;

// In place the same element is read and written: no iteration depends on another one.
#if defined(__clang__)
#define LAMINA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LAMINA_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <class Out, class T, class F>
HWY_INLINE void map(const LoopArgs& args, const F& f) {
  const auto* a = static_cast<const T*>(args.in[0]);
  auto* out = static_cast<Out*>(args.out);
  const auto n = args.count;  // which bytes that are written might be
  LAMINA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
}

template <class Out, class T, class F>
HWY_INLINE void map_pairs(const LoopArgs& args, const F& f) {
  const auto *a = static_cast<const T*>(args.in[0]), *b = static_cast<const T*>(args.in[1]);
  auto* out = static_cast<Out*>(args.out);
  const auto n = args.count;
  if ((args.vectors & 3) == 3) {
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else if ((args.vectors & 3) == 1) {
    const T right = *b;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], right);
  } else if ((args.vectors & 3) == 2) {
    const T left = *a;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(left, b[i]);
  } else {
    const Out both = f(*a, *b);
    for (std::int64_t i = 0; i < n; ++i) out[i] = both;
  }
}

/// Arithmetic without overflow: unsigned, of at least 32 bits.
template <class T>
struct Wide {
  using type = std::uint32_t;
};
template <>
struct Wide<std::int64_t> {
  using type = std::uint64_t;
};
template <>
struct Wide<std::uint64_t> {
  using type = std::uint64_t;
};

template <class T>
struct Operators {
  using W = typename Wide<T>::type;
  static HWY_INLINE W wide(T v) { return static_cast<W>(v); }

#define LAMINA_ONE(NAME, EXPRESSION)                                          \
  static void NAME(const LoopArgs& args) {                                    \
    map<T, T>(args, [](T x) HWY_ATTR { return static_cast<T>(EXPRESSION); }); \
  }
#define LAMINA_TWO(NAME, EXPRESSION)                                                     \
  static void NAME(const LoopArgs& args) {                                               \
    map_pairs<T, T>(args, [](T a, T b) HWY_ATTR { return static_cast<T>(EXPRESSION); }); \
  }
#define LAMINA_BYTE(NAME, EXPRESSION)                                                                    \
  static void NAME(const LoopArgs& args) {                                                               \
    map_pairs<std::uint8_t, T>(args,                                                                     \
                               [](T a, T b) HWY_ATTR { return static_cast<std::uint8_t>(EXPRESSION); }); \
  }

  LAMINA_ONE(copy, x)
  LAMINA_ONE(negative, W{0} - wide(x))
  LAMINA_ONE(abs, x < 0 ? W{0} - wide(x) : wide(x))
  LAMINA_ONE(sign, (x > 0) - (x < 0))
  LAMINA_ONE(relu, x < 0 ? T{0} : x)
  LAMINA_ONE(bit_not, ~x)
  LAMINA_ONE(logical_not, x == 0)
  static void nonzero(const LoopArgs& args) {
    map<std::uint8_t, T>(args, [](T x) HWY_ATTR { return static_cast<std::uint8_t>(x != 0); });
  }
  LAMINA_TWO(add, wide(a) + wide(b))
  LAMINA_TWO(subtract, wide(a) - wide(b))
  LAMINA_TWO(multiply, wide(a) * wide(b))
  LAMINA_TWO(maximum, a > b ? a : b)
  LAMINA_TWO(minimum, a < b ? a : b)
  LAMINA_TWO(squared_difference, (wide(a) - wide(b)) * (wide(a) - wide(b)))
  LAMINA_TWO(bit_and, a& b)
  LAMINA_TWO(bit_or, a | b)
  LAMINA_TWO(bit_xor, a ^ b)
  LAMINA_TWO(logical_and, (a != 0) & (b != 0))
  LAMINA_TWO(logical_or, (a != 0) | (b != 0))
  LAMINA_TWO(logical_xor, (a != 0) != (b != 0))
  LAMINA_BYTE(equal, a == b)
  LAMINA_BYTE(not_equal, a != b)
  LAMINA_BYTE(less, a < b)
  LAMINA_BYTE(less_equal, a <= b)
  LAMINA_BYTE(greater, a > b)
  LAMINA_BYTE(greater_equal, a >= b)
#undef LAMINA_ONE
#undef LAMINA_TWO
#undef LAMINA_BYTE

  static void clamp(const LoopArgs& args) {
    const T low = *static_cast<const T*>(args.in[1]), high = *static_cast<const T*>(args.in[2]);
    map<T, T>(args, [=](T x) HWY_ATTR { return x < low ? low : (x > high ? high : x); });
  }
};

template <class T>
void fill(Loop* operators, Loop* compare) {
#define LAMINA_OPERATOR(NAME) operators[static_cast<int>(Integer::NAME)] = Operators<T>::NAME
#define LAMINA_COMPARE(NAME) compare[static_cast<int>(Compare::NAME)] = Operators<T>::NAME
  LAMINA_OPERATOR(copy);
  LAMINA_OPERATOR(negative);
  LAMINA_OPERATOR(abs);
  LAMINA_OPERATOR(sign);
  LAMINA_OPERATOR(relu);
  LAMINA_OPERATOR(bit_not);
  LAMINA_OPERATOR(logical_not);
  LAMINA_OPERATOR(nonzero);
  LAMINA_OPERATOR(add);
  LAMINA_OPERATOR(subtract);
  LAMINA_OPERATOR(multiply);
  LAMINA_OPERATOR(maximum);
  LAMINA_OPERATOR(minimum);
  LAMINA_OPERATOR(squared_difference);
  LAMINA_OPERATOR(bit_and);
  LAMINA_OPERATOR(bit_or);
  LAMINA_OPERATOR(bit_xor);
  LAMINA_OPERATOR(logical_and);
  LAMINA_OPERATOR(logical_or);
  LAMINA_OPERATOR(logical_xor);
  LAMINA_OPERATOR(clamp);
  LAMINA_COMPARE(equal);
  LAMINA_COMPARE(not_equal);
  LAMINA_COMPARE(less);
  LAMINA_COMPARE(less_equal);
  LAMINA_COMPARE(greater);
  LAMINA_COMPARE(greater_equal);
#undef LAMINA_OPERATOR
#undef LAMINA_COMPARE
}

/// out = condition ? a : b, for elements of a size.
template <class T>
void select_loop(const LoopArgs& args) {
  const auto* condition = static_cast<const std::uint8_t*>(args.in[0]);
  const auto *a = static_cast<const T*>(args.in[1]), *b = static_cast<const T*>(args.in[2]);
  auto* out = static_cast<T*>(args.out);
  const auto n = args.count;
  const T yes = *a, no = *b;
  switch (args.vectors & 7) {
    case 7: {
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) {
        const T x = a[i], y = b[i];
        out[i] = condition[i] != 0 ? x : y;
      }
      return;
    }
    case 3: {
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) {
        const T x = a[i];
        out[i] = condition[i] != 0 ? x : no;
      }
      return;
    }
    case 5: {
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) {
        const T y = b[i];
        out[i] = condition[i] != 0 ? yes : y;
      }
      return;
    }
    case 1: {
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) out[i] = condition[i] != 0 ? yes : no;
      return;
    }
    default: {  // one condition for all
      const T* from = *condition != 0 ? a : b;
      const bool vector = (args.vectors >> (*condition != 0 ? 1 : 2) & 1) != 0;
      for (std::int64_t i = 0; i < n; ++i) out[i] = vector ? from[i] : *from;
    }
  }
}

}  // namespace

void fill_integer_loops(IntegerLoops& t) {
  fill<std::int8_t>(t.operators[0], t.compare[0]);
  fill<std::uint8_t>(t.operators[1], t.compare[1]);
  fill<std::int16_t>(t.operators[2], t.compare[2]);
  fill<std::uint16_t>(t.operators[3], t.compare[3]);
  fill<std::int32_t>(t.operators[4], t.compare[4]);
  fill<std::uint32_t>(t.operators[5], t.compare[5]);
  fill<std::int64_t>(t.operators[6], t.compare[6]);
  fill<std::uint64_t>(t.operators[7], t.compare[7]);
  t.select[0] = select_loop<std::uint8_t>;
  t.select[1] = select_loop<std::uint16_t>;
  t.select[3] = select_loop<std::uint64_t>;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kFillIntegerLoops = LAMINA_PER_ISA(fill_integer_loops);

namespace stages {

void fill_word_loops(IntegerLoops& table);  // words.simd.cc

const IntegerLoops& integer_loops() {
  static const IntegerLoops table = [] {
    IntegerLoops t{};
    kFillIntegerLoops.best()(t);
    fill_word_loops(t);
    return t;
  }();
  return table;
}

int integer_index(ElementType type) {
  switch (type) {
    case ElementType::i8:
      return 0;
    case ElementType::u8:
    case ElementType::boolean:
      return 1;
    case ElementType::i16:
      return 2;
    case ElementType::u16:
      return 3;
    case ElementType::i32:
      return 4;
    case ElementType::u32:
      return 5;
    case ElementType::i64:
      return 6;
    case ElementType::u64:
      return 7;
    default:
      return -1;
  }
}

}  // namespace stages
}  // namespace lamina
#endif
