#pragma once
/// Sums of integers that lie in memory, finished: for kernels that do not have them in registers at the end.
#include <cstddef>
#include <cstdint>

#include "kernels/native/simd/finish.h"

namespace lamina {

/// Points of some channels.
struct SumRows {
  const std::int32_t* sums;  ///< vectors that begin at a channel may be read whole
  std::int64_t sums_step;    ///< from point to point
  std::byte* out;            ///< of the first point, at the first channel
  std::int64_t out_step;     ///< bytes from point to point
  const std::byte* added;    ///< row of the second tensor, or null
  std::int64_t added_step;
  std::int64_t points;
  std::int64_t channel, channels;  ///< the first, and how many
};
void finish_rows(const IntegerFinish& finish, const SumRows& rows);

}  // namespace lamina
