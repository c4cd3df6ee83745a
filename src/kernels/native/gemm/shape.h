#pragma once
/// The shapes of the micro-kernels of matrix products on each level of instructions, and what they multiply:
/// what a product is cut into depends on them, also on a machine that is not here.
#include <cstdint>

#include "base/cpu.h"

namespace lamina::gemm {

/// What a k of a product is: always a word of 4 bytes of A. Those of integers have sums of 32 bits, and B
/// holds as many numbers for a k and a column as the word does.
enum class Arithmetic : std::uint8_t {
  floats,         ///< one f32
  pairs,          ///< two numbers of 16 bits by two signed ones of 8
  wide_pairs,     ///< by two of 16
  matched_quads,  ///< four unsigned ones of 8 bits by four whose pairs have been chosen (matched_order.h):
                  ///< small quads
  small_quads,    ///< by four within +-64: sums of two stay within 16 bits
  quads,          ///< by any four signed ones of 8: VNNI
};
inline constexpr std::int64_t kWordBytes = 4;

/// Bytes of the operands.
struct Units {
  std::int64_t element;  ///< of a number of A, the unit of places in it
  std::int64_t cell;     ///< of B, for a k and a column: the unit of places in it
  constexpr std::int64_t in_word() const { return kWordBytes / element; }  ///< numbers of a k
};
constexpr Units units_of(Arithmetic a) {
  return a == Arithmetic::floats       ? Units{4, 4}
         : a == Arithmetic::pairs      ? Units{2, 2}
         : a == Arithmetic::wide_pairs ? Units{2, 4}
                                       : Units{1, 4};
}

inline constexpr int kMostRows = 14;
inline constexpr int kMostVectors = 3;
/// Most sums of integers that are finished together.
inline constexpr int kHeldSums = 1024;
inline constexpr int kMostDotColumns = 8;

/// Kernels that hold rows by vectors of columns (tiles.h).
struct TileShape {
  int lanes;                   ///< floats in a vector
  int rows[kMostVectors + 1];  ///< most rows of a kernel, by vectors of its panel
  /// By rows: how many panels of two vectors a kernel takes at once; 0: one.
  int panels[kMostRows + 1];
  int flat;  ///< rows of such a kernel that is best when its panels stay in L1, or 0
};

/// Kernels whose vectors run along k (dots.h).
struct DotShape {
  int columns;                    ///< most columns for which there are kernels
  int rows[kMostDotColumns + 1];  ///< of a kernel, by columns
};

/// Floats in a vector.
constexpr int lanes_of(Isa isa) { return isa == Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : 4; }

/// AVX-512 has 32 registers, the others 16. A few rows take several panels, which makes up for it.
constexpr TileShape tile_shape(int lanes) {
  if (lanes == 16) return {16, {0, 14, 14, 7}, {0, 4, 4, 4, 2, 2, 2}, 6};
  return {lanes, {0, 12, 6, 4}, {0, 4, 2, 2}, 0};
}

constexpr DotShape dot_shape(int lanes) {
  if (lanes == 16) return {8, {0, 12, 12, 6, 6, 4, 4, 3, 3}};
  return {4, {0, 12, 6, 4, 3}};
}

}  // namespace lamina::gemm
