#pragma once
/// Walking over broadcast operands line by line, with numbers brought into f32 or i64 buffers.
#include <array>
#include <cstddef>

#include "kernels/kernel.h"

namespace lamina {

/// Operands seen through the output's memory order: the output is dense, operand k steps by strides[k].
struct Lines {
  Dims dims;                  ///< merged; the last is the line
  std::vector<Dims> strides;  ///< per operand
};

/// `operands[k]` broadcasts to `out` (numpy rules after right alignment); operands of the output's rank lie
/// in `layout` as the output does, others are plain.
Lines lines_of(const Dims& out, Layout layout, const std::vector<Dims>& operands);

/// Elements per chunk that bodies see at most.
inline constexpr std::int64_t kChunk = 512;

/// Calls body(first, offsets, count) for chunks of lines, on threads of the arena: `first` is the chunk's
/// place in the output, offsets[k] where operand k starts (elements); along the chunk it steps by
/// strides[k].back().
void for_each_chunk(
    const Lines& lines,
    const std::function<void(std::int64_t first, const std::int64_t* offsets, std::int64_t count)>& body);

/// Elements of any whole-byte type as floats or integers: a pointer into `data` when it is dense and of that
/// type already, else converted into `buffer` (kChunk elements).
const float* load_floats(ElementType type, const void* data, std::int64_t offset, std::int64_t stride,
                         std::int64_t count, float* buffer);
const std::int64_t* load_ints(ElementType type, const void* data, std::int64_t offset, std::int64_t stride,
                              std::int64_t count, std::int64_t* buffer);
/// Writes them as `type`: floats to integers truncate and saturate, integers wrap.
void store_floats(ElementType type, void* data, std::int64_t offset, std::int64_t count, const float* values);
void store_ints(ElementType type, void* data, std::int64_t offset, std::int64_t count,
                const std::int64_t* values);
/// True for the types these four know.
bool has_lines(ElementType type);

}  // namespace lamina
