#pragma once
/// What a package has beside the command: manual pages, and completions for bash and zsh. All of it comes
/// from the verbs and options, so that it says what the command takes.
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace lamina::tool {

/// An option that --help lists, or a positional argument.
struct OptionEntry {
  std::vector<std::string> names;  ///< "-o", "--output"; of a positional argument its only name
  std::string type;                ///< of the value, as --help shows it; empty: it takes none
  std::vector<std::string> words;  ///< the only values, if there is a list of them
  std::string doc;
  bool positional = false, repeated = false;

  bool takes_file() const;
  bool takes_folder() const;
};
std::vector<OptionEntry> option_entries(const CLI::App& verb);
std::vector<const CLI::App*> verb_entries(const CLI::App& app);

/// The page of the program or, with a verb, of that verb, for man.
std::string man_page(const CLI::App& app, const CLI::App* verb);
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);

/// Writes all of these below `folder`, as below /usr/share.
void write_pages(const CLI::App& app, const std::string& folder);

}  // namespace lamina::tool
