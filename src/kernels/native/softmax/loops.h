#pragma once
/// Vector code of Softmax and LogSoftmax (loops.simd.cc).
#include <cstdint>

#include "base/cpu.h"

namespace lamina {

/// Softmax of [outer][size][inner] along the middle; `out` may be `in`.
struct SoftmaxJob {
  const float* in = nullptr;
  float* out = nullptr;
  std::int64_t size = 0, inner = 0;
  bool log = false;
};

struct SoftmaxTable {
  std::int64_t lanes = 0;
  /// Lines of at most so many elements are cheaper side by side.
  std::int64_t short_line = 0;
  /// inner = 1: lines [begin, end), vectors along each.
  void (*lines)(const SoftmaxJob&, std::int64_t begin, std::int64_t end) = nullptr;
  /// inner = 1: lines [begin, end) with a line per lane.
  void (*short_lines)(const SoftmaxJob&, std::int64_t begin, std::int64_t end) = nullptr;
  /// Pieces [begin, end) of the columns: piece p is columns(p % pieces) of the outer index p / pieces, with
  /// pieces = ceil(inner / column_count).
  void (*columns)(const SoftmaxJob&, std::int64_t begin, std::int64_t end) = nullptr;
  std::int64_t column_count = 0;
};

/// The table of that level of instructions.
const SoftmaxTable& softmax_table(Isa isa);

}  // namespace lamina
