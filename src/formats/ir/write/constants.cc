#include "formats/ir/write/constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace lamina::ir {
namespace {

constexpr std::size_t kLarge = 4096, kLargeAlignment = 64;

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.raw(), tensor.bytes()}; }

std::size_t alignment_of(const Tensor& tensor) {
  if (tensor.bytes() >= kLarge) return kLargeAlignment;
  return std::max<std::size_t>(static_cast<std::size_t>(bits_of(tensor.element_type())) / 8, 1);
}

template <class T>
Halves halves_of_type(const Tensor& numbers) {
  Halves out;
  out.tensor = Tensor(ElementType::f16, numbers.shape());
  auto* to = out.tensor.raw();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T value;  // constants of files may lie anywhere
    std::memcpy(&value, numbers.raw() + i * sizeof(T), sizeof(T));
    const auto number = static_cast<float>(value);
    const f16_t half = to_f16(number);
    const bool infinite = (half.bits & 0x7fffU) == 0x7c00U, zero = (half.bits & 0x7fffU) == 0;
    out.overflown += infinite && std::isfinite(value);
    out.vanished += zero && value != 0;
    out.others += value != 0;
    out.inexact += static_cast<T>(to_float(half)) != value;
    std::memcpy(to + i * sizeof(half), &half, sizeof(half));
  }
  return out;
}

}  // namespace

std::uint64_t ConstantFile::add(const Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  if (bytes.empty()) return file_.written();
  auto& alike = by_content_[hash_of(bytes)];
  for (const Kept& kept : alike)
    if (kept.tensor.bytes() == bytes.size() && kept.offset % alignment_of(tensor) == 0 &&
        std::memcmp(kept.tensor.raw(), bytes.data(), bytes.size()) == 0) {
      ++shared_;
      return kept.offset;
    }
  constexpr std::array<std::byte, kLargeAlignment> kZeros{};
  const std::size_t alignment = alignment_of(tensor);
  if (const std::size_t over = file_.written() % alignment; over != 0)
    file_.write(std::span(kZeros).first(alignment - over));
  const std::uint64_t offset = file_.written();
  file_.write(bytes);
  alike.push_back({offset, tensor});
  return offset;
}

Tensor high_bits_first(const Tensor& bits) {
  Tensor out = bits.clone();
  for (std::size_t i = 0; i < out.bytes(); ++i) {
    const auto in = static_cast<unsigned>(out.raw()[i]);
    unsigned reversed = 0;
    for (unsigned bit = 0; bit < 8; ++bit) reversed |= (in >> bit & 1U) << (7 - bit);
    out.raw()[i] = static_cast<std::byte>(reversed);
  }
  return out;
}

Halves halves_of(const Tensor& floats) {
  return floats.element_type() == ElementType::f64 ? halves_of_type<double>(floats)
                                                   : halves_of_type<float>(floats);
}

}  // namespace lamina::ir
