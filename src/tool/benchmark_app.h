#pragma once
/// The options of OpenVINO's benchmark_app, in its spellings, for `lamina benchmark`.
#include <map>
#include <string>
#include <vector>

namespace lamina::tool {

struct BenchmarkAppWords {
  std::vector<std::string> words;            ///< in lamina's options
  std::map<std::string, std::string> typed;  ///< lamina's option: as it was spelt
};

/// The words after `benchmark`. Options that lamina cannot honour throw UsageError: measured without them,
/// the figures would be of something else. What is no option of benchmark_app stays.
BenchmarkAppWords translate_benchmark_app(const std::vector<std::string>& words);

/// "-niter", "-nireq", ...: those that lamina honours, for suggestions.
std::vector<std::string> benchmark_app_names();

}  // namespace lamina::tool
