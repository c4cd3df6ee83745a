#include "tool/image.h"

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/mapped_file.h"

namespace lamina::tool {
namespace {

constexpr int kMostPixels = 1 << 28;

void check_size(const std::string& path, std::uint64_t width, std::uint64_t height) {
  if (width == 0 || height == 0 || width > 65535 || height > 65535 || width * height > kMostPixels)
    fail(ErrorCode::bad_file, "{}: a picture of {} x {}, wanted 1 x 1 to 65535 x 65535", path, width, height);
}

Image read_png(const std::string& path, std::span<const std::byte> bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()))
    fail(ErrorCode::bad_file, "{}: PNG: {}", path, png.message);
  if (png.width > 65535 || png.height > 65535) png_image_free(&png);
  check_size(path, png.width, png.height);
  png.format = PNG_FORMAT_RGB;
  Image out{static_cast<int>(png.width), static_cast<int>(png.height), {}};
  out.rgb.resize(PNG_IMAGE_SIZE(png));
  const png_color white{255, 255, 255};
  if (!png_image_finish_read(&png, &white, out.rgb.data(), 0, nullptr))
    fail(ErrorCode::bad_file, "{}: PNG: {}", path, png.message);
  return out;
}

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

/// No object with a destructor may live across the jump: `out` belongs to the caller.
bool decode_jpeg(std::span<const std::byte> bytes, Image& out, JpegErrors& errors) {
  jpeg_decompress_struct jpeg;
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr info) {
    auto* e = reinterpret_cast<JpegErrors*>(info->err);
    e->base.format_message(info, e->text);
    std::longjmp(e->jump, 1);
  };
  errors.base.output_message = [](j_common_ptr) {};
  if (setjmp(errors.jump)) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  out.width = static_cast<int>(jpeg.output_width);
  out.height = static_cast<int>(jpeg.output_height);
  out.rgb.resize(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height) * 3);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = out.rgb.data() +
                   static_cast<std::size_t>(jpeg.output_scanline) * static_cast<std::size_t>(out.width) * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

/// P5 and P6, 8 bits.
Image read_pnm(const std::string& path, std::string_view text) {
  std::size_t at = 2;
  const auto number = [&]() -> std::uint64_t {
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
  };
  const auto width = number(), height = number(), most = number();
  ++at;
  check_size(path, width, height);
  if (most != 255) fail(ErrorCode::bad_file, "{}: largest value {}, wanted 255", path, most);
  const std::size_t channels = text[1] == '6' ? 3 : 1, count = width * height;
  if (at > text.size() || text.size() - at < count * channels)
    fail(ErrorCode::bad_file, "{}: {} bytes of pixels, wanted {}", path,
         text.size() - std::min(at, text.size()), count * channels);
  Image out{static_cast<int>(width), static_cast<int>(height), std::vector<std::uint8_t>(count * 3)};
  for (std::size_t i = 0; i < count * 3; ++i)
    out.rgb[i] = static_cast<std::uint8_t>(text[at + (channels == 3 ? i : i / 3)]);
  return out;
}

}  // namespace

bool looks_like_image(const std::string& path) {
  const auto dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  std::string ending = path.substr(dot + 1);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* e : {"png", "jpg", "jpeg", "ppm", "pgm"})
    if (ending == e) return true;
  return false;
}

Image read_image(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto text = file->text();
  if (text.starts_with("\x89PNG")) return read_png(path, file->bytes());
  if (text.starts_with("P6") || text.starts_with("P5")) return read_pnm(path, text);
  if (text.starts_with("\xff\xd8")) {
    Image out;
    JpegErrors errors{};
    if (!decode_jpeg(file->bytes(), out, errors))
      fail(ErrorCode::bad_file, "{}: JPEG: {}", path, errors.text);
    return out;
  }
  fail(ErrorCode::bad_file, "{}: is no PNG, JPEG or PPM picture", path);
}

Image resized(const Image& image, int width, int height) {
  if (image.width == width && image.height == height) return image;
  Image out{
      width, height,
      std::vector<std::uint8_t>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3)};
  for (int y = 0; y < height; ++y) {
    const double sy = std::clamp((y + 0.5) * image.height / height - 0.5, 0.0, image.height - 1.0);
    const int y0 = static_cast<int>(sy), y1 = std::min(y0 + 1, image.height - 1);
    for (int x = 0; x < width; ++x) {
      const double sx = std::clamp((x + 0.5) * image.width / width - 0.5, 0.0, image.width - 1.0);
      const int x0 = static_cast<int>(sx), x1 = std::min(x0 + 1, image.width - 1);
      for (int c = 0; c < 3; ++c) {
        const auto at = [&](int yy, int xx) {
          return static_cast<double>(image.rgb[static_cast<std::size_t>((yy * image.width + xx) * 3 + c)]);
        };
        const double top = at(y0, x0) + (at(y0, x1) - at(y0, x0)) * (sx - x0);
        const double bottom = at(y1, x0) + (at(y1, x1) - at(y1, x0)) * (sx - x0);
        out.rgb[static_cast<std::size_t>((y * width + x) * 3 + c)] =
            static_cast<std::uint8_t>(std::lround(top + (bottom - top) * (sy - y0)));
      }
    }
  }
  return out;
}

}  // namespace lamina::tool
