// Classifies a picture: is this line of text upright or upside down?
//
//   classify ch_ppocr_mobile_v2.0_cls_infer.onnx [picture.ppm]
//
// Without a picture it draws a dark bar on white. The model takes [N, 3, 48, 192] pictures in -1..1 and
// answers [N, 2].
#include <lamina/lamina.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kWidth = 192, kHeight = 48;

struct Picture {
  int width = kWidth, height = kHeight;
  std::vector<unsigned char> rgb;
};

Picture drawn() {
  Picture p;
  p.rgb.assign(static_cast<std::size_t>(p.width * p.height * 3), 255);
  for (int y = 16; y < 32; ++y)
    for (int x = 24; x < 168; ++x)
      for (int c = 0; c < 3; ++c) p.rgb[static_cast<std::size_t>((y * p.width + x) * 3 + c)] = 40;
  return p;
}

Picture read_ppm(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string magic;
  Picture p;
  int most = 0;
  if (!(in >> magic >> p.width >> p.height >> most) || magic != "P6" || most != 255 || p.width < 1 ||
      p.height < 1 || p.width > 10000 || p.height > 10000)
    throw std::runtime_error(path + ": wanted a binary PPM picture");
  in.get();
  p.rgb.resize(static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height) * 3);
  in.read(reinterpret_cast<char*>(p.rgb.data()), static_cast<std::streamsize>(p.rgb.size()));
  if (!in) throw std::runtime_error(path + ": the picture is cut off");
  return p;
}

// Nearest pixels, planes of blue, green and red, values in -1..1.
lamina::Tensor prepared(const Picture& p) {
  lamina::Tensor t(lamina::ElementType::f32, {1, 3, kHeight, kWidth});
  auto data = t.data<float>();
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const auto at =
            static_cast<std::size_t>(((y * p.height / kHeight) * p.width + x * p.width / kWidth) * 3 + 2 - c);
        data[static_cast<std::size_t>((c * kHeight + y) * kWidth + x)] =
            static_cast<float>(p.rgb[at]) / 127.5f - 1;
      }
  return t;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: classify MODEL.onnx [picture.ppm]");
  const lamina::Model model(argv[1]);
  const lamina::CompiledModel compiled(model);
  const lamina::Tensor scores = compiled(prepared(argc > 2 ? read_ppm(argv[2]) : drawn()));
  const auto values = scores.data<float>();
  const auto best = std::max_element(values.begin(), values.end()) - values.begin();
  std::printf("class %td of %zu with probability %.3f\n", best, values.size(),
              static_cast<double>(values[static_cast<std::size_t>(best)]));
  return values.size() == 2 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "classify: %s\n", e.what());
  return 1;
}
