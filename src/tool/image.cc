#include "tool/image.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/words.h"
#include "base/work_bounds.h"

namespace lamina::tool {

void check_image_size(const std::string& path, std::uint64_t width, std::uint64_t height) {
  constexpr std::uint64_t kMostPixels = 1 << 28;
  if (width == 0 || height == 0 || width > 65535 || height > 65535 || width * height > kMostPixels)
    fail(ErrorCode::bad_file, "{}: an image of {} x {}, wanted 1 x 1 to 65535 x 65535 and {} pixels at most",
         path, width, height, kMostPixels);
  require_memory(path, 3 * width * height);
}

namespace {

/// The next number in the header of a PNM file; `at` moves behind it.
std::uint64_t header_number(const std::string& path, std::string_view text, std::size_t& at) {
  while (at < text.size() && (std::isspace(static_cast<unsigned char>(text[at])) || text[at] == '#')) {
    if (text[at] == '#')
      while (at < text.size() && text[at] != '\n') ++at;
    else
      ++at;
  }
  std::uint64_t v = 0;
  std::size_t digits = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && digits < 9; ++at, ++digits)
    v = v * 10 + static_cast<std::uint64_t>(text[at] - '0');
  if (digits == 0) fail(ErrorCode::bad_file, "{}: the header is cut off", path);
  return v;
}

}  // namespace

/// P5 and P6.
Image read_pnm(const std::string& path, std::string_view text) {
  std::size_t at = 2;
  const auto width = header_number(path, text, at), height = header_number(path, text, at),
             most = header_number(path, text, at);
  ++at;
  check_image_size(path, width, height);
  if (most < 1 || most > 65535)
    fail(ErrorCode::bad_file, "{}: largest value {}, wanted 1 to 65535", path, most);
  const std::size_t size = most > 255 ? 2 : 1, channels = text[1] == '6' ? 3 : 1;
  const std::size_t samples = width * height * channels;
  if (at > text.size() || text.size() - at < samples * size)
    fail(ErrorCode::bad_file, "{}: {} bytes of pixels, wanted {}", path,
         text.size() - std::min(at, text.size()), samples * size);
  Image out;
  out.width = static_cast<int>(width), out.height = static_cast<int>(height);
  out.grey = channels == 1;
  if (most > 255) out.notes.push_back("16 bits to 8");
  out.rgb.resize(width * height * 3);
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i]));
  };
  for (std::size_t i = 0; i < out.rgb.size(); ++i) {
    const auto sample = (out.grey ? i / 3 : i) * size;
    const auto v = size == 1 ? byte(sample) : byte(sample) << 8 | byte(sample + 1);
    out.rgb[i] = static_cast<std::uint8_t>((std::min(v, most) * 255 + most / 2) / most);
  }
  return out;
}

bool looks_like_image(const std::string& path) {
  const auto dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  const auto ending = lower_case(path.substr(dot + 1));
  for (const char* e : {"png", "jpg", "jpeg", "ppm", "pgm"})
    if (ending == e) return true;
  return false;
}

Image read_image(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto text = file->text();
  if (text.starts_with("\x89PNG")) return read_png(path, file->bytes());
  if (text.starts_with("P6") || text.starts_with("P5")) return read_pnm(path, text);
  if (text.starts_with("\xff\xd8")) return read_jpeg(path, file->bytes());
  fail(ErrorCode::bad_file, "{}: is not a PNG, JPEG, PPM or PGM image", path);
}

namespace {

/// Between which two samples a resized one lies, and how near the second.
struct Between {
  std::size_t first, second;
  double part;
};

std::vector<Between> positions(int from, int to) {
  std::vector<Between> out;
  for (int i = 0; i < to; ++i) {
    const double at = std::clamp((i + 0.5) * from / to - 0.5, 0.0, from - 1.0);
    const int first = static_cast<int>(at);
    out.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(first + 1, from - 1)),
                   at - first});
  }
  return out;
}

}  // namespace

Image resized(const Image& image, int width, int height) {
  if (image.width == width && image.height == height) return image;
  Image out{width, height, {}, image.grey, image.notes};
  out.rgb.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  const auto rows = positions(image.height, height), columns = positions(image.width, width);
  const auto stride = static_cast<std::size_t>(image.width) * 3;
  for (const auto& y : rows)
    for (const auto& x : columns)
      for (std::size_t c = 0; c < 3; ++c) {
        const auto line = [&](std::size_t row) {
          const auto* p = image.rgb.data() + row * stride + c;
          return p[x.first * 3] + (p[x.second * 3] - p[x.first * 3]) * x.part;
        };
        const double top = line(y.first), bottom = line(y.second);
        out.rgb.push_back(static_cast<std::uint8_t>(std::lround(top + (bottom - top) * y.part)));
      }
  return out;
}

}  // namespace lamina::tool
