#pragma once
// A picture of red, green and blue bytes, and PNG files.
#include <cstdint>
#include <string>
#include <vector>

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
  const std::uint8_t* at(int x, int y) const { return &rgb[static_cast<std::size_t>(y * width + x) * 3]; }
  std::uint8_t* at(int x, int y) { return &rgb[static_cast<std::size_t>(y * width + x) * 3]; }
};

struct Box {
  int left, top, right, bottom;  // right and bottom excluded
};

Picture read_png(const std::string& path);
void write_png(const std::string& path, const Picture& picture);
Picture resized(const Picture& picture, int width, int height);
Picture cut(const Picture& picture, const Box& box);
void draw_frame(Picture& picture, const Box& box);
