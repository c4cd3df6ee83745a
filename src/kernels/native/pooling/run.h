#pragma once
/// Poolings: what offer.cc describes and run.cc runs.
#include <array>

#include "base/work_partition.h"
#include "kernels/kernel.h"
#include "kernels/native/pooling/loops.h"
#include "kernels/native/stages/program.h"

namespace lamina::pooling {

using Three = std::array<std::int64_t, 3>;

struct Windows {
  bool mean = false, exclude_pad = true;
  std::int64_t batch = 1, channels = 1;
  Three in{1, 1, 1}, out{1, 1, 1};
  std::array<std::vector<PoolRange>, 3> ranges;
  // Windows along the last axis that are whole, see PoolRow.
  std::int64_t whole_begin = 0, whole_end = 0, stride = 1, pad = 0;
  PoolLoops::Run rows = nullptr;
  std::int64_t piece = 1;  ///< see outputs_of_piece()
  WorkPartition all;       ///< of rows of outputs, in all planes
  std::shared_ptr<const StageProgram> stages;
  Rows x, made, y;  ///< made: what windows give; y: behind the stages
  // The second output, the indices of the maxima.
  bool with_indices = false, wide_indices = true, column_major = false;
  std::int64_t index_range = 1;  ///< indices are taken modulo this
};

/// Positions in all windows.
double work_of(const Windows& code);

/// Outputs of a row that are found before the run may stop: windows may be as large as the picture.
std::int64_t outputs_of_piece(const Windows& code, Layout layout);

/// Elements of a piece whose results have another size; a pixel must fit into it.
inline constexpr std::int64_t kTile = 4096;

/// Row of outputs after row, by vector code.
void run_rows(const Windows& code, const RunArgs& args);

/// Element by element, plain: maxima of any type, and indices. Null for types that it does not know.
using Planes = void (*)(const Windows&, const RunArgs&);
Planes planes_of(ElementType type);

}  // namespace lamina::pooling
