/// Completions for bash and zsh, from the options of the verbs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tool/pages.h"

namespace lamina::tool {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> offered_names(const CLI::App& verb) {
  std::vector<std::string> out;
  for (const auto& entry : option_entries(verb))
    if (!entry.positional) out.insert(out.end(), entry.names.begin(), entry.names.end());
  return out;
}

/// What completes the value of an option in bash.
std::string bash_value(const OptionEntry& entry) {
  if (!entry.words.empty())
    return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")", fmt::join(entry.words, " "));
  if (entry.takes_file()) return "_lamina_files";
  if (entry.takes_folder()) return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")";
  return ":";  // a number or a name: nothing to offer, and no options either
}

/// The cases of one verb: what follows each option that takes a value.
std::string bash_values(const CLI::App& verb) {
  std::string out;
  for (const auto& entry : option_entries(verb)) {
    if (entry.positional || entry.type.empty()) continue;
    std::string names;
    for (const auto& name : entry.names)
      names += fmt::format("{}{}:{}", names.empty() ? "" : "|", verb.get_name(), name);
    out += fmt::format("    {}) {}; return ;;\n", names, bash_value(entry));
  }
  return out;
}

/// The cases of one verb: what its positional arguments are, where they come before all options. Files need
/// no case.
std::string bash_positionals(const CLI::App& verb) {
  std::string out;
  int position = 2;  // after the program and the verb
  for (const auto& entry : option_entries(verb)) {
    if (!entry.positional) continue;
    if (!entry.words.empty() || entry.takes_folder())
      out += fmt::format("    {}:{}) {}; return ;;\n", verb.get_name(), position, bash_value(entry));
    ++position;
  }
  return out;
}

/// "[" and ":" mean something in a description of zsh's _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const OptionEntry& entry) {
  if (!entry.words.empty()) return fmt::format("({})", fmt::join(entry.words, " "));
  if (entry.takes_file()) return "_files";
  return entry.takes_folder() ? "_files -/" : " ";
}

std::string zsh_argument(const OptionEntry& entry) {
  const auto value =
      entry.type.empty() && !entry.positional
          ? ""
          : fmt::format(
                ":{}:{}",
                zsh_text(entry.positional ? entry.names[0] : entry.type.substr(0, entry.type.find(':'))),
                zsh_action(entry));
  if (entry.positional) return quoted((entry.repeated ? "*" : "") + value);
  const auto doc = fmt::format("[{}]", zsh_text(entry.doc));
  if (entry.names.size() == 1) return quoted((entry.repeated ? "*" : "") + entry.names[0] + doc + value);
  const auto others = fmt::format("({})", fmt::join(entry.names, " "));
  return fmt::format("{}{{{}}}{}", quoted(entry.repeated ? "*" : others), fmt::join(entry.names, ","),
                     quoted(doc + value));
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string verbs, options, values, positionals;
  for (const auto* verb : verb_entries(app)) {
    verbs += verb->get_name() + " ";
    options +=
        fmt::format("    {}) options='{}' ;;\n", verb->get_name(), fmt::join(offered_names(*verb), " "));
    values += bash_values(*verb);
    positionals += bash_positionals(*verb);
  }
  return fmt::format(R"(# Completion of the command lamina for bash; made from its options.
_lamina_files() {{
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}}

_lamina() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} verb=${{COMP_WORDS[1]}} options=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{0}help {1}' -- "$cur")
    return
  fi
  # bash makes a word of the = in --option=value.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case $verb:$prev in
{2}    help:*) mapfile -t COMPREPLY < <(compgen -W '{0}' -- "$cur"); return ;;
  esac
  if [[ $cur != -* ]]; then
    case $verb:$COMP_CWORD in
{3}    esac
    _lamina_files
    return
  fi
  case $verb in
{4}  esac
  mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
}}
complete -F _lamina lamina
)",
                     verbs, fmt::join(offered_names(app), " "), values, positionals, options);
}

std::string zsh_completion(const CLI::App& app) {
  std::string verbs, cases;
  for (const auto* verb : verb_entries(app)) {
    verbs += fmt::format("    {}\n", quoted(verb->get_name() + ":" + verb->get_description()));
    cases += fmt::format("    {})\n      _arguments", verb->get_name());
    for (const auto& entry : option_entries(*verb)) cases += " \\\n        " + zsh_argument(entry);
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef lamina
# Completion of the command lamina for zsh; made from its options.
_lamina() {{
  local -a verbs=(
{}    'help:Says more about a verb'
  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
    help) _describe verb verbs ;;
{}  esac
}}
_lamina "$@"
)",
                     verbs, cases);
}

}  // namespace lamina::tool
