#include "ops/packed.h"

#include <algorithm>

#include "base/cancellation.h"

namespace lamina {
namespace {

/// The code of the number 0.
unsigned code_of_zero(ElementType type) { return type == ElementType::nf4 ? 7 : 0; }

}  // namespace

ElementType unpacked_type(ElementType type) {
  if (!is_packed(type)) return type;
  return is_integer(type) && is_signed(type) ? ElementType::i8 : ElementType::u8;
}

Tensor unpacked(const Tensor& tensor) {
  const auto type = tensor.element_type();
  if (!is_packed(type)) return tensor;
  Tensor out(unpacked_type(type), tensor.shape());
  const auto bits = static_cast<std::size_t>(bits_of(type));
  const unsigned mask = (1u << bits) - 1, zero = code_of_zero(type);
  const unsigned sign = out.element_type() == ElementType::i8 ? 1u << (bits - 1) : 0;
  const auto* from = reinterpret_cast<const std::uint8_t*>(tensor.raw());
  auto* to = reinterpret_cast<std::uint8_t*>(out.raw());
  for_pieces(out.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto code = (static_cast<unsigned>(from[i * bits / 8]) >> (i * bits % 8) & mask) ^ zero;
      to[i] = static_cast<std::uint8_t>((code ^ sign) - sign);
    }
  });
  return out;
}

Tensor packed_as(ElementType type, const Tensor& bytes) {
  LAMINA_CHECK(is_packed(type) && bytes.element_type() == unpacked_type(type), "{} is packed as {}",
               name_of(bytes.element_type()), name_of(type));
  Tensor out(type, bytes.shape());
  const auto bits = static_cast<std::size_t>(bits_of(type)), per_byte = 8 / bits;
  const unsigned mask = (1u << bits) - 1, zero = code_of_zero(type);
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.raw());
  auto* to = reinterpret_cast<std::uint8_t*>(out.raw());
  for_pieces(out.bytes(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) {
      unsigned byte = 0;
      const auto count = std::min(per_byte, bytes.size() - i * per_byte);
      for (std::size_t k = 0; k < count; ++k) byte |= ((from[i * per_byte + k] ^ zero) & mask) << (k * bits);
      to[i] = static_cast<std::uint8_t>(byte);
    }
  });
  return out;
}

bool moved_unpacked(EvalContext& c) {
  bool any = false;
  for (std::size_t i = 0; i < c.inputs(); ++i) any = any || (c.has(i) && is_packed(c.in(i).element_type()));
  if (!any) return false;
  std::vector<Tensor> inputs(c.inputs());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (c.has(i)) inputs[i] = unpacked(c.in(i));
  EvalContext bytes(c.node(), inputs, {});
  c.node().op->evaluate(bytes);
  for (std::size_t i = 0; i < c.outputs(); ++i) {
    const auto type = c.out_element(i);
    c.set(i, is_packed(type) ? packed_as(type, bytes.out(i)) : bytes.out(i));
  }
  return true;
}

}  // namespace lamina
