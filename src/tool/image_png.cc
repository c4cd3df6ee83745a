/// Images in PNG. Samples are taken as they are: gamma is left alone, as computer vision's readers do.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "base/error.h"
#include "base/words.h"
#include "tool/exif.h"
#include "tool/image.h"

namespace lamina::tool {
namespace {

struct PngFile {
  std::span<const std::byte> rest;
  char text[128] = "";
  std::jmp_buf jump;
};

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* file = static_cast<PngFile*>(png_get_io_ptr(png));
  if (count > file->rest.size()) png_error(png, "the file is cut off");
  std::memcpy(to, file->rest.data(), count);
  file->rest = file->rest.subspan(count);
}

[[noreturn]] void keep_error(png_structp png, png_const_charp text) {
  auto* file = static_cast<PngFile*>(png_get_error_ptr(png));
  std::snprintf(file->text, sizeof file->text, "%s", text);
  std::longjmp(file->jump, 1);
}

/// What libpng found wrong, in words about the file.
const char* words_of(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (has("cut off") || has("Not enough") || has("Too little") || has("too short") || has("Truncated"))
    return "the file is cut off";
  if (has("CRC") || has("data check")) return "the file is damaged: a checksum does not fit";
  if (has("Not a PNG")) return "it does not begin like a PNG file";
  if (has("IHDR") || has("limit")) return "its header is damaged, or the image is wider or higher than 65535";
  return "the file is damaged";
}

struct PngResult {
  png_uint_32 width = 0, height = 0;
  int depth = 0, colour = 0, orientation = 1;
  bool transparent = false;
  std::vector<std::uint8_t> rgba;
  std::vector<png_bytep> rows;
};

/// No object with a destructor may live across the jump: `out` belongs to the caller.
bool decode(PngFile& file, const std::string& path, PngResult& out) {
  png_infop info = nullptr;
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &file, keep_error, [](png_structp, png_const_charp) {});
  if (setjmp(file.jump)) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  info = png_create_info_struct(png);
  png_set_read_fn(png, &file, read_bytes);
  png_set_user_limits(png, 65535, 65535);
  png_read_info(png, info);
  png_get_IHDR(png, info, &out.width, &out.height, &out.depth, &out.colour, nullptr, nullptr, nullptr);
  out.transparent = (out.colour & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  try {
    check_image_size(path, out.width, out.height);
    out.rgba.resize(std::size_t{4} * out.width * out.height);
    out.rows.resize(out.height);
  } catch (...) {
    png_destroy_read_struct(&png, &info, nullptr);
    throw;
  }
  for (std::size_t y = 0; y < out.height; ++y) out.rows[y] = out.rgba.data() + 4 * y * out.width;
  png_read_image(png, out.rows.data());
  png_read_end(png, info);
  png_bytep exif = nullptr;
  png_uint_32 length = 0;
  if (png_get_eXIf_1(png, info, &length, &exif) != 0)
    out.orientation = exif_orientation({reinterpret_cast<const std::byte*>(exif), length});
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

}  // namespace

Image read_png(const std::string& path, std::span<const std::byte> bytes) {
  PngFile file;
  file.rest = bytes;
  PngResult png;
  if (!decode(file, path, png)) {
    const bool no_memory = lower_case(file.text).find("memory") != std::string::npos;
    fail(no_memory ? ErrorCode::out_of_memory : ErrorCode::bad_file, "{}: PNG: {}", path,
         no_memory ? "no memory for the image" : words_of(file.text));
  }
  Image out;
  out.width = static_cast<int>(png.width), out.height = static_cast<int>(png.height);
  out.grey = (png.colour & PNG_COLOR_MASK_COLOR) == 0;
  out.rgb.resize(png.rgba.size() / 4 * 3);
  bool shows_through = false;
  for (std::size_t p = 0; p < png.rgba.size() / 4; ++p) {
    const int alpha = png.rgba[4 * p + 3];
    shows_through = shows_through || alpha != 255;
    for (std::size_t c = 0; c < 3; ++c)
      out.rgb[3 * p + c] =
          static_cast<std::uint8_t>((png.rgba[4 * p + c] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
  if (png.depth == 16) out.notes.push_back("16 bits to 8");
  if (png.transparent)
    out.notes.push_back(shows_through ? "alpha blended with white" : "alpha dropped, all pixels are opaque");
  return turned_upright(std::move(out), png.orientation);
}

}  // namespace lamina::tool
