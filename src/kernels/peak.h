#pragma once
/// The machine's limits, measured: what the arithmetic units and the memory can do at most.
#include <cstddef>
#include <utility>
#include <vector>

namespace lamina {

struct MachineLimits {
  int threads = 1;
  double flops = 0;  ///< f32 multiply-adds per second in vector code of effective_isa(), times two
  /// Bytes read and written per second when that many bytes are touched again and again: caches first, memory
  /// last. Ascending.
  std::vector<std::pair<double, double>> bandwidth;

  /// Between the measured sizes by interpolation.
  double bandwidth_at(double bytes) const;
  /// Seconds that work takes at least: its arithmetic or its memory traffic, whichever is slower.
  double least_seconds(double flops, double bytes) const;
};

/// Takes about a tenth of a second, on so many threads.
MachineLimits measure_limits(int threads);

}  // namespace lamina
