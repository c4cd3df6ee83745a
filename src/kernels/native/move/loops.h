#pragma once
/// Vector code of copies (loops.simd.cc): transposes of elements of 4 bytes and of one.
#include <cstdint>

namespace lamina {

struct CopyLoops {
  /// dst[r * dst_row + c] = src[c * src_column + r], r < rows, c < columns.
  void (*transpose)(const std::uint32_t* src, std::int64_t src_column, std::uint32_t* dst,
                    std::int64_t dst_row, std::int64_t rows, std::int64_t columns) = nullptr;
  void (*transpose_bytes)(const std::uint8_t* src, std::int64_t src_column, std::uint8_t* dst,
                          std::int64_t dst_row, std::int64_t rows, std::int64_t columns) = nullptr;
  void (*fill)(std::uint32_t value, std::uint32_t* dst, std::int64_t count) = nullptr;
};

/// For the effective instruction set.
const CopyLoops& copy_loops();

}  // namespace lamina
