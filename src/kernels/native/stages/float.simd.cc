/// f32 loops of a few instructions per element; see loops.h.
#include "kernels/native/simd/per_isa.h"
#include "kernels/native/stages/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/float.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/stages/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using namespace stage_loops;
using stages::Binary;
using stages::Compare;
using stages::FloatLoops;
using stages::Loop;
using stages::Test;
using stages::Unary;

/// On x86 Min and Max give the second operand when one is NaN: x stands second and stays NaN.
HWY_INLINE V clamped(V x, V low, V high) { return hn::Min(high, hn::Max(low, x)); }
HWY_INLINE V gate(V x) { return hn::Mul(clamped(hn::Add(x, set(3)), set(0), set(6)), set(1.0f / 6)); }

/// Nearest, halves away from zero.
HWY_INLINE V rounded_away(V x) {
  const V whole = hn::Trunc(x), left = hn::Abs(hn::Sub(x, whole));
  const V up = hn::Add(whole, hn::CopySign(set(1), x));
  return hn::IfThenElse(hn::Ge(left, set(0.5f)), up, whole);
}

/// The C library's pow differs from a square root at the two special values.
HWY_INLINE V power_half(V x) {
  return hn::IfThenElse(hn::Eq(x, set(-kInfinity)), set(kInfinity), hn::Sqrt(hn::Add(x, set(0))));
}

HWY_INLINE V integer_power(V x, std::int64_t n) {
  V result = set(1);
  for (auto k = n < 0 ? -n : n; k != 0;) {
    if (k & 1) result = hn::Mul(result, x);
    k >>= 1;
    if (k != 0) x = hn::Mul(x, x);
  }
  return n < 0 ? hn::Div(set(1), result) : result;
}

HWY_INLINE float parameter(const LoopArgs& a, int k) { return *static_cast<const float*>(a.in[k]); }

#define LAMINA_UNARY(NAME, EXPRESSION)                       \
  void NAME##_loop(const LoopArgs& a) {                      \
    for_vectors(a, [](V x) HWY_ATTR { return EXPRESSION; }); \
  }

LAMINA_UNARY(copy, x)
LAMINA_UNARY(abs, hn::Abs(x))
LAMINA_UNARY(negative, hn::Neg(x))
LAMINA_UNARY(sign, hn::IfThenElse(hn::Gt(x, set(0)), set(1), hn::IfThenElse(hn::Lt(x, set(0)), set(-1), x)))
LAMINA_UNARY(ceiling, hn::Ceil(x))
LAMINA_UNARY(floor, hn::Floor(x))
LAMINA_UNARY(round_even, hn::Round(x))
LAMINA_UNARY(round_away, rounded_away(x))
LAMINA_UNARY(sqrt, hn::Sqrt(x))
LAMINA_UNARY(relu, hn::Max(set(0), x))
LAMINA_UNARY(hswish, hn::Mul(x, gate(x)))
LAMINA_UNARY(hsigmoid, gate(x))
LAMINA_UNARY(softsign, hn::Div(x, hn::Add(set(1), hn::Abs(x))))
LAMINA_UNARY(square, hn::Mul(x, x))
LAMINA_UNARY(cube, hn::Mul(hn::Mul(x, x), x))
LAMINA_UNARY(reciprocal, hn::Div(set(1), x))
LAMINA_UNARY(power_half, power_half(x))
LAMINA_UNARY(power_minus_half, hn::Div(set(1), power_half(x)))
LAMINA_UNARY(round_f16, nearest_f16(x))
LAMINA_UNARY(round_bf16, nearest_bf16(x))
#undef LAMINA_UNARY

void clamp_loop(const LoopArgs& a) {
  const V low = set(parameter(a, 1)), high = set(parameter(a, 2));
  for_vectors(a, [&](V x) HWY_ATTR { return clamped(x, low, high); });
}
void hard_sigmoid_loop(const LoopArgs& a) {
  const V alpha = set(parameter(a, 1)), beta = set(parameter(a, 2));
  for_vectors(a, [&](V x) HWY_ATTR { return clamped(hn::Add(hn::Mul(alpha, x), beta), set(0), set(1)); });
}
void power_integer_loop(const LoopArgs& a) {
  const auto n = static_cast<std::int64_t>(parameter(a, 1));
  for_vectors(a, [=](V x) HWY_ATTR { return integer_power(x, n); });
}

template <class F>
HWY_INLINE void binary(const LoopArgs& args, const F& f) {
  auto* out = static_cast<float*>(args.out);
  for_operands(args, f, [out](V v, std::int64_t i, std::int64_t n) HWY_ATTR {
    if (n == lanes())
      hn::StoreU(v, D(), out + i);
    else
      store_some(v, D(), out + i, n);
  });
}

#define LAMINA_BINARY(NAME, EXPRESSION)                         \
  void NAME##_loop(const LoopArgs& args) {                      \
    binary(args, [](V a, V b) HWY_ATTR { return EXPRESSION; }); \
  }

LAMINA_BINARY(add, hn::Add(a, b))
LAMINA_BINARY(subtract, hn::Sub(a, b))
LAMINA_BINARY(multiply, hn::Mul(a, b))
LAMINA_BINARY(divide, hn::Div(a, b))
LAMINA_BINARY(maximum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b))
LAMINA_BINARY(minimum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b))
LAMINA_BINARY(squared_difference, hn::Mul(hn::Sub(a, b), hn::Sub(a, b)))
LAMINA_BINARY(prelu, hn::IfThenElse(hn::Lt(a, set(0)), hn::Mul(a, b), a))
#undef LAMINA_BINARY

template <class F>
HWY_INLINE void compare(const LoopArgs& args, const F& f) {
  auto* out = static_cast<std::uint8_t*>(args.out);
  for_operands(args, f,
               [out](auto m, std::int64_t i, std::int64_t n) HWY_ATTR { store_bytes(m, out + i, n); });
}

#define LAMINA_COMPARE(NAME, EXPRESSION)                         \
  void NAME##_loop(const LoopArgs& args) {                       \
    compare(args, [](V a, V b) HWY_ATTR { return EXPRESSION; }); \
  }
#define LAMINA_TEST(NAME, EXPRESSION)                         \
  void NAME##_loop(const LoopArgs& args) {                    \
    LoopArgs one = args;                                      \
    one.in[1] = args.in[0];                                   \
    one.vectors = 1;                                          \
    compare(one, [](V x, V) HWY_ATTR { return EXPRESSION; }); \
  }

LAMINA_COMPARE(equal, hn::Eq(a, b))
LAMINA_COMPARE(not_equal, hn::Not(hn::Eq(a, b)))
LAMINA_COMPARE(less, hn::Lt(a, b))
LAMINA_COMPARE(less_equal, hn::Le(a, b))
LAMINA_COMPARE(greater, hn::Gt(a, b))
LAMINA_COMPARE(greater_equal, hn::Ge(a, b))
LAMINA_TEST(nan, hn::IsNaN(x))
LAMINA_TEST(finite, hn::Lt(hn::Abs(x), set(kInfinity)))
LAMINA_TEST(infinite, hn::Eq(hn::Abs(x), set(kInfinity)))
LAMINA_TEST(positive_infinite, hn::Eq(x, set(kInfinity)))
LAMINA_TEST(negative_infinite, hn::Eq(x, set(-kInfinity)))
LAMINA_TEST(none, hn::Lt(hn::Abs(x), set(0)))
#undef LAMINA_COMPARE
#undef LAMINA_TEST

/// The expression of ops/fake_quantize.h, operation by operation. kSteps: where level / steps * output_range
/// is the level itself.
template <bool kSteps>
struct Quantizer {
  V input_low, low, high, range, output_low, output_high, output_range, steps;
  HWY_INLINE Quantizer(V il, V ih, V ol, V oh, V s)
      : input_low(il),
        range(hn::Sub(ih, il)),
        output_low(ol),
        output_high(oh),
        output_range(hn::Sub(oh, ol)),
        steps(s) {
    const auto rising = hn::Lt(il, ih);
    low = hn::IfThenElse(rising, il, ih);
    high = hn::IfThenElse(rising, ih, il);
  }
  HWY_INLINE V operator()(V x) const {
    const V level = hn::Round(hn::Mul(hn::Div(hn::Sub(x, input_low), range), steps));
    V y = hn::Add(kSteps ? level : hn::Mul(hn::Div(level, steps), output_range), output_low);
    y = hn::IfThenElse(hn::Gt(x, high), output_high, y);
    return hn::IfThenElse(hn::Le(x, low), output_low, y);
  }
};

template <bool kSteps>
void fake_quantize_loop(const LoopArgs& a) {
  const D d;
  const V steps = set(*static_cast<const float*>(a.function));
  if ((a.vectors & ~1u) == 0) {
    const Quantizer<kSteps> q(set(parameter(a, 1)), set(parameter(a, 2)), set(parameter(a, 3)),
                              set(parameter(a, 4)), steps);
    return for_vectors(a, [&](V x) HWY_ATTR { return q(x); });
  }
  auto* out = static_cast<float*>(a.out);
  for (std::int64_t i = 0; i < a.count; i += lanes()) {
    const auto n = a.count - i;
    const auto operand = [&](int k) HWY_ATTR {
      const auto* p = static_cast<const float*>(a.in[k]);
      if ((a.vectors >> k & 1) == 0) return set(*p);
      return n >= lanes() ? hn::LoadU(d, p + i) : load_some(D(), p + i, n);
    };
    const V y = Quantizer<kSteps>(operand(1), operand(2), operand(3), operand(4), steps)(operand(0));
    if (n >= lanes())
      hn::StoreU(y, d, out + i);
    else
      store_some(y, D(), out + i, n);
  }
}

}  // namespace

void fill_float_loops(FloatLoops& t) {
#define LAMINA_ENTRY(TABLE, ENUM, NAME) t.TABLE[static_cast<int>(ENUM::NAME)] = NAME##_loop
#define LAMINA_UNARY(NAME) LAMINA_ENTRY(unary, Unary, NAME)
#define LAMINA_BINARY(NAME) LAMINA_ENTRY(binary, Binary, NAME)
#define LAMINA_COMPARE(NAME) LAMINA_ENTRY(compare, Compare, NAME)
#define LAMINA_TEST(NAME) LAMINA_ENTRY(test, Test, NAME)
  LAMINA_UNARY(copy);
  LAMINA_UNARY(abs);
  LAMINA_UNARY(negative);
  LAMINA_UNARY(sign);
  LAMINA_UNARY(ceiling);
  LAMINA_UNARY(floor);
  LAMINA_UNARY(round_even);
  LAMINA_UNARY(round_away);
  LAMINA_UNARY(sqrt);
  LAMINA_UNARY(relu);
  LAMINA_UNARY(hswish);
  LAMINA_UNARY(hsigmoid);
  LAMINA_UNARY(softsign);
  LAMINA_UNARY(square);
  LAMINA_UNARY(cube);
  LAMINA_UNARY(reciprocal);
  LAMINA_UNARY(power_half);
  LAMINA_UNARY(power_minus_half);
  LAMINA_UNARY(round_f16);
  LAMINA_UNARY(round_bf16);
  LAMINA_UNARY(clamp);
  LAMINA_UNARY(hard_sigmoid);
  LAMINA_UNARY(power_integer);
  LAMINA_BINARY(add);
  LAMINA_BINARY(subtract);
  LAMINA_BINARY(multiply);
  LAMINA_BINARY(divide);
  LAMINA_BINARY(maximum);
  LAMINA_BINARY(minimum);
  LAMINA_BINARY(squared_difference);
  LAMINA_BINARY(prelu);
  LAMINA_COMPARE(equal);
  LAMINA_COMPARE(not_equal);
  LAMINA_COMPARE(less);
  LAMINA_COMPARE(less_equal);
  LAMINA_COMPARE(greater);
  LAMINA_COMPARE(greater_equal);
  LAMINA_TEST(nan);
  LAMINA_TEST(finite);
  LAMINA_TEST(infinite);
  LAMINA_TEST(positive_infinite);
  LAMINA_TEST(negative_infinite);
  LAMINA_TEST(none);
  t.fake_quantize = fake_quantize_loop<false>;
  t.fake_quantize_steps = fake_quantize_loop<true>;
#undef LAMINA_UNARY
#undef LAMINA_BINARY
#undef LAMINA_COMPARE
#undef LAMINA_TEST
#undef LAMINA_ENTRY
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kFillFloatLoops = LAMINA_PER_ISA(fill_float_loops);

namespace stages {

void fill_math_loops(FloatLoops& table);  // math.simd.cc

const FloatLoops& float_loops() {
  static const FloatLoops table = [] {
    FloatLoops t{};
    kFillFloatLoops.best()(t);
    fill_math_loops(t);
    return t;
  }();
  return table;
}

}  // namespace stages
}  // namespace lamina
#endif
