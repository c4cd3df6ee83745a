#include "tool/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "base/nearest.h"
#include "base/text.h"
#include "tool/benchmark_app.h"
#include "tool/model_optimizer.h"
#include "tool/verb_list.h"

namespace lamina::tool {
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

/// The verb that the words begin with; the program itself when there is none.
const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& words) {
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!words.empty() && sub->get_name() == words[0]) return *sub;
  return app;
}

/// What --help lists, and benchmark_app's spellings where they are understood.
std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> options, subcommands;
  collect_names(verb, options, subcommands);
  if (verb.get_name() == "optimize")
    for (auto& name : model_optimizer_names()) options.push_back(std::move(name));
  if (verb.get_name() != "benchmark") return options;
  for (auto& name : benchmark_app_names()) options.push_back(std::move(name));
  return options;
}

/// The shortest option that begins with what may be half of its name; empty: there is none.
std::string completed(const std::string& head, const std::vector<std::string>& names) {
  constexpr std::size_t kLeast = 4;  // with a hyphen in front
  std::string best;
  for (const auto& name : names)
    if (head.size() >= kLeast && name.starts_with(head) && (best.empty() || name.size() < best.size()))
      best = name;
  return best;
}

std::string unknown_option(const CLI::App& verb, const std::string& head) {
  const auto names = option_names(verb);
  auto meant = did_you_mean(head, names);
  if (const auto whole = completed(head, names); meant.empty() && !whole.empty())
    meant = fmt::format(", did you mean \"{}\"?", whole);
  return one_line(fmt::format("option \"{}\" is not known{}", head,
                              meant.empty() ? fmt::format(" (lamina {}--help lists them)",
                                                          verb.get_parent() ? verb.get_name() + " " : "")
                                            : meant));
}

/// -oFILE: an option of one letter with its value.
bool has_value_joined(const CLI::App& verb, const std::string& word) {
  const auto* option = verb.get_option_no_throw(word.substr(0, 2));
  return option && option->get_items_expected() > 0;
}

}  // namespace

std::string CommandWords::as_typed(std::string text) const {
  for (const auto& [ours, word] : typed)
    for (auto at = text.find(ours); at != std::string::npos; at = text.find(ours, at + word.size()))
      text.replace(at, ours.size(), word);
  return text;
}

CommandWords canonical_arguments(const CLI::App& app, int argc, char** argv) {
  CommandWords out{{argv + std::min(argc, 1), argv + argc}, {}};
  auto& words = out.words;
  if (words.empty()) return out;
  if (words[0] == "help") {
    words.erase(words.begin());
    const bool known = words.empty() || std::any_of(verbs().begin(), verbs().end(),
                                                    [&](const VerbRow& v) { return v.name == words[0]; });
    if (known) words.insert(words.begin() + (words.empty() ? 0 : 1), "--help");
  }
  if (!words.empty() && words[0] == "benchmark") {
    auto made = translate_benchmark_app({words.begin() + 1, words.end()});
    words = std::move(made.words);
    words.insert(words.begin(), "benchmark");
    out.typed = std::move(made.typed);
  }
  if (!words.empty() && words[0] == "optimize") {
    std::vector<std::string> options, subcommands;
    collect_names(verb_of(app, words), options, subcommands);
    auto made = translate_model_optimizer({words.begin() + 1, words.end()}, options);
    words = std::move(made.words);
    words.insert(words.begin(), "optimize");
    out.typed = std::move(made.typed);
  }
  return out;
}

void refuse_joined_options(const CLI::App& app, const std::vector<std::string>& words) {
  const auto& verb = verb_of(app, words);
  for (const auto& word : words) {
    if (word == "--") return;
    const auto head = word.substr(0, word.find('='));
    if (head.size() < 3 || head[0] != '-' || !std::isalpha(static_cast<unsigned char>(head[1]))) continue;
    if (!has_value_joined(verb, word)) throw UsageError(unknown_option(verb, head));
  }
}

std::string explain_usage(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words) {
  const CLI::App* current = &verb_of(app, words);
  std::vector<std::string> options, subcommands;
  collect_names(*current, options, subcommands);
  if (current == &app && !words.empty() && words[0].starts_with("-")) {
    const auto head = words[0].substr(0, words[0].find('='));
    if (std::find(options.begin(), options.end(), head) == options.end()) return unknown_option(app, head);
    return fmt::format("no verb after \"{}\", wanted one of {}", head, fmt::join(subcommands, ", "));
  }
  if (current == &app && !words.empty()) {
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
      return unknown_option(*current, head);
    }
  return one_line(error.what());
}

}  // namespace lamina::tool
