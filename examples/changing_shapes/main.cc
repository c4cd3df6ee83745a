// Runs one model on inputs of changing sizes: the first run of a size plans it, later ones find the plan.
//
//   changing_shapes ch_PP-OCRv4_rec_infer.onnx
//
// The model takes lines of text of any width, [N, 3, 48, width], and answers [N, steps, classes].
#include <lamina/lamina.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: changing_shapes MODEL.onnx");
  const lamina::Model model(argv[1]);
  std::printf("input  %s  %s\noutput %s  %s\n", model.inputs()[0].name.c_str(),
              lamina::to_string(model.inputs()[0]).c_str(), model.outputs()[0].name.c_str(),
              lamina::to_string(model.outputs()[0]).c_str());
  const lamina::CompiledModel compiled(model);
  lamina::Request request = compiled.create_request();
  for (const int width : {96, 160, 320, 160, 96}) {
    request.set_input(0, lamina::Tensor(lamina::ElementType::f32, {1, 3, 48, width}));
    const auto begin = std::chrono::steady_clock::now();
    request.run();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    const auto& shape = request.output(0).shape();
    std::printf("width %3d: %lld steps in %.1f ms\n", width, static_cast<long long>(shape[1]), time.count());
    if (shape[1] != width / 8) throw std::runtime_error("unexpected number of steps");
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "changing_shapes: %s\n", e.what());
  return 1;
}
