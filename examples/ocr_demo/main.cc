// Reads the text in a picture with two real networks, PP-OCR's detector and recogniser, through lamina's C++
// interface.
//
//   ocr_demo [--models FOLDER] [--threads N] [picture.png] [annotated.png]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "reader.h"

namespace {

struct Arguments {
  std::string models = LAMINA_DEMO_MODELS, picture = LAMINA_DEMO_PICTURE, annotated = "ocr_demo.png";
  int threads = 0;
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--models" && i + 1 < argc)
      a.models = argv[++i];
    else if (word == "--threads" && i + 1 < argc)
      a.threads = std::atoi(argv[++i]);
    else if (word.starts_with("-") || files == 2)
      throw std::runtime_error(
          "usage: ocr_demo [--models FOLDER] [--threads N] [picture.png] [annotated.png]");
    else
      (files++ == 0 ? a.picture : a.annotated) = word;
  }
  return a;
}

void run(const Arguments& a) {
  const Picture picture = read_png(a.picture);
  std::printf("%s on %s (%d x %d)\n", lamina::version().c_str(), a.picture.c_str(), picture.width,
              picture.height);
  Net detector(a.models + "/ch_PP-OCRv4_det_infer.onnx", a.threads),
      recogniser(a.models + "/ch_PP-OCRv4_rec_infer.onnx", a.threads);
  const auto alphabet = alphabet_of(recogniser.model());

  lamina::Tensor detector_input, recogniser_input;
  Picture annotated = picture;
  const auto boxes = find_text(detector, picture, detector_input);
  std::printf("\nthe text:\n");
  for (const auto& box : boxes) {
    const auto reading = read_text(recogniser, alphabet, cut(picture, box), recogniser_input);
    if (reading.text.empty()) continue;
    std::printf("  %-28s  confidence %.2f, at %d,%d to %d,%d\n", reading.text.c_str(), reading.confidence,
                box.left, box.top, box.right, box.bottom);
    draw_frame(annotated, box);
  }
  write_png(a.annotated, annotated);
  std::printf("the picture with frames: %s\n", std::filesystem::absolute(a.annotated).c_str());

  detector.report("detector", detector_input);
  if (recogniser_input.valid()) recogniser.report("recogniser", recogniser_input);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ocr_demo: %s\n", e.what());
    return 1;
  }
}
