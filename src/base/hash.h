#pragma once
/// Hashes of bytes (XXH3, 64 bits) for caches and comparison; not for files that outlive the library's
/// version.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lamina {

inline std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

/// The hash of a sequence that had the hash `so_far` and got one more item. The order matters.
inline std::uint64_t hash_combine(std::uint64_t so_far, std::uint64_t item) {
  const std::uint64_t both[2] = {so_far, item};
  return XXH3_64bits(both, sizeof(both));
}

}  // namespace lamina
