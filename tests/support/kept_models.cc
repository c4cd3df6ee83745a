#include "tests/support/kept_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "tests/support/ir_text.h"

namespace lamina::testing {
namespace {

constexpr std::size_t kMostOfATest = 10;
constexpr std::size_t kMostBytes = 32 << 10;

}  // namespace

void keep_model(std::string_view extension, std::string_view model, std::string_view weights_extension,
                std::string_view weights) {
  static const char* folder = std::getenv("LAMINA_KEEP_MODELS");
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (!folder || !test || model.size() + weights.size() > kMostBytes) return;
  static std::map<std::string, std::size_t> numbers;
  static std::set<std::size_t> known;
  std::string name = std::string(test->test_suite_name()) + "." + test->name();
  for (const auto* damaged : {"Hostile.", "Damaged."})  // they are mutated already
    if (name.find(damaged) != std::string::npos) return;
  std::replace(name.begin(), name.end(), '/', '_');
  auto& number = numbers[name];
  const auto hash = std::hash<std::string_view>()(model) ^ 3 * std::hash<std::string_view>()(weights);
  if (number == kMostOfATest || !known.insert(hash).second) return;
  std::filesystem::create_directories(folder);
  const auto path = std::string(folder) + "/" + name + "." + std::to_string(number++) + ".";
  write_file(path + std::string(extension), model);
  if (!weights.empty()) write_file(path + std::string(weights_extension), weights);
}

}  // namespace lamina::testing
