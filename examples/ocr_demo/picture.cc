#include "picture.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

Picture read_png(const std::string& path) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&png, path.c_str()))
    throw std::runtime_error(path + ": " + png.message);
  png.format = PNG_FORMAT_RGB;
  Picture out{static_cast<int>(png.width), static_cast<int>(png.height), {}};
  out.rgb.resize(PNG_IMAGE_SIZE(png));
  const png_color white{255, 255, 255};
  if (!png_image_finish_read(&png, &white, out.rgb.data(), 0, nullptr))
    throw std::runtime_error(path + ": " + png.message);
  return out;
}

void write_png(const std::string& path, const Picture& picture) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.format = PNG_FORMAT_RGB;
  png.width = static_cast<png_uint_32>(picture.width);
  png.height = static_cast<png_uint_32>(picture.height);
  if (!png_image_write_to_file(&png, path.c_str(), 0, picture.rgb.data(), 0, nullptr))
    throw std::runtime_error(path + ": " + png.message);
}

Picture resized(const Picture& in, int width, int height) {
  Picture out{
      width, height,
      std::vector<std::uint8_t>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3)};
  for (int y = 0; y < height; ++y) {
    const double sy = std::clamp((y + 0.5) * in.height / height - 0.5, 0.0, in.height - 1.0);
    const int y0 = static_cast<int>(sy), y1 = std::min(y0 + 1, in.height - 1);
    for (int x = 0; x < width; ++x) {
      const double sx = std::clamp((x + 0.5) * in.width / width - 0.5, 0.0, in.width - 1.0);
      const int x0 = static_cast<int>(sx), x1 = std::min(x0 + 1, in.width - 1);
      for (int c = 0; c < 3; ++c) {
        const double top = in.at(x0, y0)[c] + (in.at(x1, y0)[c] - in.at(x0, y0)[c]) * (sx - x0);
        const double bottom = in.at(x0, y1)[c] + (in.at(x1, y1)[c] - in.at(x0, y1)[c]) * (sx - x0);
        out.at(x, y)[c] = static_cast<std::uint8_t>(std::lround(top + (bottom - top) * (sy - y0)));
      }
    }
  }
  return out;
}

Picture cut(const Picture& in, const Box& box) {
  Picture out{box.right - box.left, box.bottom - box.top, {}};
  for (int y = box.top; y < box.bottom; ++y)
    out.rgb.insert(out.rgb.end(), in.at(box.left, y), in.at(box.left, y) + 3 * out.width);
  return out;
}

void draw_frame(Picture& p, const Box& box) {
  constexpr int kThick = 3;
  for (int y = std::max(0, box.top - kThick); y < std::min(p.height, box.bottom + kThick); ++y)
    for (int x = std::max(0, box.left - kThick); x < std::min(p.width, box.right + kThick); ++x) {
      if (x >= box.left && x < box.right && y >= box.top && y < box.bottom) continue;
      auto* pixel = p.at(x, y);
      pixel[0] = 60, pixel[1] = 220, pixel[2] = 90;
    }
}
