#pragma once
/// Vector code of local response normalisation (lrn_loops.simd.cc).
#include <cstdint>

namespace lamina {

struct LrnLoops {
  /// out[i] = sum over the rows of rows[k][i], of its square where `square`.
  void (*sum_rows)(const float* const* rows, std::int64_t row_count, bool square, float* out,
                   std::int64_t count) = nullptr;
  /// out[i] = sum of line[i] .. line[i + size - 1].
  void (*sum_line)(const float* line, std::int64_t size, float* out, std::int64_t count) = nullptr;
  /// y = x / (bias + scale * sum)^beta
  void (*divide)(const float* x, const float* sums, float* y, std::int64_t count, float bias, float scale,
                 float beta) = nullptr;
};

/// The loops for the effective instruction set.
const LrnLoops& lrn_loops();

}  // namespace lamina
