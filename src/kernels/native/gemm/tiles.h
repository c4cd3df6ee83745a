#pragma once
/// Micro-kernels of matrix products: a few rows by a few vectors of columns, held in registers.
///
///     c[m][j] = finish(bias[j] + sum over k of a[m][k] * b[k][j])
///
/// Rows of A are equally far from each other. Their k is cut in segments that lie together: one for a plain
/// product, one per line of taps for a convolution. b is a panel: its columns are whole vectors, row k lies
/// at b + k * b_row. Compiled once per instruction set (simd/per_isa.h), for each Arithmetic: a k is a word
/// of A, and where that is several integers, products of all of them are summed.
#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "kernels/native/gemm/shape.h"
#include "kernels/native/simd/finish.h"

namespace lamina::gemm {

/// k from `b` to `b + length` (rows of the panel) is read at element a of each row of A and behind it.
struct Segment {
  std::int64_t a, b, length;
};

/// One call of a micro-kernel: its rows by one or more panels, one after the other; then the next set of
/// rows, and so on.
struct Tile {
  const std::byte* a;
  std::int64_t a_step;  ///< bytes from one row to the next
  const Segment* segments;
  std::int64_t segment_count;
  const std::byte* b;
  std::int64_t b_row;       ///< bytes from one row of a panel to the next
  std::int64_t b_panel;     ///< bytes from one panel to the next
  std::int64_t steps;       ///< panels, or groups of as many as the kernel takes at once
  const std::byte* ahead;   ///< of B, what is read next and lies in no near cache, or null
  std::int64_t ahead_move;  ///< bytes of it to fetch per four k
  std::byte* c;
  std::int64_t c_step;   ///< bytes from one row to the next
  const std::byte* add;  ///< added before the finish, or null; lies like c, but for add_step
  std::int64_t add_step;
  std::int64_t columns;                   ///< to store: all of the panels', or fewer
  std::int64_t channel;                   ///< of the whole result that is the first column
  const void* bias;                       ///< whole vectors of sums, or null for zeros
  std::int64_t repeat;                    ///< sets of rows
  std::int64_t a_move, c_move, add_move;  ///< bytes from one set to the next
  bool accumulate;                        ///< c holds the sums of earlier k, which are added
  bool last;                              ///< of k: add and finish are due
  Finish finish;                          ///< of f32
  IntegerFinish integers;                 ///< of i32
};

using Kernel = void (*)(const Tile&);

/// The micro-kernels of one instruction set.
struct Tiles {
  TileShape shape;
  Kernel kernels[kMostVectors + 1][kMostRows + 1];  ///< [vectors][rows]
  Kernel wide[kMostRows + 1];  ///< by rows, of shape.panels panels of two vectors at once
  /// to[k][j] = from[j * from_row + k] for k < depth, j < columns; rows of `to` are `to_row` floats apart.
  /// Columns up to a whole vector are filled with zeros.
  void (*pack_transposed)(const float* from, std::int64_t from_row, std::int64_t depth, std::int64_t columns,
                          float* to, std::int64_t to_row);
};

/// The tiles of this process' instruction set.
const Tiles& tiles();
/// The tiles of an arithmetic; of quads only if multiplies_quads().
const Tiles& tiles(Arithmetic arithmetic);

/// Whether there are kernels of quads; with AVX-VNNI or AVX-512 VNNI.
bool multiplies_quads(const Machine& machine);

}  // namespace lamina::gemm
