#pragma once
/// The words of the command line.
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace lamina::tool {

struct CommandWords {
  std::vector<std::string> words;            ///< without the program's name
  std::map<std::string, std::string> typed;  ///< options that were spelt otherwise, as benchmark_app's are

  /// The text with options as the user spelt them.
  std::string as_typed(std::string text) const;
};

/// The arguments in lamina's own words: `help VERB` and, after `benchmark`, the spellings of
/// OpenVINO's benchmark_app. Throws UsageError.
CommandWords canonical_arguments(const CLI::App& app, int argc, char** argv);

/// Throws UsageError for words such as -hnt: CLI11 would take them for -h -n -t.
void refuse_joined_options(const CLI::App& app, const std::vector<std::string>& words);

/// One line for a wrong command line that names the word and the nearest valid one.
std::string explain_usage(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words);

}  // namespace lamina::tool
