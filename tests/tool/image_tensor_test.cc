#include "tool/image_tensor.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/eval.h"
#include "tool/common.h"

namespace lamina::tool {
namespace {

/// Pixel i of the image is (i, i + 100, i + 200).
Image ramp(int width, int height) {
  Image image{width, height, {}, false, {}};
  for (int i = 0; i < width * height; ++i)
    for (int c = 0; c < 3; ++c) image.rgb.push_back(static_cast<std::uint8_t>(i + 100 * c));
  return image;
}

Port port_of(Dims shape, ElementType type = ElementType::f32) {
  return {"x", type, true, std::move(shape), {}};
}

struct Made {
  Tensor tensor;
  std::vector<std::string> notes;
  std::vector<double> values() const { return to_doubles(tensor); }
};

Made made(const Port& port, const std::vector<Image>& images, const ImageOptions& options = {}) {
  Made m;
  m.tensor = tensor_of(images, std::vector<std::string>(images.size(), "dir/p.ppm"), port, port.shape,
                       options, m.notes);
  return m;
}

TEST(ImageTensor, UnknownSizesAreTheImagesOwn) {
  const auto last = made(port_of({-1, -1, -1, 3}), {ramp(4, 2)});
  EXPECT_EQ(last.tensor.shape(), (Dims{1, 2, 4, 3}));
  EXPECT_EQ(last.values()[4], 101);
  EXPECT_EQ(last.notes, (std::vector<std::string>{
                            "input \"x\": p.ppm, 4x2: its own size, values 0 to 255; f32[1,2,4,3] NHWC"}));
  const auto first = made(port_of({1, 3, -1, -1}), {ramp(4, 2)});
  EXPECT_EQ(first.tensor.shape(), (Dims{1, 3, 2, 4}));
  EXPECT_EQ(first.values()[8], 100);
}

TEST(ImageTensor, OneUnknownSizeKeepsTheProportions) {
  const auto m = made(port_of({1, 3, 4, -1}), {ramp(4, 2)});
  EXPECT_EQ(m.tensor.shape(), (Dims{1, 3, 4, 8}));
  EXPECT_NE(m.notes[0].find("resized to 8x4"), std::string::npos) << m.notes[0];
}

TEST(ImageTensor, StretchAndLetterbox) {
  const auto stretched = made(port_of({1, 3, 4, 4}), {ramp(4, 2)});
  EXPECT_NE(stretched.notes[0].find("stretched to 4x4"), std::string::npos) << stretched.notes[0];
  ImageOptions options;
  options.fit = "letterbox";
  const auto boxed = made(port_of({1, 3, 4, 4}), {ramp(4, 2)}, options);
  const auto v = boxed.values();
  EXPECT_EQ((std::vector<double>{v[0], v[4], v[7], v[8], v[12]}), (std::vector<double>{114, 0, 3, 4, 114}));
  EXPECT_NE(boxed.notes[0].find("resized to 4x2 at 0,1 of 4x4"), std::string::npos) << boxed.notes[0];
}

TEST(ImageTensor, MeanAndScaleGoByTheModelsChannels) {
  ImageOptions options;
  options.color = "bgr";
  options.mean = {200, 100, 0};
  options.scale = {1, 1, 2};
  const auto m = made(port_of({1, 3, 1, 2}), {ramp(2, 1)}, options);
  EXPECT_EQ(m.values(), (std::vector<double>{0, 1, 0, 1, 0, 0.5}));
  EXPECT_NE(m.notes[0].find("RGB to BGR, (pixel - 200,100,0) / 1,1,2"), std::string::npos) << m.notes[0];
}

TEST(ImageTensor, GreyModelsAndGreyImages) {
  const auto to_grey = made(port_of({1, 1, 1, 1}), {ramp(1, 1)});
  EXPECT_NEAR(to_grey.values()[0], 0.587 * 100 + 0.114 * 200, 1e-9);
  EXPECT_NE(to_grey.notes[0].find("colour to grey"), std::string::npos);
  Image grey{1, 1, {9, 9, 9}, true, {}};
  EXPECT_EQ(made(port_of({1, 1, 1, 1}), {grey}).values()[0], 9);
  EXPECT_NE(made(port_of({1, 3, 1, 1}), {grey}).notes[0].find("grey to 3 equal channels"), std::string::npos);
}

TEST(ImageTensor, IntegersAreRoundedAndCut) {
  ImageOptions options;
  options.scale = {2};
  EXPECT_EQ(made(port_of({1, 3, 1, 1}, ElementType::u8), {ramp(1, 1)}, options).values(),
            (std::vector<double>{0, 50, 100}));
  const auto cut = made(port_of({1, 3, 1, 1}, ElementType::i8), {ramp(1, 1)});
  EXPECT_EQ(cut.values(), (std::vector<double>{0, 100, 127}));
  EXPECT_NE(cut.notes[0].find("1 values clipped to the range of i8"), std::string::npos) << cut.notes[0];
  EXPECT_THROW(made(port_of({1, 3, 1, 1}, ElementType::boolean), {ramp(1, 1)}), Error);
}

TEST(ImageTensor, IntegersAreCutToWhatTheirTypeHolds) {
  ImageOptions options;
  options.scale = {1e-3};  // pixel 100 is 100000
  for (const auto type : {ElementType::i32, ElementType::u32, ElementType::i64, ElementType::u64}) {
    const auto m = made(port_of({1, 3, 1, 1}, type), {ramp(1, 1)}, options);
    EXPECT_EQ(m.values(), (std::vector<double>{0, 100000, 200000})) << type;
    EXPECT_EQ(m.notes[0].find("cut"), std::string::npos) << m.notes[0];
  }
  EXPECT_EQ(made(port_of({1, 3, 1, 1}, ElementType::u16), {ramp(1, 1)}, options).values()[2], 65535);
  options.scale = {-1e-18};
  EXPECT_EQ(made(port_of({1, 3, 1, 1}, ElementType::i32), {ramp(1, 1)}, options).values()[2], -2147483648.0);
  EXPECT_EQ(made(port_of({1, 3, 1, 1}, ElementType::u32), {ramp(1, 1)}, options).values()[2], 0);
  options.scale = {1e-18};
  EXPECT_EQ(
      made(port_of({1, 3, 1, 1}, ElementType::i64), {ramp(1, 1)}, options).tensor.data<std::int64_t>()[2],
      9223372036854774784);
  EXPECT_EQ(
      made(port_of({1, 3, 1, 1}, ElementType::u64), {ramp(1, 1)}, options).tensor.data<std::uint64_t>()[2],
      18446744073709549568u);
}

TEST(ImageTensor, FloatsThatDoNotHoldTheValuesAreRefused) {
  ImageOptions options;
  options.scale = {1e-3};
  EXPECT_THROW(made(port_of({1, 3, 1, 1}, ElementType::f16), {ramp(1, 1)}, options), UsageError);
  EXPECT_EQ(made(port_of({1, 3, 1, 1}, ElementType::bf16), {ramp(1, 1)}, options).values()[0], 0);
  options.scale = {1e-40};
  EXPECT_THROW(made(port_of({1, 3, 1, 1}), {ramp(1, 1)}, options), UsageError);
  EXPECT_THROW(made(port_of({1, 3, 1, 1}, ElementType::bf16), {ramp(1, 1)}, options), UsageError);
  EXPECT_NO_THROW(made(port_of({1, 3, 1, 1}, ElementType::f64), {ramp(1, 1)}, options));
  options = {};
  options.mean = {1e300};
  EXPECT_THROW(made(port_of({1, 3, 1, 1}), {ramp(1, 1)}, options), UsageError);
}

TEST(ImageTensor, LayoutsOfAllKinds) {
  EXPECT_EQ(made(port_of({3, -1, -1}), {ramp(4, 2)}).tensor.shape(), (Dims{3, 2, 4}));
  EXPECT_EQ(made(port_of({-1, -1, 3}), {ramp(4, 2)}).tensor.shape(), (Dims{2, 4, 3}));
  EXPECT_EQ(made(port_of({-1, -1}), {ramp(4, 2)}).tensor.shape(), (Dims{2, 4}));
  EXPECT_THROW(made(port_of({-1, -1, -1}), {ramp(4, 2)}), Error);
  EXPECT_THROW(made(port_of({1, 3, 8, 8, 8}), {ramp(4, 2)}), Error);
  ImageOptions options;
  options.layout = {"y=NHWC", "x=wchn"};
  const auto m = made(port_of({-1, -1, -1, -1}), {ramp(4, 2)}, options);
  EXPECT_EQ(m.tensor.shape(), (Dims{4, 3, 2, 1}));
  EXPECT_EQ(m.values()[3], 104);        // x 0, channel 1, y 1
  options.layout = {"x=CHWN", "NHWC"};  // by name goes before that of all
  EXPECT_EQ(made(port_of({-1, -1, -1, -1}), {ramp(4, 2)}, options).tensor.shape(), (Dims{3, 2, 4, 1}));
  options.layout = {"NCHW", "NHWC"};
  EXPECT_THROW(made(port_of({-1, -1, -1, -1}), {ramp(4, 2)}, options), UsageError);
  options.layout = {"NCXW"};
  EXPECT_THROW(made(port_of({1, 3, 2, 2}), {ramp(4, 2)}, options), UsageError);
  options.layout = {"HW"};
  EXPECT_THROW(made(port_of({1, 3, 2, 2}), {ramp(4, 2)}, options), Error);
}

TEST(ImageTensor, SeveralImagesFillABatch) {
  const auto own = made(port_of({-1, 3, -1, -1}), {ramp(4, 2), ramp(2, 1)});
  EXPECT_EQ(own.tensor.shape(), (Dims{2, 3, 2, 4}));
  EXPECT_EQ(own.notes.size(), 2u);
  const auto repeated = made(port_of({3, 3, 1, 2}), {ramp(2, 1)});
  EXPECT_EQ(repeated.tensor.shape(), (Dims{3, 3, 1, 2}));
  EXPECT_EQ(repeated.values()[12], 0);
  EXPECT_EQ(repeated.notes.back(), "input \"x\": 1 image repeated to a batch of 3");
  EXPECT_THROW(made(port_of({1, 3, 1, 2}), {ramp(2, 1), ramp(2, 1)}), Error);
}

TEST(ImageTensor, ValuesThatDoNotFit) {
  ImageOptions options;
  options.mean = {1, 2};
  EXPECT_THROW(made(port_of({1, 3, 2, 2}), {ramp(2, 2)}, options), UsageError);
  options.mean = {};
  options.scale = {0};
  EXPECT_THROW(made(port_of({1, 3, 2, 2}), {ramp(2, 2)}, options), UsageError);
  EXPECT_THROW(made(port_of({1, 4, 2, 2}), {ramp(2, 2)}), Error);
}

}  // namespace
}  // namespace lamina::tool
