#pragma once
/// Pictures: PNG, JPEG, PPM and PGM.
#include <cstdint>
#include <string>
#include <vector>

namespace lamina::tool {

struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  ///< rows of r, g, b
};
/// Throws Error(bad_file).
Image read_image(const std::string& path);
bool looks_like_image(const std::string& path);
/// Bilinear, half-pixel centres.
Image resized(const Image& image, int width, int height);

}  // namespace lamina::tool
