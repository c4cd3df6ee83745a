#include "tool/text.h"

#include <algorithm>
#include <cstdint>

namespace lamina::tool {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

/// Bytes of the character at the beginning, 0 when it is no UTF-8 or no character that XML allows.
std::size_t character(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const auto first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || s.size() < length) return 0;
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[length] || code > 0x10ffff || surrogate || (code & 0xfffe) == 0xfffe ? 0 : length;
}

/// Characters of printable text.
std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto n = std::max<std::size_t>(1, character(text.substr(i)));
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

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto n = character(text.substr(i));
    if (n > 0)
      out += text.substr(i, n);
    else if (text[i] == '\n' && keep_lines)
      out += '\n';
    else if (text[i] == '\n' || text[i] == '\t' || text[i] == '\r')
      out += ' ';
    else
      out += kReplacement;
    i += std::max<std::size_t>(1, n);
  }
  return out;
}

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

std::size_t text_length(std::string_view text) { return characters(text).size(); }

std::string shortened(std::string_view text, std::size_t length) {
  return shorten(text, static_cast<double>(length), 1, [](std::string_view) { return 1.0; });
}

std::string padded(std::string_view text, std::size_t length) {
  auto out = shortened(text, length);
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

}  // namespace lamina::tool
