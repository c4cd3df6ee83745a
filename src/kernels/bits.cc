#include "kernels/bits.h"

#include <cstring>

namespace lamina::bits {
namespace {

/// Calls visit(plain element, byte of the bits, bit of it) for all elements.
template <class Visit>
void for_all(const Dims& shape, const Visit& visit) {
  const auto elements = static_cast<std::int64_t>(element_count(shape));
  if (elements == 0) return;
  const std::int64_t channels = shape[1], points = elements / shape[0] / channels;
  for (std::int64_t image = 0, at = 0; image < shape[0]; ++image)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < points; ++p, ++at)
        visit(at, (image * points + p) * point_bytes(channels) + c / 8, c % 8);
}

std::size_t bytes_of(ElementType, const Dims& shape) {
  const auto elements = element_count(shape);
  return elements == 0 ? 0
                       : elements / static_cast<std::size_t>(shape[1]) *
                             static_cast<std::size_t>(point_bytes(shape[1]));
}

void pack(ElementType type, const Dims& shape, const void* from, void* to) {
  std::memset(to, 0, bytes_of(type, shape));
  for_all(shape, [&](auto element, auto byte, auto bit) {
    auto& word = static_cast<std::uint8_t*>(to)[byte];
    if (static_cast<const std::uint8_t*>(from)[element] != 0)
      word = static_cast<std::uint8_t>(word | 1u << bit);
  });
}

void unpack(ElementType, const Dims& shape, const void* from, void* to) {
  for_all(shape, [&](auto element, auto byte, auto bit) {
    static_cast<std::uint8_t*>(to)[element] = static_cast<const std::uint8_t*>(from)[byte] >> bit & 1u;
  });
}

}  // namespace

PackedLayout packing() {
  const auto takes = [](ElementType type, const Dims& shape) {
    return type == ElementType::boolean && shape.size() > 2;
  };
  return {takes, bytes_of, pack, unpack, false, ElementType::u1};
}

}  // namespace lamina::bits
