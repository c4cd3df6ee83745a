#include "tests/property/wide_values.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "ops/eval.h"

namespace lamina::testing {
namespace {

/// The low `bits` of it are the number.
std::uint64_t wide_bits(SplitMix& random, int bits) {
  const auto any = [&](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  switch (any(4)) {
    case 0:  // 2^n and what is beside it, and the same below zero: the bounds of all types among them
      return ((std::uint64_t{1} << any(bits)) + random.below(3) - 1) * (any(2) ? ~std::uint64_t{0} : 1);
    case 1:
      return random.below(9) - (any(2) ? 4 : 0);
    case 2:
      return random.next() >> any(bits);
    default:
      return random.next();
  }
}

double wide_float(SplitMix& random) {
  const double sign = random.below(2) == 0 ? 1 : -1;
  switch (random.below(8)) {
    case 0:
      return sign * std::numeric_limits<double>::infinity();
    case 1:
    case 2:
      return sign * std::ldexp(1.0, static_cast<int>(random.below(70)));
    case 3:
    case 4:
      return sign * static_cast<double>(random.below(1000)) / 2;
    default:
      return sign *
             std::floor(std::ldexp(1.0 + std::fabs(random.uniform()), static_cast<int>(random.below(70))));
  }
}

}  // namespace

Tensor wide_tensor(ElementType type, const Dims& dims, std::uint64_t seed) {
  SplitMix random(seed);
  Tensor t(type, dims);
  if (is_float(type)) {
    std::vector<double> values(t.size());
    for (auto& v : values) v = wide_float(random);
    return from_doubles(type, dims, values);
  }
  const auto bytes = static_cast<std::size_t>(bits_of(type)) / 8;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const auto bits = wide_bits(random, bits_of(type));
    std::memcpy(t.raw() + i * bytes, &bits, bytes);  // little-endian: the low bytes
  }
  return t;
}

}  // namespace lamina::testing
