#pragma once
/// Names, counts and times as the sentences of explain/verdict.h have them.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/table_text.h"

namespace lamina {

inline std::string in_quotes(const std::string& name) { return "'" + clipped(printable(name), 200) + "'"; }

/// "1 layer", "3 layers"
inline std::string count_of(std::size_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

inline std::string percent(double share) {
  return share > 0 && share < 0.01 ? "less than 1 %" : fmt::format("{:.0f} %", 100 * share);
}

inline std::string times_text(double us) {
  return us >= 1000 ? fmt::format("{:.3g} ms", us / 1000) : fmt::format("{:.3g} us", us);
}

/// "'a' and 'b'", "'a', 'b', 'c' and 4 more"
inline std::string list(const std::vector<std::string>& words, std::size_t all) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() && words.size() == all ? " and " : ", ") + words[i];
  return words.size() == all ? text : fmt::format("{} and {} more", text, all - words.size());
}

}  // namespace lamina
