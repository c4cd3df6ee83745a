#pragma once
/// How large a tensor may be: one set of limits for every door that shapes come in by (files, the text form,
/// npy, inference, evaluation, callers' tensors).
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace lamina {

struct Limits {
  static constexpr std::size_t kRank = 64;
  /// Product of the dimensions that are not 0. A zero does not excuse the others: an empty batch is as large
  /// as one picture of it would be, and nothing walks over dimensions for ever.
  static constexpr int kElementBits = 40;
  static constexpr std::int64_t kElements = std::int64_t{1} << kElementBits;
};

/// The product of the sizes beside zeros; nothing when it is more than Limits::kElements. Sizes are not
/// negative.
inline std::optional<std::int64_t> extent_of(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const auto size : sizes) {
    if (size > Limits::kElements / product) return std::nullopt;
    if (size > 0) product *= size;
  }
  return product;
}

}  // namespace lamina
