#pragma once
/// Constants of binary convolution by table lookup (lines.simd.cc).
#include <cstdint>

namespace lamina::binary {

/// counts[16 * x + w]: bits that differ.
struct Tables {
  alignas(64) std::uint8_t counts[256];
};
inline constexpr Tables kTables = [] {
  Tables t{};
  for (unsigned i = 0; i < 256; ++i)
    for (unsigned bits = (i >> 4) ^ (i & 15); bits != 0; bits >>= 1) t.counts[i] += bits & 1;
  return t;
}();

/// Byte k of word j of 16 bytes becomes byte j of word k; then words of the same k come together.
alignas(16) inline constexpr std::uint8_t kBytesInOrder[] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                             2, 6, 10, 14, 3, 7, 11, 15};

template <int kWords>
struct WordsInOrder {
  alignas(64) std::int32_t from[kWords];
  constexpr WordsInOrder() : from{} {
    for (int q = 0; q < 4; ++q)
      for (int l = 0; l < kWords / 4; ++l) from[q * (kWords / 4) + l] = 4 * l + q;
  }
};
template <int kWords>
inline constexpr WordsInOrder<kWords> kWordsInOrder;

}  // namespace lamina::binary
