/// Manual pages, from the options of the verbs.
#include "tool/pages.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "base/atomic_file.h"

namespace lamina::tool {
namespace {

bool names_one_of(const std::string& type, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return type.find(part) != std::string::npos; });
}

/// "ORDER:{rgb,bgr}" has words; "N:INT in [1 - 9]" has a range.
std::vector<std::string> words_of(const std::string& type) {
  const auto begin = type.find(":{");
  if (begin == std::string::npos || type.back() != '}') return {};
  return CLI::detail::split(type.substr(begin + 2, type.size() - begin - 3), ',');
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry out;
  out.positional = option.get_positional() && !option.nonpositional();
  if (out.positional) out.names = {option.get_single_name()};
  for (const auto& name : option.get_snames()) out.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) out.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) out.type = option.get_type_name();
  out.words = words_of(out.type);
  out.doc = option.get_description();
  out.repeated = option.get_expected_max() > 1;
  return out;
}

/// Text for roff: no character of it is a command, and a hyphen stays the hyphen that can be copied.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (auto& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// "N:INT in [1 - 9]" is "N" and "1 - 9".
std::pair<std::string, std::string> name_and_range(const std::string& type) {
  const auto colon = type.find(':'), open = type.find(" in [");
  const bool ranged = open != std::string::npos && type.back() == ']';
  return {type.substr(0, colon), ranged ? type.substr(open + 5, type.size() - open - 6) : ""};
}

std::string man_entry(const OptionEntry& entry) {
  std::string names;
  for (const auto& name : entry.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  const auto [value, range] = name_and_range(entry.type);
  if (!value.empty() && !entry.positional) names += fmt::format(" \\fI{}\\fR", roff(value));
  if (entry.repeated) names += " ...";
  auto doc = entry.doc;
  if (!entry.words.empty()) doc += fmt::format(" ({})", fmt::join(entry.words, ", "));
  if (!range.empty()) doc += fmt::format(" ({})", range);
  return fmt::format(".TP\n{}\n{}\n", names, roff(doc));
}

std::string man_options(const CLI::App& verb) {
  std::string out, positional;
  for (const auto& entry : option_entries(verb)) (entry.positional ? positional : out) += man_entry(entry);
  return (positional.empty() ? "" : ".SH ARGUMENTS\n" + positional) + ".SH OPTIONS\n" + out;
}

/// What --help says behind the options: lines stay lines.
std::string man_footer(const std::string& text) {
  std::string out;
  for (const auto& line : CLI::detail::split(text, '\n'))
    out += line.empty() ? ".PP\n" : roff(line) + "\n.br\n";
  return out;
}

std::string man_synopsis(const CLI::App& verb) {
  auto out = fmt::format(".SH SYNOPSIS\n.B lamina {}\n[\\fIOPTIONS\\fR]", roff(verb.get_name()));
  for (const auto& entry : option_entries(verb))
    if (entry.positional) out += fmt::format(" \\fI{}\\fR", roff(entry.names[0]));
  return out + "\n";
}

}  // namespace

bool OptionEntry::takes_file() const {
  return names_one_of(type, {"FILE", "MODEL", "IMAGE", "PATH"}) ||
         (positional && words.empty() && !takes_folder());
}
bool OptionEntry::takes_folder() const { return names_one_of(type, {"FOLDER", "DIR"}); }

std::vector<OptionEntry> option_entries(const CLI::App& verb) {
  std::vector<OptionEntry> out;
  for (const auto* option : verb.get_options())
    if (!option->get_group().empty()) out.push_back(entry_of(*option));
  return out;
}

std::vector<const CLI::App*> verb_entries(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string man_page(const CLI::App& app, const CLI::App* verb) {
  const auto name = verb != nullptr ? "lamina-" + verb->get_name() : "lamina";
  const auto& shown = verb != nullptr ? *verb : app;
  auto out = fmt::format(".TH \"{}\" \"1\" \"\" \"lamina {}\" \"lamina\"\n.SH NAME\n{} \\- {}\n", upper(name),
                         LAMINA_VERSION, roff(name), roff(shown.get_description()));
  if (verb != nullptr)
    return out + man_synopsis(*verb) + man_options(*verb) + ".SH NOTES\n" + man_footer(verb->get_footer());
  out += ".SH SYNOPSIS\n.B lamina\n\\fIVERB\\fR [\\fIOPTIONS\\fR] ...\n.SH VERBS\n";
  for (const auto* each : verb_entries(app))
    out += fmt::format(".TP\n\\fBlamina\\-{}\\fR(1)\n{}\n", roff(each->get_name()),
                       roff(each->get_description()));
  return out + man_options(app) + ".SH NOTES\n" + man_footer(app.get_footer());
}

void write_pages(const CLI::App& app, const std::string& folder) {
  const std::filesystem::path root(folder);
  const auto write = [&](const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    write_file((root / path).string(), text);
  };
  write("man/man1/lamina.1", man_page(app, nullptr));
  for (const auto* verb : verb_entries(app))
    write(fmt::format("man/man1/lamina-{}.1", verb->get_name()), man_page(app, verb));
  write("bash-completion/completions/lamina", bash_completion(app));
  write("zsh/site-functions/_lamina", zsh_completion(app));
}

}  // namespace lamina::tool
