#pragma once
/// Normalisations: what offer.cc prepares and run.cc runs.
#include "base/work_partition.h"
#include "kernels/kernel.h"
#include "kernels/native/normalize/loops.h"
#include "kernels/native/stages/program.h"

namespace lamina {

/// Data in memory order is [outer][rows][columns]. Lines: columns = 1, each [rows] is normalised by itself
/// (so is [outer]). Columns: each column is, or each group of `fold` neighbouring ones.
struct Normalization {
  enum class Measure : std::uint8_t { variance, mean, squares };
  using Divisor = NormalizeDivisor;
  /// What follows: per element of a line, or per channel (a line is cut into channels of `channel` elements).
  enum class Affine : std::uint8_t { none, element, channel };

  std::int64_t outer = 1, rows = 1, columns = 1, fold = 1;
  Measure measure = Measure::variance;
  Divisor divisor = Divisor::sqrt_of_v_plus_eps;
  bool mean_of_squares = false;
  double eps = 0;
  Affine affine = Affine::none;
  std::int64_t channels = 1;  ///< Affine::channel: of the whole tensor
  std::int64_t channel = 1;   ///< elements of one, for lines
  Dims line;                  ///< shape to which scale and bias are expanded
  Tensor scale, bias;         ///< constants to expand, and expanded; else inputs 1 and 2 are read
  bool reads_scale = false, reads_bias = false;
  std::int64_t parts = 1;  ///< into which the rows of one outer index are cut for threads
  WorkPartition all;       ///< of lines, of blocks of columns, or of their parts
  std::shared_ptr<const StageProgram> stages;

  /// Columns whose numbers must be kept between passes: scratch.
  bool in_passes() const { return columns > 1 && (parts > 1 || fold > 1); }
};

/// Bytes of scratch; divides the work, which takes so long on one thread.
std::size_t plan_normalize(Normalization& code, double microseconds);
void run_normalize(const Normalization& code, const RunArgs& args);

}  // namespace lamina
