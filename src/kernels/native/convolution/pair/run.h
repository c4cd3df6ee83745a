#pragma once
/// Convolution and depthwise convolution line by line, channels-last; offer.cc makes the offers.
///
///     x  --parent-->  some lines of the tensor between, some channels  --window-->  lines of y
///
/// A task makes a band of output lines, of some columns when lines are long, for a block of channels, `step`
/// lines at a time. When the buffer is full, lines that the next step reads too are moved to its front.
/// Where x is far from the cache, it is fetched for the next step while windows are computed.
#include <vector>

#include "base/work_partition.h"
#include "kernels/native/convolution/depthwise/window.h"
#include "kernels/native/convolution/pair/parent.h"
#include "kernels/native/stages/epilogue.h"

namespace lamina::conv_depthwise {

/// Columns of the output, and those that they need of the tensor between.
struct Columns {
  std::int64_t first, count;
  std::int64_t from, width;
};

struct Pair {
  const Machine* machine = nullptr;  ///< outlives the pair
  windows::Geometry first, second;   ///< of the convolution, of the depthwise one
  Epilogue between, after;
  std::shared_ptr<const Parent> parent;
  const depthwise::Kernels* kernels = nullptr;
  depthwise::Kernel kernel = nullptr;
  std::vector<Columns> columns;
  Tensor window_weights, window_bias;
  bool stream = false;  ///< the output is too large for any cache
  // How the work is divided:
  std::int64_t block = 1, blocks = 1;  ///< panels of the parent in a task
  std::int64_t row = 0;                ///< floats from point to point of the buffer
  std::int64_t width = 1;              ///< points of its lines, at most
  std::int64_t step = 1;               ///< output lines at a time
  std::int64_t capacity = 1;           ///< lines of the buffer
  std::int64_t band = 1, bands = 1;    ///< output lines of a task
  WorkPartition shares;                ///< of the tasks; each slot has a buffer of lines

  /// Lines between that the windows of one output line span.
  std::int64_t extent() const { return (second.kernel[1] - 1) * second.dilation[1] + 1; }
  std::int64_t together() const { return std::min(step * second.stride[1], first.out[1]); }
  /// Lines between that so many output lines need.
  std::int64_t lines_for(std::int64_t lines) const {
    return std::min(first.out[1], (lines - 1) * second.stride[1] + extent());
  }
  std::int64_t parts() const { return static_cast<std::int64_t>(columns.size()) * blocks; }
  std::int64_t tasks() const { return first.images * bands * parts(); }
  /// Bytes of a buffer, whole cache lines.
  std::int64_t buffer_bytes() const { return round_up(capacity * width * row * 4, 64); }
  /// Bytes of a step's sums that are kept in scratch memory.
  std::int64_t apart_bytes() const {
    return after.apart_bytes(step * columns.at(0).count * second.outputs);  // the first are the most
  }
};

/// Bytes of RunArgs::scratch.
std::int64_t scratch_bytes(const Pair& code);
/// Runs on the threads of the current arena; allocates nothing.
void run(const Pair& code, const RunArgs& args);

}  // namespace lamina::conv_depthwise
