#include "extension/arrange.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "lamina/extension.h"

namespace lamina {
namespace {

constexpr std::int64_t kElementsOfAThread = 4096;

struct Sizes {
  std::int64_t images, channels, points;
};
Sizes sizes_of(const Dims& shape) {
  Sizes s{shape[0], shape[1], 1};
  for (std::size_t i = 2; i < shape.size(); ++i) s.points *= shape[i];
  return s;
}

/// Copies blocked and channels-last data: blocks of `block` channels, the points of a block one after the
/// other.
template <class T>
void pack(const Sizes& s, std::int64_t block, const T* from, T* to) {
  const auto blocks = ceil_div(s.channels, block);
  parallel_for(s.images * blocks, ceil_div(kElementsOfAThread, block * s.points + 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i) {
                   const auto first = i % blocks * block, count = std::min(block, s.channels - first);
                   const T* const source = from + (i / blocks * s.channels + first) * s.points;
                   T* const target = to + i * block * s.points;
                   for (std::int64_t p = 0; p < s.points; ++p)
                     for (std::int64_t c = 0; c < block; ++c)
                       target[p * block + c] = c < count ? source[c * s.points + p] : T{0};
                 }
               });
}

template <class T>
void unpack(const Sizes& s, std::int64_t block, const T* from, T* to) {
  const auto blocks = ceil_div(s.channels, block);
  parallel_for(s.images * blocks, ceil_div(kElementsOfAThread, block * s.points + 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i) {
                   const auto first = i % blocks * block, count = std::min(block, s.channels - first);
                   const T* const source = from + i * block * s.points;
                   T* const target = to + (i / blocks * s.channels + first) * s.points;
                   for (std::int64_t c = 0; c < count; ++c)
                     for (std::int64_t p = 0; p < s.points; ++p)
                       target[c * s.points + p] = source[p * block + c];
                 }
               });
}

template <class F>
void with_bytes(ElementType type, const F& f) {
  switch (bits_of(type)) {
    case 8:
      return f(std::uint8_t{});
    case 16:
      return f(std::uint16_t{});
    case 32:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

/// f(data, bytes) for each point of the last block of each image: what is behind the last channel there.
template <class F>
void each_padding(ElementType type, const Dims& shape, std::int32_t layout, std::byte* data, const F& f) {
  const auto block = block_of(layout);
  if (block == 0 || element_count(shape) == 0 || shape[1] % block == 0) return;
  const auto sizes = sizes_of(shape);
  const std::int64_t element = bits_of(type) / 8, used = sizes.channels % block;
  const auto point = element * block, image = point * sizes.points * ceil_div(sizes.channels, block);
  for (std::int64_t n = 1; n <= sizes.images; ++n)
    for (auto p = sizes.points; p > 0; --p)
      f(data + n * image - p * point + used * element, static_cast<std::size_t>((block - used) * element));
}

bool lies_plain(const Dims& shape, std::int32_t layout) { return layout == LAMINA_PLAIN || shape.size() < 3; }

}  // namespace

std::int64_t block_of(std::int32_t layout) {
  return layout == LAMINA_BLOCKED_8 ? 8 : layout == LAMINA_BLOCKED_16 ? 16 : 0;
}

bool can_lie(ElementType type, std::size_t rank, std::int32_t layout) {
  return layout == LAMINA_PLAIN ||
         (layout > LAMINA_PLAIN && layout <= LAMINA_BLOCKED_16 && rank >= 3 && bits_of(type) >= 8);
}

std::size_t bytes_in(ElementType type, const Dims& shape, std::int32_t layout) {
  Dims padded = shape;
  if (const auto block = block_of(layout); block != 0) padded[1] = round_up(shape[1], block);
  return (element_count(padded) * static_cast<std::size_t>(bits_of(type)) + 7) / 8;
}

Dims strides_in(const Dims& shape, std::int32_t layout) {
  if (block_of(layout) != 0) return {};
  Dims strides(shape.size(), 1);
  const bool last = layout == LAMINA_CHANNELS_LAST && shape.size() >= 3;
  std::int64_t step = last ? shape[1] : 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (last && i == 1) continue;
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

void arrange(ElementType type, const Dims& shape, std::int32_t layout, const void* plain, void* to) {
  const auto bytes = bytes_in(type, shape, layout);
  if (bytes == 0) return;
  if (lies_plain(shape, layout)) {
    std::memcpy(to, plain, bytes);
    return;
  }
  const auto sizes = sizes_of(shape);
  with_bytes(type, [&]<class T>(T) {
    pack(sizes, layout == LAMINA_CHANNELS_LAST ? sizes.channels : block_of(layout),
         static_cast<const T*>(plain), static_cast<T*>(to));
  });
}

void clear_padding(ElementType type, const Dims& shape, std::int32_t layout, void* data) {
  each_padding(type, shape, layout, static_cast<std::byte*>(data),
               [](std::byte* at, std::size_t bytes) { std::memset(at, 0, bytes); });
}

bool padding_is(ElementType type, const Dims& shape, std::int32_t layout, const void* data, std::byte left) {
  bool good = true;
  each_padding(type, shape, layout, static_cast<std::byte*>(const_cast<void*>(data)),
               [&](const std::byte* at, std::size_t bytes) {
                 good = good && std::all_of(at, at + bytes,
                                            [&](std::byte b) { return b == std::byte{0} || b == left; });
               });
  return good;
}

void make_plain(ElementType type, const Dims& shape, std::int32_t layout, const void* from, void* plain) {
  const auto bytes = bytes_in(type, shape, LAMINA_PLAIN);
  if (bytes == 0) return;
  if (lies_plain(shape, layout)) {
    std::memcpy(plain, from, bytes);
    return;
  }
  const auto sizes = sizes_of(shape);
  with_bytes(type, [&]<class T>(T) {
    unpack(sizes, layout == LAMINA_CHANNELS_LAST ? sizes.channels : block_of(layout),
           static_cast<const T*>(from), static_cast<T*>(plain));
  });
}

}  // namespace lamina
