#pragma once
/// Vector code of copies (loops.simd.cc).
#include <cstdint>

namespace lamina {

/// dst[r * dst_row + c] = src[c * src_column + r], r < rows, c < columns.
template <class T>
using Transpose = void (*)(const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row,
                           std::int64_t rows, std::int64_t columns);

struct CopyLoops {
  Transpose<std::uint8_t> transpose_bytes = nullptr;
  Transpose<std::uint16_t> transpose_halves = nullptr;
  Transpose<std::uint32_t> transpose_words = nullptr;
  void (*fill)(std::uint32_t value, std::uint32_t* dst, std::int64_t count) = nullptr;
};

/// The loops for the effective instruction set.
const CopyLoops& copy_loops();

}  // namespace lamina
