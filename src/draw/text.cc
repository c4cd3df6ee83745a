#include "draw/text.h"

#include <algorithm>
#include <cstdint>

#include "base/no_destructor.h"
#include "base/terminal.h"

namespace lamina {
namespace {

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

/// Characters of printable text.
std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto n = std::max<std::size_t>(1, character_bytes(text.substr(i, 4)));
    out.push_back(text.substr(i, n));
    i += n;
  }
  return out;
}

/// Advance widths of DejaVu Sans, the widest of the usual fonts, in hundredths of the size, from ' ' to '~'.
constexpr std::uint8_t kWidths[] = {
    32, 40, 46, 84, 64, 95, 78, 27, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 69, 63, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63,  63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};

double width_of(std::string_view c, double size, bool bold) {
  const bool ascii = c.size() == 1 && c[0] >= ' ' && c[0] <= '~';
  const double hundredths = ascii ? kWidths[static_cast<std::size_t>(c[0] - ' ')] : c.size() < 3 ? 70 : 100;
  return hundredths / 100 * size * (bold ? 1.1 : 1);
}

/// The first and last characters that fit a budget, with an ellipsis between; `cost` of one character.
template <class Cost>
std::string shorten(std::string_view text, double budget, double ellipsis, Cost&& cost) {
  const auto all = characters(text);
  double whole = 0;
  for (const auto c : all) whole += cost(c);
  if (whole <= budget) return std::string(text);
  double used = ellipsis;
  std::size_t head = 0, tail = 0;
  // Two of three characters from the end.
  for (std::size_t turn = 0; head + tail < all.size(); ++turn) {
    const bool front = turn % 3 == 2;
    const auto c = front ? all[head] : all[all.size() - 1 - tail];
    if (used + cost(c) > budget) break;
    used += cost(c);
    ++(front ? head : tail);
  }
  std::string out;
  for (std::size_t i = 0; i < head; ++i) out += all[i];
  out += kEllipsis;
  for (std::size_t i = all.size() - tail; i < all.size(); ++i) out += all[i];
  return out;
}

}  // namespace

std::string escape_xml(std::string_view text, bool keep_lines) {
  std::string out;
  for (const char c : printable(text, keep_lines)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string quote_dot(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text, true)) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

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

double text_width(std::string_view text, double size, bool bold) {
  double sum = 0;
  for (const auto c : characters(text)) sum += width_of(c, size, bold);
  return sum;
}

std::string shortened_to_width(std::string_view text, double width, double size, bool bold) {
  return shorten(text, width, width_of(kEllipsis, size, bold),
                 [&](std::string_view c) { return width_of(c, size, bold); });
}

std::vector<std::string> wrapped(const std::vector<std::string>& words, std::string_view separator,
                                 double width, double size, std::size_t lines) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string tail(i + 1 < words.size() ? separator : "");
    const auto longer = out.empty() ? "" : out.back() + words[i] + tail;
    if (!out.empty() && text_width(longer, size) <= width) {
      out.back() = longer;
    } else if (out.size() < lines) {
      out.push_back(shortened_to_width(words[i] + tail, width, size));
    } else {
      out.back() = shortened_to_width(out.back() + std::string(kEllipsis), width, size);
      break;
    }
  }
  return out;
}

}  // namespace lamina
