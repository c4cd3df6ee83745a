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

/// The words after `benchmark`. An option without effect here becomes --idle with a sentence, any other
/// option of benchmark_app becomes lamina's option, with --written for its spelling. All other words stay.
/// Throws UsageError.
BenchmarkAppWords translate_benchmark_app(const std::vector<std::string>& words);

/// "-niter", "-nireq", ...: for suggestions.
std::vector<std::string> benchmark_app_names();

/// A line for each, for --help.
std::string benchmark_app_help();

}  // namespace lamina::tool
