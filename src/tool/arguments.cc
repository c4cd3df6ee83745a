#include "tool/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/nearest.h"
#include "base/text.h"

namespace lamina::tool {
namespace {

/// benchmark_app's options: ours, or "" when the value is dropped, or "!" when it has no value.
const std::map<std::string, std::string>& benchmark_app_words() {
  static const std::map<std::string, std::string> table{{"-m", "MODEL"},
                                                        {"-i", "--input"},
                                                        {"-d", "--device"},
                                                        {"-hint", "--hint"},
                                                        {"-nstreams", "--streams"},
                                                        {"-nthreads", "--threads"},
                                                        {"-nireq", "--requests"},
                                                        {"-niter", "--iterations"},
                                                        {"-t", "--seconds"},
                                                        {"-b", "--batch"},
                                                        {"-api", "--api"},
                                                        {"-shape", "--benchmark-app-shape"},
                                                        {"-infer_precision", "--infer-precision"},
                                                        {"-report_type", "--report-type"},
                                                        {"-report_folder", "--report-folder"},
                                                        {"-exec_graph_path", "--runtime-graph"},
                                                        {"-json_stats", "--json-stats"},
                                                        {"-pc", "-pc"}};
  return table;
}

}  // namespace

std::vector<std::string> canonical_arguments(int argc, char** argv) {
  std::vector<std::string> in(argv + std::min(argc, 1), argv + argc), out;
  const bool benchmark = !in.empty() && in[0] == "benchmark";
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::string word = in[i], value;
    const auto equals = word.find('=');
    const std::string head =
        benchmark && word.starts_with("-") && !word.starts_with("--") ? word.substr(0, equals) : "";
    const auto it = benchmark_app_words().find(head);
    if (head.empty() || it == benchmark_app_words().end()) {
      out.push_back(word == "-pc" ? "--pc" : word);
      continue;
    }
    if (head == "-pc") {
      out.push_back("--pc");
      continue;
    }
    if (it->second != "MODEL") out.push_back(it->second);
    if (equals != std::string::npos) out.push_back(word.substr(equals + 1));
  }
  return out;
}

namespace {

void collect_names(const CLI::App& app, std::vector<std::string>& options,
                   std::vector<std::string>& subcommands) {
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) options.push_back("--" + name);
    for (const auto& name : option->get_snames()) options.push_back("-" + name);
  }
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    subcommands.push_back(sub->get_name());
}

}  // namespace

std::string explain_usage(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words) {
  const CLI::App* current = &app;
  if (!words.empty())
    for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; }))
      if (sub->get_name() == words[0]) current = sub;
  std::vector<std::string> options, subcommands;
  collect_names(*current, options, subcommands);
  if (current == &app && !words.empty() && !words[0].starts_with("-")) {
    const auto meant = did_you_mean(words[0], subcommands);
    return one_line(
        fmt::format("verb \"{}\" is not known{}", words[0],
                    meant.empty() ? fmt::format(", wanted one of {}", fmt::join(subcommands, ", ")) : meant));
  }
  if (current == &app && words.empty())
    return fmt::format("no verb given, wanted one of {}", fmt::join(subcommands, ", "));
  if (dynamic_cast<const CLI::ExtrasError*>(&error))
    for (const auto& word : words) {
      const auto head = word.substr(0, word.find('='));
      if (!word.starts_with("-") || std::find(options.begin(), options.end(), head) != options.end())
        continue;
      const auto meant = did_you_mean(head, options);
      return one_line(fmt::format(
          "option \"{}\" is not known{}", head,
          meant.empty() ? fmt::format(" (lamina {} --help lists them)", current->get_name()) : meant));
    }
  return one_line(error.what());
}

}  // namespace lamina::tool
