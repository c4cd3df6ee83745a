#pragma once
/// How tensors lie that cross the border: LAMINA_PLAIN, LAMINA_CHANNELS_LAST, LAMINA_BLOCKED_8 and _16.
#include <cstdint>

#include "lamina/tensor.h"

namespace lamina {

/// Channels of a block; 0 for layouts that have none.
std::int64_t block_of(std::int32_t layout);
/// Whether a tensor of that type and shape can lie so.
bool can_lie(ElementType type, std::size_t rank, std::int32_t layout);
std::size_t bytes_in(ElementType type, const Dims& shape, std::int32_t layout);
/// Strides in elements, by the axes of the shape; empty for blocked layouts.
Dims strides_in(const Dims& shape, std::int32_t layout);
/// Copies of dense tensors of whole bytes; what is behind the last channel of a block becomes zero.
/// Thread-safe.
void arrange(ElementType type, const Dims& shape, std::int32_t layout, const void* plain, void* to);
/// What is behind the last channel of blocked tensors becomes zero. Thread-safe.
void clear_padding(ElementType type, const Dims& shape, std::int32_t layout, void* data);
/// Whether each byte of it is 0 or `left`. Thread-safe.
bool padding_is(ElementType type, const Dims& shape, std::int32_t layout, const void* data, std::byte left);
void make_plain(ElementType type, const Dims& shape, std::int32_t layout, const void* from, void* plain);

}  // namespace lamina
