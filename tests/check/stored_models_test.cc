/// Stored outputs of 25 quantised models: right ones are right, each kind of wrong ones is wrong. Needs the
/// models of ../shared/models, and is skipped without them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "api/inside.h"
#include "base/npz.h"
#include "check/stored_outputs.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "tests/check/corruptions.h"

namespace lamina::checking {
namespace {

namespace fs = std::filesystem;
using lamina::testing::Corruption;
using lamina::testing::corruptions;

std::vector<fs::path> models() {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(fs::path(LAMINA_SHARED) / "models/qdq", none))
    if (entry.path().extension() == ".onnx") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Tensor> numbered(const NpzFile& file, const std::string& prefix) {
  std::vector<Tensor> out;
  for (std::size_t i = 0;; ++i) {
    const auto it = std::find_if(file.begin(), file.end(),
                                 [&](const auto& a) { return a.first == prefix + std::to_string(i); });
    if (it == file.end()) return out;
    out.push_back(it->second);
  }
}

/// Another input of the same kind: the elements in reverse order.
Tensor reversed(const Tensor& t) {
  auto values = to_doubles(t.to_aligned());
  std::reverse(values.begin(), values.end());
  return from_doubles(t.element_type(), t.shape(), values);
}

class Ran {
 public:
  Ran(const CompiledModel& compiled, const std::vector<Tensor>& inputs) {
    auto request = compiled.create_request();
    for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
    request.run();
    for (std::size_t i = 0; i < compiled.outputs().size(); ++i) outputs.push_back(request.output(i).clone());
  }
  std::vector<Tensor> outputs;
};

TEST(StoredModels, right_outputs_are_right_and_wrong_ones_wrong) {
  const auto files = models();
  if (files.empty()) GTEST_SKIP() << "skipped: there are no models in ../shared/models/qdq";
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename().string());
    const auto npz = read_npz(fs::path(path).replace_extension(".npz").string());
    const auto inputs = numbered(npz, "in"), stored = numbered(npz, "out");
    Options options;
    options.keep_weights = true;
    const CompiledModel compiled(Model(path.string()), options);
    const auto got = Ran(compiled, inputs).outputs;
    auto other_inputs = inputs;
    other_inputs[0] = reversed(inputs[0]);
    const auto others = Ran(compiled, other_inputs).outputs;
    const auto& graph = Inside::of(compiled).original();
    const auto exact = interpret(graph, inputs);
    StoredOutputs judge(graph, inputs, exact);
    ASSERT_EQ(got.size(), stored.size());
    std::map<std::string, bool> seen, possible;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto right = judge.judge(i, got[i], stored[i], true);
      EXPECT_TRUE(right.ok()) << i << ": " << to_string(right);
      EXPECT_TRUE(judge.judge(i, got[i], exact[i], true).ok()) << i;
      for (const auto& c : corruptions()) {
        const auto wrong = c.apply(stored[i]);
        if (!wrong.valid()) continue;  // nothing to corrupt in that way
        possible[c.name] = true;
        seen[c.name] |= !judge.judge(i, got[i], wrong, true).ok();
        if (std::getenv("LAMINA_TEST_VERBOSE") && judge.judge(i, got[i], wrong, true).ok())
          std::printf("%s %zu %s: %s\n", path.filename().c_str(), i, c.name.c_str(),
                      to_string(judge.judge(i, got[i], wrong, true)).c_str());
      }
      seen["another input's outputs"] |= !judge.judge(i, got[i], others[i], true).ok();
    }
    possible["another input's outputs"] = true;
    for (const auto& [name, is] : possible) EXPECT_TRUE(seen[name]) << name;
  }
}

}  // namespace
}  // namespace lamina::checking
