#pragma once
/// Vector code of normalisations (loops.simd.cc).
///
/// Moments are taken of chunks that stay in the L1 cache, about their first element and then about their own
/// mean: lines that are nearly constant keep their precision. Callers merge chunks in double.
#include <cstdint>

namespace lamina {

/// What the difference to the mean (the element itself for squares) is divided by; v: the variance, or the
/// sum or the mean of squares.
enum class NormalizeDivisor : std::uint8_t {
  one,
  sqrt_of_v_plus_eps,
  sqrt_of_v_plus_eps_outside,
  sqrt_of_most
};

/// Whether f32 has kept the digits of a sum (or a mean) of squares: they leave its range before their roots
/// do. What is too small does not matter beside `eps`.
constexpr bool keeps_squares(float squares, double eps) {
  return squares < 1e30F && (squares > 1e-32F || eps >= 1e-13);
}

/// Lines that fit into the L1 cache, each normalised by itself.
struct NormalizeShortLines {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t count = 0;  ///< of a line
  NormalizeDivisor divisor = NormalizeDivisor::one;
  bool squares = false, mean_of_squares = false;
  double eps = 0;
  const float *scale = nullptr, *bias = nullptr;  ///< per element, or null
};

struct NormalizeLoops {
  void (*short_lines)(const NormalizeShortLines& lines, std::int64_t begin, std::int64_t end) = nullptr;
  /// *sum: of x[i] - x[0], where that is finite, else of x[i]; *squares: of (x[i] - mean)^2.
  void (*line_moments)(const float* x, std::int64_t count, float* sum, float* squares) = nullptr;
  /// Sum of x[i]^2.
  float (*line_squares)(const float* x, std::int64_t count) = nullptr;
  /// Moments of each of `columns` columns of rows that are `stride` elements apart.
  void (*column_moments)(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                         float* sums, float* squares) = nullptr;
  void (*column_squares)(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                         float* squares) = nullptr;
  /// y = ((x - shift) * factor + offset) * scale + bias; scale and bias may be null.
  void (*scale_line)(const float* x, float* y, std::int64_t count, float shift, float factor, float offset,
                     const float* scale, const float* bias) = nullptr;
  /// y = (x - shift) * factor + offset, numbers by column.
  void (*scale_columns)(const float* x, float* y, std::int64_t rows, std::int64_t stride,
                        std::int64_t columns, const float* shift, const float* factor,
                        const float* offset) = nullptr;
};

/// The loops for the effective instruction set.
const NormalizeLoops& normalize_loops();

}  // namespace lamina
