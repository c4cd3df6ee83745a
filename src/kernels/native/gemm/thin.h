#pragma once
/// Products of few rows with a B that lies as the model has it: packing it would take as long as the product.
///
///     c[m][n] = finish(bias[n] + add[m][n] + sum over k of a[m][k] * b[n][k])
///
/// Vectors run along what lies together in B: along k in `lists` (b[n] is a list of k), along the columns in
/// `lines` (all columns of a k lie together).
#include <cstdint>

#include "kernels/native/simd/finish.h"

namespace lamina::gemm {

/// How B lies.
enum class Order : std::uint8_t {
  panels,  ///< in panels, or its rows in place, for tiles (tiles.h)
  lists,
  lines,
};

/// Rows and columns that lines take together at most: sums of such a block stay in L1.
inline constexpr std::int64_t kMostLineRows = 12, kLineColumns = 512;

struct ThinTile {
  const float* a;
  std::int64_t a_step, rows;  ///< floats from row to row
  const float* b;
  std::int64_t b_step;  ///< floats from list to list, or from line to line
  std::int64_t depth, columns;
  float* c;
  std::int64_t c_step;
  const float* add;  ///< added before the finish, or null; may be c
  std::int64_t add_step;
  const float* bias;  ///< one per column, or null
  Finish finish;
};

struct Thin {
  void (*lists)(const ThinTile&);
  void (*lines)(const ThinTile&);
};

/// The thin products of this process' instruction set.
const Thin& thin();

}  // namespace lamina::gemm
