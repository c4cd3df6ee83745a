#pragma once
/// How tensors lie in memory.
#include <cstddef>
#include <optional>
#include <string_view>

#include "lamina/tensor.h"

namespace lamina {

/// How a tensor lies in memory. channels_last: N, spatial..., C (rank 3 and more); plain: as the shape says.
/// channels_last_bits: booleans as bits, which only some kernels read and write
/// (kernels/bits.h); nothing is copied from it or to it while a plan runs.
enum class Layout : std::uint8_t { plain, channels_last, channels_last_bits };
std::string_view name_of(Layout layout);
std::optional<Layout> layout_named(std::string_view name);
/// Strides, in elements, of the logical axes of a dense tensor in that layout; not of bits.
Dims strides_of(const Dims& shape, Layout layout);
/// Bytes of a dense tensor in that layout.
std::size_t memory_bytes(ElementType type, const Dims& shape, Layout layout);

}  // namespace lamina
