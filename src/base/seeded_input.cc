#include "base/seeded_input.h"

namespace lamina {

Tensor seeded_input(ElementType type, Dims shape, std::uint64_t seed) {
  const bool whole = is_integer(type) && bits_of(type) <= 8 && type != ElementType::u1;
  if (!whole) return seeded_tensor(type, std::move(shape), seed);
  Tensor t(type, std::move(shape));
  SplitMix random(seed);
  for (std::size_t i = 0; i < t.bytes(); ++i) t.raw()[i] = static_cast<std::byte>(random.next());
  return t;
}

}  // namespace lamina
