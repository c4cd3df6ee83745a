/// The library and the libraries below it print nothing.
#include <fcntl.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "base/topology.h"
#include "tests/api/small_models.h"
#include "tests/base/temporary_folder.h"

namespace lamina {
namespace {

using namespace testing;

/// What `body` and the threads it wakes write to a descriptor.
std::string written(int descriptor, const std::string& file, const std::function<void()>& body) {
  std::fflush(nullptr);
  const int kept = ::dup(descriptor), into = ::open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ::dup2(into, descriptor);
  body();
  std::fflush(nullptr);
  ::dup2(kept, descriptor);
  ::close(into);
  ::close(kept);
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

int processors() { return static_cast<int>(read_topology().cpus.size()); }

void compile_and_run(int threads) {
  const CompiledModel compiled(
      Model(std::string(LAMINA_DEPS) + "/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"), {.threads = threads});
  EXPECT_EQ(compiled.threads(), std::min(threads, processors()));
  EXPECT_EQ(compiled(Tensor(ElementType::f32, {1, 3, 48, 192})).shape(), (Dims{1, 2}));
}

TEST(Quiet, more_and_more_threads) {
  const test::TemporaryFolder folder;
  std::string out;
  const auto error = written(2, folder / "error", [&] {
    out = written(1, folder / "out", [] {
      // oneTBB warns when it is asked for more than at its first use.
      for (const int threads : {1, 2, 5, 40, 3}) compile_and_run(threads);
      tbb::task_arena arena(2);
      arena.execute([] { compile_and_run(7); });
      std::thread([] { compile_and_run(64); }).join();
    });
  });
  EXPECT_EQ(error, "");
  EXPECT_EQ(out, "");
}

TEST(Quiet, threads_of_the_callers_arena) {
  const auto model = model_of(sums());
  tbb::task_arena one(1);
  one.execute([&] { EXPECT_EQ(CompiledModel(model).threads(), 1); });
  one.execute([&] { EXPECT_EQ(CompiledModel(model, {.threads = 3}).threads(), std::min(3, processors())); });
}

}  // namespace
}  // namespace lamina
