/// The text form of every model at hand, as read and as optimised: print and parse are inverses, and nothing
/// is broken.
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/formats.h"
#include "graph/same.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "ops/operators.h"
#include "rules/optimize.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> models_in(const fs::path& folder) {
  std::vector<std::string> out;
  if (!fs::is_directory(folder)) return out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    const bool negative = name.starts_with("NEGATIVE");
    if (!negative && (name.ends_with(".onnx") || name.ends_with(".xml")))
      out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void check(const Graph& graph, const std::string& what) {
  SCOPED_TRACE(what);
  const auto broken = verify(graph);
  EXPECT_TRUE(broken.empty()) << broken.size() << " broken: " << (broken.empty() ? "" : broken[0]);
  const auto text = print_graph(graph);
  const auto again = parse_graph(text.text, operators(), text.data);
  const auto second = print_graph(again);
  EXPECT_TRUE(text.text == second.text) << "the text differs";
  EXPECT_EQ(text.data.size(), second.data.size());
  EXPECT_TRUE(same_graph(graph, again));
}

void check_all(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    auto graph = read_model(path);
    check(graph, path + " as read");
    Ledger ledger;
    optimize(graph, {}, ledger);
    check(graph, path + " optimised");
  }
}

TEST(RoundTrip, models_of_packages) {
  const auto paths = models_in(fs::path(LAMINA_DEPS) / "models");
  ASSERT_FALSE(paths.empty()) << "scripts/bootstrap --test-models fetches them";
  check_all(paths);
}

TEST(RoundTrip, shared_models) {
  const fs::path shared = fs::path(LAMINA_SHARED) / "models";
  if (!fs::is_directory(shared)) GTEST_SKIP() << shared << " is not there";
  for (const char* group : {"onnx", "ir", "qdq"}) check_all(models_in(shared / group));
}

}  // namespace
}  // namespace lamina
