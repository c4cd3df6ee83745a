#include "base/random.h"

#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "base/small_float.h"

namespace lamina {
namespace {

template <class T, class F>
void fill(Tensor& tensor, F&& next) {
  auto* out = tensor.raw();
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const T v = next();
    std::memcpy(out + i * sizeof(T), &v, sizeof(T));
  }
}

template <class T>
void fill_integers(Tensor& tensor, SplitMix& random) {
  fill<T>(tensor, [&] {
    const auto v = static_cast<std::int64_t>(random.below(9));
    return static_cast<T>(std::is_signed_v<T> ? v - 4 : v);
  });
}

/// The bits of one number of less than a byte.
std::uint64_t packed_number(ElementType type, SplitMix& random) {
  if (type == ElementType::i4) return (random.below(9) + 12) % 16;  // two's complement of -4..4
  if (type == ElementType::u4) return random.below(9);
  if (is_small_float(type)) return small_float_code(type, double{random.uniform()});
  return random.below(std::uint64_t{1} << bits_of(type));
}

void fill_packed(Tensor& tensor, SplitMix& random) {
  const auto type = tensor.element_type();
  const auto bits = static_cast<std::size_t>(bits_of(type));
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const auto v = packed_number(type, random);
    tensor.raw()[i * bits / 8] |= static_cast<std::byte>(v << (i * bits % 8));
  }
}

}  // namespace

Tensor seeded_tensor(ElementType type, Dims shape, std::uint64_t seed) {
  Tensor t(type, std::move(shape));
  SplitMix random(seed);
  switch (type) {
    case ElementType::f32:
      fill<float>(t, [&] { return random.uniform(); });
      break;
    case ElementType::f64:
      fill<double>(t, [&] { return double{random.uniform()}; });
      break;
    case ElementType::f16:
      fill<f16_t>(t, [&] { return to_f16(random.uniform()); });
      break;
    case ElementType::bf16:
      fill<bf16_t>(t, [&] { return to_bf16(random.uniform()); });
      break;
    case ElementType::i64:
      fill_integers<std::int64_t>(t, random);
      break;
    case ElementType::i32:
      fill_integers<std::int32_t>(t, random);
      break;
    case ElementType::i16:
      fill_integers<std::int16_t>(t, random);
      break;
    case ElementType::i8:
      fill_integers<std::int8_t>(t, random);
      break;
    case ElementType::u64:
      fill_integers<std::uint64_t>(t, random);
      break;
    case ElementType::u32:
      fill_integers<std::uint32_t>(t, random);
      break;
    case ElementType::u16:
      fill_integers<std::uint16_t>(t, random);
      break;
    case ElementType::u8:
      fill_integers<std::uint8_t>(t, random);
      break;
    case ElementType::f8e4m3:
    case ElementType::f8e4m3fnuz:
    case ElementType::f8e5m2:
    case ElementType::f8e5m2fnuz:
    case ElementType::f8e8m0:
      fill<std::uint8_t>(t, [&] { return small_float_code(type, double{random.uniform()}); });
      break;
    case ElementType::boolean:
      fill<std::uint8_t>(t, [&] { return static_cast<std::uint8_t>(random.below(2)); });
      break;
    case ElementType::u1:
    case ElementType::i4:
    case ElementType::u4:
    case ElementType::i2:
    case ElementType::u2:
    case ElementType::f4e2m1:
    case ElementType::nf4:
      fill_packed(t, random);
      break;
    case ElementType::undefined:
      fail(ErrorCode::bad_input, "seeded values of an undefined element type");
  }
  return t;
}

}  // namespace lamina
