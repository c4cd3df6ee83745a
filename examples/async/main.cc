// Requests that follow each other by themselves: each callback takes its result and starts the next
// inference, so that all streams stay busy, and main() only waits.
//
//   async MODEL.onnx
//
// Works with any model whose inputs are made of f32 or integers; unknown dimensions become 1.
#include <lamina/lamina.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace {

lamina::Tensor zeros(const lamina::Port& port) {
  lamina::Dims shape = port.shape;
  for (auto& d : shape) d = std::max<std::int64_t>(d, 1);
  return lamina::Tensor(port.type, shape);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: async MODEL.onnx");
  constexpr int kInferences = 200;
  const lamina::Model model(argv[1]);
  lamina::Options options;
  options.hint = lamina::PerformanceHint::throughput;
  const lamina::CompiledModel compiled(model, options);

  std::vector<lamina::Request> requests;
  for (std::size_t r = 0; r < compiled.optimal_requests(); ++r) {
    requests.push_back(compiled.create_request());
    for (std::size_t i = 0; i < model.inputs().size(); ++i)
      requests.back().set_input(i, zeros(model.inputs()[i]));
  }
  std::atomic<int> started = 0, finished = 0;
  for (auto& request : requests)
    request.set_callback([&](std::exception_ptr error) {  // on a thread of the library's
      if (error) return;                                  // wait() throws it
      // Here request.output(0) is looked at, and the next input set.
      ++finished;
      if (started++ < kInferences) request.start();
    });

  const auto begin = std::chrono::steady_clock::now();
  for (auto& request : requests)
    if (started++ < kInferences) request.start();
  for (auto& request : requests) request.wait();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%d inferences by %zu requests on %d streams: %.1f per second\n", finished.load(),
              requests.size(), compiled.streams(), finished / seconds.count());
  return finished == kInferences ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "async: %s\n", e.what());
  return 1;
}
