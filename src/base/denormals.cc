#include "base/denormals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "base/work_partition.h"

namespace lamina {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff, kLeastNormal = 0x00800000;
constexpr std::size_t kPiece = 1 << 16;  // elements that one thread looks at
constexpr std::size_t kChunk = 64;       // a fixed number, so that compilers make vector code

bool is_denormal(std::uint32_t bits) { return (bits & kMagnitude) - 1 < kLeastNormal - 1; }

/// Calls body(begin, end) on ranges of elements, in parallel.
template <class Body>
void for_ranges(std::size_t size, const Body& body) {
  const auto pieces = static_cast<std::int64_t>(ceil_div(size, kPiece));
  parallel_for(pieces, 4, [&](std::int64_t begin, std::int64_t end) {
    body(static_cast<std::size_t>(begin) * kPiece, std::min(static_cast<std::size_t>(end) * kPiece, size));
  });
}

/// `data` may lie at any address, as in mapped files.
std::uint32_t count(const std::byte* data, std::size_t elements) {
  std::array<std::uint32_t, kChunk> bits;
  std::uint32_t found = 0;
  for (; elements >= kChunk; elements -= kChunk, data += sizeof(bits)) {
    std::memcpy(bits.data(), data, sizeof(bits));
    for (const auto b : bits) found += is_denormal(b);
  }
  std::memcpy(bits.data(), data, elements * sizeof(float));
  for (std::size_t i = 0; i < elements; ++i) found += is_denormal(bits[i]);
  return found;
}

std::size_t count(const Tensor& t) {
  std::atomic<std::size_t> total = 0;
  for_ranges(t.size(), [&](std::size_t begin, std::size_t end) {
    total += count(t.raw() + begin * sizeof(float), end - begin);
  });
  return total;
}

}  // namespace

Denormals& Denormals::operator+=(const Denormals& other) {
  numbers += other.numbers, of += other.of, constants += other.constants;
  return *this;
}

std::string to_string(const Denormals& found) {
  return fmt::format("{} of {} numbers in {} constant{} are denormal (below 1.18e-38) and count as 0",
                     found.numbers, found.of, found.constants, found.constants == 1 ? "" : "s");
}

Tensor without_denormals(const Tensor& tensor, Denormals& found) {
  if (tensor.element_type() != ElementType::f32) return tensor;
  const auto numbers = count(tensor);
  if (numbers == 0) return tensor;
  found += {numbers, tensor.size(), 1};
  Tensor out = tensor.to_aligned().clone();
  const auto values = out.data<float>();
  for_ranges(values.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i)
      if (is_denormal(std::bit_cast<std::uint32_t>(values[i]))) values[i] = std::copysign(0.0f, values[i]);
  });
  return out;
}

}  // namespace lamina
