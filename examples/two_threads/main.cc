// One compiled model, two threads: each has a request of its own, and both get the same answers.
//
//   two_threads MODEL.onnx
//
// Works with any model whose inputs are made of f32 or integers; unknown dimensions become 1.
#include <lamina/lamina.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

lamina::Tensor zeros(const lamina::Port& port) {
  lamina::Dims shape = port.shape;
  for (auto& d : shape) d = std::max<std::int64_t>(d, 1);
  return lamina::Tensor(port.type, shape);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: two_threads MODEL.onnx");
  const lamina::Model model(argv[1]);
  const lamina::CompiledModel compiled(model, {.streams = 2});  // two requests run at once
  constexpr int kRuns = 50;
  std::vector<lamina::Tensor> results(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      lamina::Request request = compiled.create_request();
      for (std::size_t i = 0; i < model.inputs().size(); ++i) request.set_input(i, zeros(model.inputs()[i]));
      for (int run = 0; run < kRuns; ++run) request.run();
      results[static_cast<std::size_t>(t)] = request.output(0).clone();
    });
  for (auto& thread : threads) thread.join();
  const bool same = results[0].same_as(results[1]);
  std::printf("%d inferences in two threads: the answers are %s\n", 2 * kRuns,
              same ? "the same" : "DIFFERENT");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "two_threads: %s\n", e.what());
  return 1;
}
