#pragma once
/// Moving elements between strided views: what transposes, concats, splits, slices and pads come down to.
#include <memory>
#include <vector>

#include "base/work_partition.h"
#include "kernels/kernel.h"

namespace lamina {

/// dst[dst_offset + sum i_k * dst_strides_k] = src[src_offset + sum i_k * src_strides_k]; all in elements.
/// Strides may be 0 (source) or negative (source).
struct CopyJob {
  Dims dims, src_strides, dst_strides;
  std::int64_t src_offset = 0, dst_offset = 0;
  std::size_t src = 0, dst = 0;  ///< which input and output of the node
};

/// The copy with unit axes dropped and with axes merged that are contiguous in both; the axis with the
/// smallest destination stride last.
CopyJob simplified(CopyJob job);

/// How so many units are run that copy so many bytes each.
WorkPartition moves(std::int64_t units, std::int64_t unit_bytes);

/// Runs the (simplified) copy on threads of the current arena.
void run_copy(const CopyJob& job, std::size_t element_bytes, const std::byte* src, std::byte* dst);

/// Bytes of one element, or 0 for packed types.
std::size_t whole_bytes(ElementType type);

// Families of native kernels, registered by add_native_kernels().

}  // namespace lamina
