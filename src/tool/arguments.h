#pragma once
/// The words of the command line.
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace lamina::tool {

/// The arguments without the program's name; after `benchmark`, the spellings of OpenVINO's benchmark_app
/// become ours.
std::vector<std::string> canonical_arguments(int argc, char** argv);

/// One line for a wrong command line that names the word and the nearest valid one.
std::string explain_usage(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words);

}  // namespace lamina::tool
