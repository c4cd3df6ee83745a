#pragma once
/// Compiled models in a folder of their own, and what tests of them share.
#include <filesystem>
#include <fstream>

#include "api/inside.h"
#include "base/random.h"
#include "tests/api/small_models.h"
#include "tests/base/temporary_folder.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {

inline Tensor random_tensor(const Dims& dims, std::uint64_t seed) {
  Tensor t(ElementType::f32, dims);
  SplitMix random(seed);
  for (auto& v : t.data<float>()) v = static_cast<float>(2 * random.uniform() - 1) / 8;
  return t;
}

/// Two convolutions with a ReLU between, a sum, and a product; `batch`: a size or a name.
inline std::string network(const std::string& batch, std::uint64_t seed = 1) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {batch, "16", "8", "8"});
  g.initializer("w1", random_tensor({32, 16, 3, 3}, seed)).initializer("b1", random_tensor({32}, seed + 1));
  g.initializer("w2", random_tensor({32, 32, 1, 1}, seed + 2))
      .initializer("fc", random_tensor({32, 100}, seed + 3));
  g.node("Conv", {"x", "w1", "b1"}, {"a"}, {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})},
         "conv1");
  g.node("Relu", {"a"}, {"r"}, {}, "relu").node("Conv", {"r", "w2"}, {"c"}, {}, "conv2");
  g.node("Add", {"c", "r"}, {"s"}, {}, "sum").node("GlobalAveragePool", {"s"}, {"p"}, {}, "pool");
  g.node("Flatten", {"p"}, {"f"}, {}, "flat").node("MatMul", {"f", "fc"}, {"y"}, {}, "product").output("y");
  return onnx_model(g);
}

class Saved : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string content(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const auto& f : std::filesystem::directory_iterator(folder_ / "cache"))
      if (f.path().extension() == ".lamina") out.push_back("cache/" + f.path().filename().string());
    return out;
  }
  /// Options with CACHE_DIR; log lines at warning level go to `lines`.
  Options cached() {
    Options o;
    o.cache_dir = path("cache");
    o.log = [this](LogLevel level, std::string_view line) {
      if (level <= LogLevel::warning) lines_.emplace_back(line);
    };
    return o;
  }
  static bool loaded(const CompiledModel& c) { return Inside::of(c).loaded_from_cache(); }

  test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  std::vector<std::string> lines_;
};

inline void expect_same_bits(const CompiledModel& a, const CompiledModel& b, const Dims& shape) {
  const auto x = random_tensor(shape, 77);
  const auto one = a(std::vector{x}), other = b(std::vector{x});
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].same_as(other[i])) << "output " << i;
}

}  // namespace lamina::testing
