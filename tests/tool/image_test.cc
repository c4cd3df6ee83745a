#include "tool/image.h"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>  // wants size_t and FILE

#include "base/error.h"
#include "tool/common.h"
#include "tool/exif.h"

namespace lamina::tool {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::span<const std::byte> span_of(const Bytes& b) {
  return {reinterpret_cast<const std::byte*>(b.data()), b.size()};
}

Bytes png_of(int width, int height, int depth, int colour, const Bytes& samples, int gamma = 0) {
  Bytes out;
  auto* png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  auto* info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, std::size_t count) {
        auto& to = *static_cast<Bytes*>(png_get_io_ptr(p));
        to.insert(to.end(), data, data + count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth, colour,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (gamma > 0) png_set_gAMA_fixed(png, info, gamma);
  png_write_info(png, info);
  const auto row = samples.size() / static_cast<std::size_t>(height);
  for (int y = 0; y < height; ++y) png_write_row(png, samples.data() + static_cast<std::size_t>(y) * row);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

/// The orientation as a camera writes it, little or big end first.
Bytes tiff_of(std::uint8_t orientation, bool little) {
  if (little)
    return {'I', 'I', 42, 0, 8, 0,           0, 0, 1, 0, 0x12, 0x01, 3,
            0,   1,   0,  0, 0, orientation, 0, 0, 0, 0, 0,    0,    0};
  return {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0};
}

/// Left half black, right half white; `components` 1 or 3.
Bytes jpeg_of(int width, int height, int components, int orientation, bool progressive = false) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width), jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = components;
  jpeg.in_color_space = components == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (orientation > 0) {
    Bytes exif{'E', 'x', 'i', 'f', 0, 0};
    const auto tiff = tiff_of(static_cast<std::uint8_t>(orientation), false);
    exif.insert(exif.end(), tiff.begin(), tiff.end());
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
  }
  Bytes line(static_cast<std::size_t>(width * components));
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = i < line.size() / 2 ? 0 : 255;
  JSAMPROW row = line.data();
  for (int y = 0; y < height; ++y) jpeg_write_scanlines(&jpeg, &row, 1);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes out(memory, memory + size);
  std::free(memory);
  return out;
}

TEST(Image, PngSamplesAreTakenAsTheyAre) {
  const Bytes rgb{10, 20, 30, 40, 50, 60};
  const auto image = read_png("p", span_of(png_of(2, 1, 8, PNG_COLOR_TYPE_RGB, rgb, 100000)));
  EXPECT_EQ(image.rgb, rgb);  // its gamma notwithstanding
  EXPECT_FALSE(image.grey);
  EXPECT_TRUE(image.notes.empty());
}

TEST(Image, Png16BitsAre8AndSaySo) {
  const Bytes samples{0x80, 0x80, 0xff, 0xff};
  const auto image = read_png("p", span_of(png_of(2, 1, 16, PNG_COLOR_TYPE_GRAY, samples)));
  EXPECT_EQ(image.rgb, (Bytes{128, 128, 128, 255, 255, 255}));
  EXPECT_TRUE(image.grey);
  EXPECT_EQ(image.notes, (std::vector<std::string>{"16 bits to 8"}));
}

TEST(Image, PngAlphaIsLaidOverWhite) {
  const auto image =
      read_png("p", span_of(png_of(2, 1, 8, PNG_COLOR_TYPE_RGBA, {100, 0, 0, 255, 100, 0, 0, 51})));
  EXPECT_EQ(image.rgb, (Bytes{100, 0, 0, 224, 204, 204}));
  EXPECT_EQ(image.notes, (std::vector<std::string>{"alpha blended with white"}));
}

TEST(Image, DamagedPngIsOneError) {
  auto png = png_of(2, 1, 8, PNG_COLOR_TYPE_RGB, {1, 2, 3, 4, 5, 6});
  png.resize(png.size() - 20);
  EXPECT_THROW(read_png("p", span_of(png)), Error);
}

TEST(Image, JpegGreyAndColour) {
  EXPECT_TRUE(read_jpeg("j", span_of(jpeg_of(32, 16, 1, 0))).grey);
  const auto image = read_jpeg("j", span_of(jpeg_of(32, 16, 3, 0)));
  EXPECT_FALSE(image.grey);
  EXPECT_LT(image.rgb.front(), 20);
  EXPECT_GT(image.rgb.back(), 235);
  EXPECT_TRUE(image.notes.empty());
}

TEST(Image, JpegIsTurnedAsItsExifSays) {
  const auto image = read_jpeg("j", span_of(jpeg_of(32, 16, 3, 6)));  // a camera held on its side
  EXPECT_EQ(image.width, 16);
  EXPECT_EQ(image.height, 32);
  EXPECT_LT(image.rgb.front(), 20);                     // what was left is above
  EXPECT_LT(image.rgb[std::size_t{15} * 3], 20);        // the whole first row
  EXPECT_GT(image.rgb[std::size_t{31} * 16 * 3], 235);  // the last
  ASSERT_EQ(image.notes.size(), 1u);
}

TEST(Image, CutOffJpegSaysSo) {
  auto jpeg = jpeg_of(256, 256, 3, 0);
  jpeg.resize(jpeg.size() - 40);
  const auto image = read_jpeg("j", span_of(jpeg));
  ASSERT_EQ(image.notes.size(), 1u);
  EXPECT_TRUE(image.notes[0].starts_with("DAMAGED"));
}

TEST(Image, JpegIsRefusedBeforeItTakesMemory) {
  auto jpeg = jpeg_of(48, 32, 3, 0, true);
  const Bytes start{0xff, 0xc2};  // of the frame of several scans, whose coefficients are all kept
  const auto frame = std::search(jpeg.begin(), jpeg.end(), start.begin(), start.end()) - jpeg.begin();
  for (const auto i : {5, 7}) {
    jpeg[static_cast<std::size_t>(frame + i)] = 0x80;
    jpeg[static_cast<std::size_t>(frame + i + 1)] = 0;
  }
  const double before = peak_resident_mb();
  try {
    read_jpeg("j", span_of(jpeg));
    FAIL() << "it was read";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("32768 x 32768"), std::string::npos) << e.what();
  }
  EXPECT_LT(peak_resident_mb() - before, 100);
}

TEST(Image, OrientationsOfExif) {
  for (std::uint8_t o = 1; o <= 8; ++o)
    for (const bool little : {false, true}) EXPECT_EQ(exif_orientation(span_of(tiff_of(o, little))), o);
  EXPECT_EQ(exif_orientation(span_of(tiff_of(9, true))), 1);
  for (std::size_t n = 0; n < 26; ++n) {  // cut off anywhere: upright or right
    auto bytes = tiff_of(3, false);
    bytes.resize(n);
    const auto o = exif_orientation(span_of(bytes));
    EXPECT_TRUE(o == 1 || o == 3);
  }
}

TEST(Image, TurnedUpright) {
  // 1 2 3
  // 4 5 6, upright from each of the eight ways to hold a camera
  const std::vector<std::pair<int, std::vector<int>>> cases{
      {1, {1, 2, 3, 4, 5, 6}}, {2, {3, 2, 1, 6, 5, 4}}, {3, {6, 5, 4, 3, 2, 1}}, {4, {4, 5, 6, 1, 2, 3}},
      {5, {1, 4, 2, 5, 3, 6}}, {6, {4, 1, 5, 2, 6, 3}}, {7, {6, 3, 5, 2, 4, 1}}, {8, {3, 6, 2, 5, 1, 4}}};
  for (const auto& [orientation, wanted] : cases) {
    Image image{3, 2, {}, false, {}};
    for (std::uint8_t i = 1; i <= 6; ++i) image.rgb.insert(image.rgb.end(), 3, i);
    const auto turned = turned_upright(image, orientation);
    EXPECT_EQ(turned.width, orientation >= 5 ? 2 : 3);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(turned.rgb[i * 3], wanted[i]) << orientation << " " << i;
  }
}

TEST(Image, PnmOfAnyDepth) {
  const auto of = [](std::string head, const Bytes& samples) {
    head.append(samples.begin(), samples.end());
    return read_pnm("p", head);
  };
  EXPECT_EQ(of("P5 2 1 255\n", {7, 8}).rgb, (Bytes{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(of("P6 1 1 15\n", {0, 15, 5}).rgb, (Bytes{0, 255, 85}));
  const auto wide = of("P5 1 1 65535\n", {0x80, 0x80});
  EXPECT_EQ(wide.rgb[0], 128);
  EXPECT_EQ(wide.notes.size(), 1u);
  EXPECT_THROW(of("P5 2 1 65535\n", {1, 2, 3}), Error);
  EXPECT_THROW(of("P5 2 1 65536\n", {1, 2, 3}), Error);
}

}  // namespace
}  // namespace lamina::tool
