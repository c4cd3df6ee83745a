#pragma once
/// Sources of products of integers, copied as kernels read them.
#include <cstdint>

#include "base/work_partition.h"
#include "kernels/native/integer/operands.h"

namespace lamina::integers {

/// How numbers of a source become those of a product.
enum class Copy : std::uint8_t { words_of_unsigned, words_of_signed, bytes, shifted_bytes };

struct SourceLoops {
  /// to[i] = from[i] - zero as 16 bits, where words are wanted; else bytes, or those with 128 added.
  void (*copy[4])(const std::uint8_t* from, std::int64_t count, std::int32_t zero, std::byte* to);
};
/// The loops for the effective instruction set.
const SourceLoops& source_loops();

/// Pictures, or matrices as lines of points. What lies around a picture is its zero point.
struct SourceCopy {
  Copy how = Copy::bytes;
  std::int64_t images = 1;
  std::int64_t channels = 1;         ///< numbers of a point
  std::int64_t in[3] = {1, 1, 1};    ///< depth, height, width
  std::int64_t from[3] = {0, 0, 0};  ///< first of a copy, which may be less than 0
  std::int64_t out[3] = {1, 1, 1};   ///< sizes of the copy
  std::int64_t point = 1, channel = 1, line = 1, plane = 1, image = 1;  ///< numbers from one to the next
  WorkPartition partition;

  std::int64_t element() const { return how == Copy::bytes || how == Copy::shifted_bytes ? 1 : 2; }
  std::int64_t numbers() const { return images * out[0] * out[1] * out[2] * channels; }
  /// Bytes of the copy, with those that kernels read behind its last number.
  std::int64_t bytes() const {
    return round_up(numbers() * element() + 2 * gemm::kWordBytes, std::int64_t{64});
  }
  Cost cost(const Machine& machine) const;
  /// Call last.
  void plan_partition(const Machine& machine);
  void run(const void* source, std::int32_t zero, void* copy) const;

 private:
  void lines(const std::uint8_t* source, std::int32_t zero, std::byte* copy, std::int64_t begin,
             std::int64_t end) const;
};
Copy copy_of(const Operands& o);

}  // namespace lamina::integers
