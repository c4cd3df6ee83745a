#pragma once
/// The shapes of the micro-kernels of matrix products on each level of instructions: what a product is cut
/// into depends on them, also on a machine that is not here.
#include "base/cpu.h"

namespace lamina::gemm {

inline constexpr int kMostRows = 14;
inline constexpr int kMostVectors = 3;
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
