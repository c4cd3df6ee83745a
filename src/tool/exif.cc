#include "tool/exif.h"

#include <utility>

namespace lamina::tool {
namespace {

/// Numbers of a TIFF file; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(std::span<const std::byte> bytes) : bytes_(bytes) { little_ = number(0, 1) == 'I'; }
  std::size_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<std::size_t>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_ = false;
};

constexpr std::size_t kMagic = 42, kOrientation = 0x0112, kEntry = 12;

}  // namespace

int exif_orientation(std::span<const std::byte> bytes) {
  const Tiff tiff(bytes);
  if (tiff.number(2, 2) != kMagic) return 1;
  const auto directory = tiff.number(4, 4), count = tiff.number(directory, 2);
  for (std::size_t i = 0; i < count && directory + 2 + i * kEntry < bytes.size(); ++i) {
    const auto entry = directory + 2 + i * kEntry;
    if (tiff.number(entry, 2) != kOrientation) continue;
    const auto value = tiff.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image turned_upright(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // 5 to 8 stand on their side: their rows are columns.
  const bool side = orientation >= 5;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image out = image;
  if (side) std::swap(out.width, out.height);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      const int column = side ? y : x, row = side ? x : y;
      const auto from = static_cast<std::size_t>(from_bottom ? image.height - 1 - row : row) *
                            static_cast<std::size_t>(image.width) +
                        static_cast<std::size_t>(from_right ? image.width - 1 - column : column);
      const auto to =
          static_cast<std::size_t>(y) * static_cast<std::size_t>(out.width) + static_cast<std::size_t>(x);
      for (std::size_t c = 0; c < 3; ++c) out.rgb[to * 3 + c] = image.rgb[from * 3 + c];
    }
  out.notes.push_back("rotated as its EXIF data says");
  return out;
}

}  // namespace lamina::tool
