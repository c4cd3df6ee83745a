#pragma once
/// How depthwise convolutions are cut: bands of lines whose input stays in L2, then vectors of channels.
#include "base/work_partition.h"
#include "kernels/native/convolution/window.h"

namespace lamina::depthwise {

struct Task {
  std::int64_t image, line, lines, vector, vectors;  ///< the first line and vector of channels, and how many
};

struct Tasks {
  std::int64_t vectors = 1, height = 1;  ///< of channels; lines of a picture
  Parts bands{}, parts{};
  WorkPartition partition{};

  Task at(std::int64_t index) const;
};

/// What is known of the work: on one thread, bytes of an input, vectors of channels, and whether they may be
/// in several tasks.
struct Work {
  double us = 0;
  std::int64_t bytes = 4, vectors = 1;
  bool by_channels = true;
};
Tasks tasks_of(const Machine& machine, const windows::Geometry& g, const Work& work);

}  // namespace lamina::depthwise
