/// Quantize and Dequantize of 8 and 16 bits in one loop each; see loops.h.
#include "kernels/native/simd/per_isa.h"
#include "kernels/native/stages/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/quantize.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/simd/integer_finish-inl.h"
#include "kernels/native/stages/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using namespace stage_loops;
using stages::QuantizeLoops;

template <class T>
using Narrow = hn::Rebind<T, D>;

HWY_INLINE float number(const LoopArgs& a, int k) { return *static_cast<const float*>(a.in[k]); }

/// Operand k at elements [i, i + n): floats, perhaps one for all.
HWY_INLINE V operand(const LoopArgs& a, int k, std::int64_t i, std::int64_t n) {
  const auto* p = static_cast<const float*>(a.in[k]);
  if ((a.vectors >> k & 1) == 0) return set(*p);
  return n >= lanes() ? hn::LoadU(D(), p + i) : load_some(D(), p + i, n);
}

template <class T>
HWY_INLINE void store(hn::Vec<I> levels, T* to, std::int64_t n) {
  const hn::RebindToUnsigned<D> words;
  if constexpr (sizeof(T) == 1) {
    integer_finish::store_bytes(integer_finish::low_bytes(levels), reinterpret_cast<std::uint8_t*>(to), n);
  } else {
    const Narrow<std::uint16_t> halves;
    const auto v = hn::TruncateTo(halves, hn::BitCast(words, levels));
    if (n >= lanes()) return hn::StoreU(v, halves, reinterpret_cast<std::uint16_t*>(to));
    HWY_ALIGN std::uint16_t buffer[hn::MaxLanes(halves)];
    hn::StoreU(v, halves, buffer);
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(buffer[i]);
  }
}

template <class T>
HWY_INLINE hn::Vec<Narrow<T>> load(const T* from, std::int64_t n) {
  if (n >= lanes()) return hn::LoadU(Narrow<T>(), from);
  HWY_ALIGN T buffer[hn::MaxLanes(Narrow<T>())] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = from[i];
  return hn::LoadU(Narrow<T>(), buffer);
}

template <class T>
constexpr float kLowest = sizeof(T) == 1 ? (T(-1) < T(0) ? -128 : 0) : (T(-1) < T(0) ? -32768 : 0);
template <class T>
constexpr float kHighest = sizeof(T) == 1 ? (T(-1) < T(0) ? 127 : 255) : (T(-1) < T(0) ? 32767 : 65535);

/// Quotients rounded to even, and the zero point. NaN gives 0.
template <class T>
HWY_INLINE hn::Vec<I> levels_of(V quotient, V zero_point) {
  const V low = hn::Sub(set(kLowest<T>), zero_point), high = hn::Sub(set(kHighest<T>), zero_point);
  const auto level = hn::Add(integer_finish::nearest(hn::Min(high, hn::Max(low, quotient))),
                             integer_finish::nearest(zero_point));
  return hn::IfThenElseZero(hn::RebindMask(I(), hn::Eq(quotient, quotient)), level);
}

/// Powers of 2 have exact reciprocals: then x / scale is a product.
HWY_INLINE bool is_product(float scale) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &scale, sizeof bits);
  return (bits & 0x7fffff) == 0 && scale > 0x1p-100f && scale < 0x1p100f;
}

template <class T, class Quotient>
HWY_INLINE void quantize_by(const LoopArgs& a, const Quotient& quotient) {
  const V zero_point = set(number(a, 2));
  const auto* x = static_cast<const float*>(a.in[0]);
  auto* out = static_cast<T*>(a.out);
  std::int64_t i = 0;
  for (; i + lanes() <= a.count; i += lanes())
    store(levels_of<T>(quotient(hn::LoadU(D(), x + i)), zero_point), out + i, lanes());
  const auto rest = a.count - i;
  if (rest > 0) store(levels_of<T>(quotient(load_some(D(), x + i, rest)), zero_point), out + i, rest);
}

/// x, scale, zero point in f32.
template <class T>
void quantize(const LoopArgs& a) {
  if (a.vectors == 1) {
    const float scale = number(a, 1);
    if (scale == 1) return quantize_by<T>(a, [](V x) HWY_ATTR { return x; });
    if (is_product(scale)) {
      const V factor = set(1 / scale);
      return quantize_by<T>(a, [&](V x) HWY_ATTR { return hn::Mul(x, factor); });
    }
    const V divisor = set(scale);
    return quantize_by<T>(a, [&](V x) HWY_ATTR { return hn::Div(x, divisor); });
  }
  auto* out = static_cast<T*>(a.out);
  for (std::int64_t i = 0; i < a.count; i += lanes()) {
    const auto n = a.count - i;
    const V quotient = hn::Div(operand(a, 0, i, n), operand(a, 1, i, n));
    store(levels_of<T>(quotient, operand(a, 2, i, n)), out + i, n);
  }
}

/// x of T, scale and zero point in f32.
template <class T>
void dequantize(const LoopArgs& a) {
  const auto* x = static_cast<const T*>(a.in[0]);
  auto* out = static_cast<float*>(a.out);
  const auto value = [](hn::Vec<Narrow<T>> v, V scale, V zero_point) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::ConvertTo(D(), hn::PromoteTo(I(), v)), zero_point), scale);
  };
  std::int64_t i = 0;
  if (a.vectors == 1) {
    const V scale = set(number(a, 1)), zero_point = set(number(a, 2));
    for (; i + lanes() <= a.count; i += lanes())
      hn::StoreU(value(hn::LoadU(Narrow<T>(), x + i), scale, zero_point), D(), out + i);
  }
  for (; i < a.count; i += lanes()) {
    const auto n = a.count - i;
    const auto v = (a.vectors & 1) != 0 ? load(x + i, n) : hn::Set(Narrow<T>(), *x);
    const V y = value(v, operand(a, 1, i, n), operand(a, 2, i, n));
    if (n >= lanes())
      hn::StoreU(y, D(), out + i);
    else
      store_some(y, D(), out + i, n);
  }
}

}  // namespace

void fill_quantize_loops(QuantizeLoops& t) {
  const auto at = [](ElementType type) { return static_cast<int>(type); };
  t.quantize[at(ElementType::u8)] = quantize<std::uint8_t>;
  t.quantize[at(ElementType::i8)] = quantize<std::int8_t>;
  t.quantize[at(ElementType::u16)] = quantize<std::uint16_t>;
  t.quantize[at(ElementType::i16)] = quantize<std::int16_t>;
  t.dequantize[at(ElementType::u8)] = dequantize<std::uint8_t>;
  t.dequantize[at(ElementType::i8)] = dequantize<std::int8_t>;
  t.dequantize[at(ElementType::u16)] = dequantize<std::uint16_t>;
  t.dequantize[at(ElementType::i16)] = dequantize<std::int16_t>;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kFillQuantizeLoops = LAMINA_PER_ISA(fill_quantize_loops);

namespace stages {

const QuantizeLoops& quantize_loops() {
  static const QuantizeLoops table = [] {
    QuantizeLoops t{};
    kFillQuantizeLoops.best()(t);
    return t;
  }();
  return table;
}

}  // namespace stages
}  // namespace lamina
#endif
