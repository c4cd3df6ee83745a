#include "base/text.h"

#include <algorithm>
#include <cstdint>

namespace lamina {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_shown(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
  const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return !control && !turns && !surrogate && code <= 0x10ffff && (code & 0xfffe) != 0xfffe;
}

bool continues(char c) { return (static_cast<std::uint8_t>(c) & 0xc0) == 0x80; }

/// The bytes that the first `count` characters take.
std::size_t bytes_of_first(std::string_view text, std::size_t count) {
  std::size_t i = 0;
  for (; i < text.size() && count != 0; --count)
    i += std::max<std::size_t>(1, character_bytes(text.substr(i)));
  return std::min(i, text.size());
}

std::size_t bytes_of_last(std::string_view printable, std::size_t count) {
  std::size_t begin = printable.size();
  for (; begin != 0 && count != 0; --count) do
      --begin;
    while (begin != 0 && continues(printable[begin]));
  return printable.size() - begin;
}

std::string note_of(std::size_t characters) {
  return std::string(kEllipsis) + "(" + std::to_string(characters) + " characters)" + std::string(kEllipsis);
}

/// The end of the name that begins with a quotation mark at `at`; `at` if it is no name.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char mark = text[at];
  if (mark != '"' && mark != '\'') return at;
  if (mark == '\'' && at != 0 && text[at - 1] != ' ' && text[at - 1] != '(') return at;  // an apostrophe
  const auto end = text.find(mark, at + 1);
  return end == std::string_view::npos ? at : end;
}

/// The text with its words and quoted names clipped to that length.
std::string with_short_names(std::string_view text, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (const auto end = end_of_quoted(text, i); end != i) {
      out += text[i];
      out += clipped(text.substr(i + 1, end - i - 1), most);
      out += text[end];
      i = end + 1;
    } else if (text[i] == ' ' || text[i] == '"') {
      out += text[i++];
    } else {
      const auto end_of_word = std::min(text.find_first_of(" \"", i), text.size());
      out += clipped(text.substr(i, end_of_word - i), most);
      i = end_of_word;
    }
  }
  return out;
}

}  // namespace

std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80) return is_shown(first) ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return code >= kLeast[length] && is_shown(code) ? length : 0;
}

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto n = character_bytes(text.substr(i, 4));
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

std::size_t text_length(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++count)
    i += std::max<std::size_t>(1, character_bytes(text.substr(i, 4)));
  return count;
}

std::string clipped(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);  // no character is shorter than a byte
  const auto length = text_length(text);
  if (length <= most) return std::string(text);
  const auto note = note_of(length);
  const auto kept = most - std::min(most, text_length(note));
  const auto head = (kept + 1) / 2;
  return std::string(text.substr(0, bytes_of_first(text, head))) + note +
         std::string(text.substr(text.size() - bytes_of_last(text, kept - head)));
}

namespace {

/// Bytes of the path that a line begins with ("/a/b.onnx: ...", "--output /a/b: ..."), up to its colon; 0:
/// there is none, or it is longer than paths are.
std::size_t path_in_front(std::string_view line) {
  constexpr std::size_t kLongestPath = 4096 + 64;  // and an option before it
  const auto end = line.find(": ");
  if (end == std::string_view::npos || end > kLongestPath) return 0;
  const auto head = line.substr(0, end);
  const bool path = head.find('/') != std::string_view::npos && head.find('"') == std::string_view::npos;
  return path ? end : 0;
}

}  // namespace

/// The path that a line begins with stays whole and does not count.
std::string one_line(std::string_view text, std::size_t most) {
  auto line = printable(text);
  if (line.size() <= most || text_length(line) <= most) return line;
  if (const auto path = path_in_front(line); path > 0)  // whole: a shortened one cannot be opened
    return line.substr(0, path) + one_line(std::string_view(line).substr(path), most);
  for (const std::size_t word : {120, 80, 40})
    if (auto shorter = with_short_names(line, word); text_length(shorter) <= most) return shorter;
  return clipped(with_short_names(line, 40), most);
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto n = std::max<std::size_t>(1, character_bytes(text.substr(i, 4)));
    out.push_back(text.substr(i, n));
    i += n;
  }
  return out;
}

}  // namespace lamina
