#include "base/table_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/no_destructor.h"
#include "base/shorten.h"
#include "base/terminal.h"

namespace lamina {

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit < 4) bytes /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./=,:@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word)
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  return out + "'";
}

std::string shortened(std::string_view text, std::size_t length) {
  return shorten(text, static_cast<double>(length), 1, [](std::string_view) { return 1.0; });
}

std::string padded(std::string_view text, std::size_t length) {
  static const ProcessLifetime cuts([] { return is_terminal(1); });
  auto out = *cuts ? shortened(text, length) : std::string(text);
  out.append(length - std::min(length, text_length(out)), ' ');
  return out;
}

}  // namespace lamina
