#include "kernels/bits.h"

#include "kernels/kernel.h"

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

}  // namespace

Tensor packed(const Tensor& plain) {
  const auto& shape = plain.shape();
  Tensor out(
      ElementType::u8,
      {static_cast<std::int64_t>(memory_bytes(ElementType::boolean, shape, Layout::channels_last_bits))});
  auto* to = out.data<std::uint8_t>().data();
  for_all(shape, [&](auto element, auto byte, auto bit) {
    if (plain.raw()[element] != std::byte{0}) to[byte] = static_cast<std::uint8_t>(to[byte] | 1u << bit);
  });
  return out;
}

Tensor unpacked(const Tensor& bits, const Dims& shape) {
  Tensor out(ElementType::boolean, shape);
  for_all(shape, [&](auto element, auto byte, auto bit) {
    out.raw()[element] = bits.raw()[byte] >> bit & std::byte{1};
  });
  return out;
}

}  // namespace lamina::bits
