#include "kernels/native/resize/shuffles.h"

#include <algorithm>

namespace lamina {

ResizeShuffles shuffles_of(const ResizeTable& t, std::int64_t pixel_bytes) {
  constexpr std::int64_t kBytes = 16, kLargestPixel = 4;
  const auto in = t.in * pixel_bytes, out = t.out * pixel_bytes;
  if (pixel_bytes > kLargestPixel || in < kBytes || out < kBytes || in > INT32_MAX) return {};
  const auto source = [&](std::int64_t byte) {
    return t.index[static_cast<std::size_t>(byte / pixel_bytes)] * pixel_bytes + byte % pixel_bytes;
  };
  ResizeShuffles s;
  for (std::int64_t at = 0; at < out; at += kBytes) {
    const auto first = std::min(at, out - kBytes);
    std::int64_t from = in - kBytes;
    for (std::int64_t i = 0; i < kBytes; ++i) from = std::min(from, source(first + i));
    s.from.push_back(static_cast<std::int32_t>(from));
    for (std::int64_t i = 0; i < kBytes; ++i) {
      const auto place = source(first + i) - from;
      if (place >= kBytes) return {};
      s.places.push_back(static_cast<std::uint8_t>(place));
    }
  }
  s.bytes = out;
  return s;
}

}  // namespace lamina
