#pragma once
/// How elements lie that kernels read and write point after point.
#include <type_traits>

#include "kernels/bits.h"
#include "kernels/layout.h"

namespace lamina {

/// A point is a pixel of a channels-last tensor with its channels, or a row of a matrix. Points of a slice of
/// a wider tensor's channels are further from each other than they are long.
struct Rows {
  ElementType element = ElementType::f32;
  Layout layout = Layout::plain;
  std::int64_t channels = 1;  ///< elements of a point
  std::int64_t step = 1;      ///< elements from one point to the next; bits: those of whole words

  Rows() = default;
  /// Dense.
  Rows(ElementType type, Layout how, std::int64_t elements)
      : element(type),
        layout(how),
        channels(elements),
        step(how == Layout::channels_last_bits ? 8 * bits::point_bytes(elements) : elements) {}
  static Rows of(ElementType type, const Dims& dims, Layout layout) {
    return {type, layout, layout != Layout::plain ? dims.at(1) : dims.empty() ? 1 : dims.back()};
  }

  bool bits() const { return layout == Layout::channels_last_bits; }
  bool dense() const { return step == channels; }
  std::int64_t bytes(std::int64_t elements) const {
    return bits() ? elements / 8 : elements * (bits_of(element) / 8);
  }
  /// Where an element is of the tensor that begins there.
  template <class T, class Memory>
  T* at(Memory* tensor, std::int64_t point, std::int64_t channel = 0) const {
    using Byte = std::conditional_t<std::is_const_v<Memory>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(tensor) + bytes(point * step + channel));
  }
};

}  // namespace lamina
