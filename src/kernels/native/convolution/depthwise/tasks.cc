#include "kernels/native/convolution/depthwise/tasks.h"

#include <algorithm>

#include "base/parallel.h"

namespace lamina::depthwise {
namespace {

/// Duration of a task, unless something asks for a shorter one.
constexpr double kTaskMicroseconds = 40;

}  // namespace

Tasks tasks_of(const Machine& machine, const windows::Geometry& g, const Work& work) {
  Tasks tasks;
  tasks.vectors = work.vectors;
  tasks.height = g.out[1];
  const double line_us = work.us / static_cast<double>(g.images * g.out[1]);
  const std::int64_t line_bytes = work.bytes * g.in[2] * g.outputs * g.stride[1];
  const auto by_cache = std::max<std::int64_t>(
      4, static_cast<std::int64_t>(machine.l2 / 8 * 3) / std::max<std::int64_t>(1, line_bytes));
  const auto wanted = units_wanted(work.us, threads_here());
  // Small pictures of many channels: lines share input, channels do not. But stages want whole points.
  const double task_us = work.by_channels
                             ? kTaskMicroseconds
                             : std::min(kTaskMicroseconds, work.us / static_cast<double>(wanted));
  tasks.bands = even_parts(
      g.out[1], std::clamp<std::int64_t>(static_cast<std::int64_t>(task_us / line_us) / 2 * 2, 2, by_cache));
  tasks.parts.size = work.vectors;
  const auto have = g.images * tasks.bands.number;
  if (work.by_channels && have < wanted) {
    tasks.parts = even_parts(work.vectors, work.vectors * have / wanted);
    // Vectors that overlap stay in one task.
    if (tasks.parts.number > 1 && work.vectors - (tasks.parts.number - 1) * tasks.parts.size == 1)
      --tasks.parts.number;
  }
  tasks.partition = partitioned_here(have * tasks.parts.number, work.us);
  return tasks;
}

Task Tasks::at(std::int64_t index) const {
  const std::int64_t part = index % parts.number, band = index / parts.number % bands.number;
  Task t;
  t.image = index / parts.number / bands.number;
  t.line = band * bands.size;
  t.lines = std::min(bands.size, height - t.line);
  t.vector = part * parts.size;
  t.vectors = (part + 1 == parts.number ? vectors : t.vector + parts.size) - t.vector;
  return t;
}

}  // namespace lamina::depthwise
