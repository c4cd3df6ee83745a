#pragma once
/// Images: PNG, JPEG, PPM and PGM.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lamina::tool {

struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  ///< rows of r, g, b
  bool grey = false;              ///< the file has one channel: r = g = b
  /// What reading it changed or met, in a few words each: "16 bits to 8", "alpha blended with white", ...
  std::vector<std::string> notes;
};

/// Reads an image and turns it upright as its EXIF data says. Throws Error(bad_file).
Image read_image(const std::string& path);
/// True if the file's ending is that of an image.
bool looks_like_image(const std::string& path);

/// Resizes bilinearly, with half-pixel centres.
Image resized(const Image& image, int width, int height);

/// The formats. `path` starts the texts of errors.
Image read_png(const std::string& path, std::span<const std::byte> bytes);
Image read_jpeg(const std::string& path, std::span<const std::byte> bytes);
Image read_pnm(const std::string& path, std::string_view text);

/// Throws Error(bad_file) for a size that no format allows.
void check_image_size(const std::string& path, std::uint64_t width, std::uint64_t height);

}  // namespace lamina::tool
