#pragma once
/// The options of a verb. CLI11 does the work; its templates are compiled in options.cc only.
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lamina::tool {

/// An option that was added, for further settings.
class OptionHandle {
 public:
  explicit OptionHandle(CLI::Option* option) : option_(option) {}

  OptionHandle required();
  /// A command line with both options is wrong.
  OptionHandle excludes(OptionHandle other) const;
  OptionHandle hidden();  ///< --help does not list it
  bool given() const;     ///< once the command line has been read

 private:
  CLI::Option* option_;
};

/// Adds options to a verb: `names` as "-o,--output", `type` as --help shows the value, the variable with its
/// default. Variables are written when the command line is read; a value that does not fit, or an empty one,
/// makes it wrong.
class OptionSet {
 public:
  explicit OptionSet(CLI::App& verb) : verb_(verb) {}

  OptionHandle flag(const std::string& names, bool& value, const std::string& doc);
  OptionHandle text(const std::string& names, std::string& value, const std::string& type,
                    const std::string& doc);
  OptionHandle choice(const std::string& names, std::string& value, const std::vector<std::string>& words,
                      const std::string& type, const std::string& doc);
  /// T: int, long, unsigned, std::size_t or double; `least` to `most`.
  template <class T>
  OptionHandle number(const std::string& names, T& value, T least, T most, const std::string& type,
                      const std::string& doc);
  /// T: std::string or double. A value each time the option is there, or several with `delimiter` between.
  template <class T>
  OptionHandle list(const std::string& names, std::vector<T>& values, const std::string& type,
                    const std::string& doc, char delimiter = '\0');
  /// Takes exactly that many values at once.
  OptionHandle words(const std::string& names, std::vector<std::string>& values, int count,
                     const std::string& type, const std::string& doc);

  /// True if the command line, once it has been read, has the option: "--output".
  bool given(const std::string& name) const;
  /// Options of the command line that --help lists, in its order, with their values ("" for flags).
  std::vector<std::pair<std::string, std::string>> written() const;
  /// Adds lines after the options in --help.
  void remark(const std::string& text);

 private:
  CLI::App& verb_;
};

}  // namespace lamina::tool
