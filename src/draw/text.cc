#include "draw/text.h"

#include <algorithm>
#include <cstdint>

#include "base/shorten.h"

namespace lamina {
namespace {

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
