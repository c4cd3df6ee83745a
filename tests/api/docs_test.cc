/// The pieces of code in docs/api.md, compiled and run. tests/api/pieces_test.py compares them with the page.
#include <lamina/explain.h>
#include <lamina/lamina.h>
#include <lamina/preprocess.h>
#include <atomic>

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>

#include "tests/base/temporary_folder.h"

namespace {

namespace fs = std::filesystem;

/// A folder with model.onnx, where the pieces run: pictures of 3x48x192 give 2 scores, in any batch.
class Pieces : public testing::Test {
 protected:
  Pieces() {
    fs::copy_file(std::string(LAMINA_DEPS) + "/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                  folder_ / "model.onnx");
    fs::current_path(folder_.path());
    std::cout.rdbuf(printed_.rdbuf());
  }
  ~Pieces() override {
    std::cout.rdbuf(cout_);
    fs::current_path(before_);
  }

  fs::path before_ = fs::current_path();
  lamina::test::TemporaryFolder folder_;
  std::ostringstream printed_;
  std::streambuf* cout_ = std::cout.rdbuf();
};

std::vector<char> read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(Pieces, first) {
  // piece: first
  const lamina::Model model("model.onnx");
  const lamina::CompiledModel compiled(model, {.threads = 2});
  lamina::Request request = compiled.create_request();

  std::vector<float> pixels(3 * 48 * 192, 0.5f);
  request.set_input("x", lamina::Tensor::wrap({1, 3, 48, 192}, pixels.data()));
  request.run();
  std::span<const float> scores = request.output(0).data<float>();
  // end
  EXPECT_EQ(scores.size(), 2u);
}

TEST_F(Pieces, ports) {
  // piece: ports
  const lamina::Model model("model.onnx");
  for (const auto& port : model.inputs()) std::cout << "input " << port << "\n";
  for (const auto& warning : model.warnings()) std::cout << "warning: " << warning << "\n";
  if (const auto index = model.find_input("x"))  // nothing when there is no such input
    std::cout << "x is input " << *index << "\n";

  const lamina::CompiledModel compiled(model);
  for (const auto& port : compiled.output_ports({{8, 3, 48, 192}}))  // a shape for each input
    std::cout << "output " << port << "\n";
  // end
  EXPECT_NE(printed_.str().find("input x: f32["), std::string::npos) << printed_.str();
  EXPECT_NE(printed_.str().find("x is input 0"), std::string::npos);
  EXPECT_NE(printed_.str().find(": f32[8,2]\n"), std::string::npos) << printed_.str();
}

TEST_F(Pieces, shapes) {
  // piece: shapes
  // Whatever the file says: any number of pictures, 48 rows, and 48 to 640 columns.
  const lamina::Model wide("model.onnx", {.input_shapes = {{"x", {-1, 3, 48, {48, 640}}}}});

  // The program has bytes, channels last; the model wants normalised floats.
  const lamina::Model bytes = lamina::preprocessed(wide, {.input_types = {{"x", lamina::ElementType::u8}},
                                                          .layout = {{"x", "NCHW", "NHWC"}},
                                                          .mean_values = {{"x", {124, 116, 104}}},
                                                          .scale_values = {{"x", {58, 57, 57}}}});
  // end
  const lamina::Tensor picture(lamina::ElementType::u8, {2, 48, 192, 3});
  EXPECT_EQ(lamina::CompiledModel(bytes)(picture).shape(), (lamina::Dims{2, 2}));
}

TEST_F(Pieces, memory) {
  // piece: memory
  // Copied: the vector need not outlive the call.
  const std::vector<char> file = read("model.onnx");
  const auto model = lamina::Model::from_memory({.model = std::as_bytes(std::span(file))});

  // Shared: nothing is copied, and the owner lives as long as something reads its bytes.
  const auto owner = std::make_shared<const std::vector<char>>(read("model.onnx"));
  const auto shared = lamina::Model::from_memory({.model = std::as_bytes(std::span(*owner)), .owner = owner});
  // end
  EXPECT_EQ(model.inputs()[0].name, shared.inputs()[0].name);
}

TEST_F(Pieces, outputs) {
  const lamina::CompiledModel compiled{lamina::Model("model.onnx")};
  const lamina::Tensor picture(lamina::ElementType::f32, {1, 3, 48, 192});
  // piece: outputs
  lamina::Request request = compiled.create_request();
  request.set_input(0, picture);
  request.run();
  const lamina::Tensor seen = request.output(0);          // shares the request's memory
  const lamina::Tensor kept = request.output(0).clone();  // its own

  std::vector<float> mine(2);
  request.set_output(0, lamina::Tensor::wrap({1, 2}, mine.data()));
  request.run();              // writes into `mine`
  request.set_output(0, {});  // the request's own memory again
  request.set_input(0, {});   // releases the picture
  // end
  EXPECT_EQ(mine[0], kept.data<float>()[0]);
  EXPECT_TRUE(seen.valid());
}

TEST_F(Pieces, threads) {
  // piece: threads
  const lamina::CompiledModel compiled(lamina::Model("model.onnx"), {.streams = 2});  // two at once
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 2; ++worker)
    workers.emplace_back([&compiled] {
      lamina::Request request = compiled.create_request();  // one per thread
      request.set_input(0, lamina::Tensor(lamina::ElementType::f32, {1, 3, 48, 192}));
      for (int i = 0; i < 10; ++i) request.run();
    });
  for (auto& worker : workers) worker.join();
  // end
}

TEST_F(Pieces, arenas) {
  // piece: arena
  tbb::task_arena arena(2);
  arena.execute([] {
    const lamina::CompiledModel compiled{lamina::Model("model.onnx")};  // threads = 0: the arena's, 2 at most
    lamina::Request request = compiled.create_request();
    request.set_input(0, lamina::Tensor(lamina::ElementType::f32, {1, 3, 48, 192}));
    request.run();
  });
  // end
}

TEST_F(Pieces, asynchronous) {
  // piece: async
  const lamina::CompiledModel compiled(lamina::Model("model.onnx"), {.streams = 2});
  std::vector<lamina::Request> requests;
  std::atomic<int> left = 20;
  for (std::size_t r = 0; r < compiled.optimal_requests(); ++r) {
    requests.push_back(compiled.create_request());
    requests[r].set_input(0, lamina::Tensor(lamina::ElementType::f32, {1, 3, 48, 192}));
  }
  for (auto& request : requests) {
    request.set_callback([&](std::exception_ptr error) {  // on a thread of lamina's
      if (error || --left <= 0) return;                   // wait() throws the error
      request.start();                                    // the next one follows
    });
    request.start();
  }
  for (auto& request : requests) request.wait();
  // end
  EXPECT_LE(left, 0);
}

bool user_has_closed_the_window() { return false; }

TEST_F(Pieces, stop) {
  // piece: stop
  std::stop_source stop;
  lamina::Options options;
  options.stop = stop.get_token();
  options.progress = [&](std::string_view, double) {
    if (user_has_closed_the_window()) stop.request_stop();  // or any other thread does
  };
  try {
    const lamina::Model model("model.onnx", {.stop = options.stop});
    const lamina::CompiledModel compiled(model, options);
    lamina::Request request = compiled.create_request();
    request.set_input(0, lamina::Tensor(lamina::ElementType::f32, {1, 3, 48, 192}));
    request.start();
    if (!request.wait_for(std::chrono::seconds(5))) request.cancel();
    request.wait();
  } catch (const lamina::Error& error) {
    if (error.code() != lamina::ErrorCode::canceled) throw;
  }
  // end
}

TEST_F(Pieces, errors) {
  // piece: errors
  try {
    const lamina::CompiledModel compiled{lamina::Model("model.onnx")};
    lamina::Request request = compiled.create_request();
    request.set_input("picture", lamina::Tensor(lamina::ElementType::f32, {1, 3, 48, 192}));
  } catch (const lamina::Error& error) {
    if (error.code() == lamina::ErrorCode::bad_input)
      std::cout << error.what() << "\n";  // there is no input "picture", there are: "x"
  }
  // end
  EXPECT_EQ(printed_.str(), "there is no input \"picture\", there are: \"x\"\n");
}

TEST_F(Pieces, options) {
  // piece: options
  lamina::Options options;
  options.threads = 2;
  options.set("PERF_COUNT", "YES");  // by its key; option_list() has all keys
  options.log = [](lamina::LogLevel level, std::string_view line) {
    if (level <= lamina::LogLevel::warning) std::cerr << line << "\n";
  };
  const lamina::CompiledModel compiled(lamina::Model("model.onnx"), options);
  lamina::Request request = compiled.create_request();
  request.set_input(0, lamina::Tensor(lamina::ElementType::f32, {1, 3, 48, 192}));
  request.run();
  for (const auto& layer : request.layer_times())
    std::cout << layer.name << " " << layer.kernel << " " << layer.microseconds << " us\n";
  // end
  EXPECT_FALSE(printed_.str().empty());
}

TEST_F(Pieces, explained) {
  // piece: explained
  const lamina::CompiledModel compiled(lamina::Model("model.onnx"));
  const lamina::Tensor picture(lamina::ElementType::f32, {1, 3, 48, 192});
  const auto all = lamina::explain(compiled, {.inputs = {picture}, .seconds = 0.1});
  for (const lamina::LayerExplanation& layer : all.layers)
    std::cout << layer.name << " " << name_of(layer.fate) << ": " << layer.reason << "\n";
  std::cout << all.verdict().next << "\n";
  for (const lamina::RuleEvent& event : all.why("fuse-conv-sum", "Mul@1").history)
    std::cout << to_string(event) << "\n";
  // end
  EXPECT_NE(printed_.str().find("Div@0 fused: "), std::string::npos);
  EXPECT_NE(printed_.str().find("fuse-conv-sum at 'Mul@1': refused: "), std::string::npos);
}

}  // namespace
