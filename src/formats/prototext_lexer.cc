#include "formats/prototext_lexer.h"

#include <charconv>

#include "formats/reading_points.h"

namespace lamina {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

/// -1 when it is none of that base.
int digit_of(char c, int base) {
  const int value = is_digit(c)            ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : 99;
  return value < base ? value : -1;
}

/// Digits, a point and digits, an exponent, an f: each may be missing, but not all digits.
bool is_decimal(std::string_view token) {
  std::size_t at = 0;
  const auto digits = [&] {
    const auto from = at;
    while (at < token.size() && is_digit(token[at])) ++at;
    return at - from;
  };
  std::size_t count = digits();
  if (at < token.size() && token[at] == '.') {
    ++at;
    count += digits();
  }
  if (count == 0) return false;
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    ++at;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  if (at < token.size() && (token[at] == 'f' || token[at] == 'F')) ++at;
  return at == token.size();
}

void append_utf8(std::uint32_t c, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    tail(12), tail(6), tail(0);
  }
}

}  // namespace

std::optional<std::uint64_t> prototext_integer(std::string_view token) {
  int base = 10;
  if (token.starts_with("0x") || token.starts_with("0X")) {
    base = 16;
    token.remove_prefix(2);
  } else if (token.size() > 1 && token[0] == '0') {
    base = 8;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, base);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return value;
}

ProtoTextLexer::ProtoTextLexer(std::string_view path, std::string_view text) : path_(path), text_(text) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
}

char ProtoTextLexer::peek() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    note_read(1);
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size()) break;
    } else if (!is_space(c)) {
      return c;
    }
    if (text_[at_] == '\n') ++line_;
  }
  return '\0';
}

bool ProtoTextLexer::take(char c) {
  if (peek() != c || at_ == text_.size()) return false;
  ++at_;
  return true;
}

void ProtoTextLexer::separator() {
  if (!take(',')) take(';');
}

std::string_view ProtoTextLexer::word(std::size_t from) {
  for (; at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_])); ++at_) note_read(1);
  return text_.substr(from, at_ - from);
}

std::string_view ProtoTextLexer::identifier() { return is_letter(peek()) ? word(at_) : std::string_view(); }

std::string_view ProtoTextLexer::field_name() {
  const char c = peek();
  if (c == '[') return bracketed_name();
  if (!is_letter(c) && !is_digit(c)) fail("{}, wanted a field's name", found());
  const auto name = word(at_);
  if (is_digit(c) && name.find_first_not_of("0123456789") != std::string_view::npos)
    fail("\"{}\", wanted a field's name", name.substr(0, 80));
  return name;
}

std::string_view ProtoTextLexer::bracketed_name() {
  const auto from = at_++;
  const auto is_part = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("./-%~").find(c) != std::string_view::npos;
  };
  while (at_ < text_.size() && (is_part(text_[at_]) || text_[at_] == ' ')) ++at_;
  if (at_ == text_.size() || text_[at_] != ']') fail("{} in a name in brackets, wanted \"]\"", found());
  ++at_;
  return text_.substr(from, at_ - from);
}

bool ProtoTextLexer::begins_number() {
  const char c = peek();
  return is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]));
}

std::string_view ProtoTextLexer::number() {
  peek();
  const auto from = at_;
  const auto rest = text_.substr(from);
  const bool hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    const bool sign =
        !hexadecimal && (c == '+' || c == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    if (!is_letter(c) && !is_digit(c) && c != '.' && !sign) break;
  }
  const auto token = text_.substr(from, at_ - from);
  if (hexadecimal ? !prototext_integer(token) : !is_decimal(token))
    fail("\"{}\" is no number", token.substr(0, 80));
  return token;
}

std::string_view ProtoTextLexer::raw_string() {
  const char quote = peek();
  const auto from = ++at_;
  for (; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
    note_read(1);
    if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
  }
  if (at_ == text_.size() || text_[at_] != quote) fail("a string without its closing {}", quote);
  return text_.substr(from, at_++ - from);
}

void ProtoTextLexer::decode(std::string_view raw, std::string& out) const {
  for (std::size_t at = 0; at < raw.size();) {
    note_read(8);
    const auto escape = std::min(raw.find('\\', at), raw.size());
    out.append(raw, at, escape - at);
    at = escape == raw.size() ? escape : decode_escape(raw, escape + 1, out);
  }
}

/// `at` is behind the backslash; gives where the text goes on.
std::size_t ProtoTextLexer::decode_escape(std::string_view raw, std::size_t at, std::string& out) const {
  const char c = at < raw.size() ? raw[at] : '\0';
  if (digit_of(c, 8) >= 0) {
    int value = 0;
    for (int i = 0; i < 3 && at < raw.size() && digit_of(raw[at], 8) >= 0; ++i)
      value = value * 8 + digit_of(raw[at++], 8);
    if (value > 255) fail("a string with the escape \\{:o}, wanted at most \\377", value);
    out += static_cast<char>(value);
    return at;
  }
  if (c == 'u' || c == 'U') return decode_code_point(raw, at, out);
  if (c == 'x' || c == 'X') {
    int value = 0, digits = 0;
    for (++at; digits < 2 && at < raw.size() && digit_of(raw[at], 16) >= 0; ++digits)
      value = value * 16 + digit_of(raw[at++], 16);
    if (digits == 0) fail("a string with the escape \\x, wanted a hexadecimal digit behind it");
    out += static_cast<char>(value);
    return at;
  }
  static constexpr std::string_view kLetters = "abfnrtv\\'\"?", kBytes = "\a\b\f\n\r\t\v\\'\"?";
  const auto index = kLetters.find(c);
  if (index == std::string_view::npos) fail("a string with the escape \\{}, which there is not", c);
  out += kBytes[index];
  return at + 1;
}

/// \uXXXX or \UXXXXXXXX; two that are halves of a pair are one.
std::size_t ProtoTextLexer::decode_code_point(std::string_view raw, std::size_t at, std::string& out) const {
  const auto read = [&](std::size_t from) -> std::optional<std::uint32_t> {
    const std::size_t digits = raw[from] == 'u' ? 4 : 8;
    if (raw.size() - from <= digits) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 1; i <= digits; ++i) {
      const int digit = digit_of(raw[from + i], 16);
      if (digit < 0) return std::nullopt;
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    return value;
  };
  auto value = read(at);
  if (!value || *value > 0x10ffff)
    fail("a string with the escape \\{}, wanted a character's number behind it", raw[at]);
  at += raw[at] == 'u' ? 5 : 9;
  if (*value >= 0xd800 && *value < 0xdc00 && raw.substr(at).starts_with("\\u")) {
    if (const auto low = read(at + 1); low && *low >= 0xdc00 && *low < 0xe000) {
      value = 0x10000 + ((*value - 0xd800) << 10) + (*low - 0xdc00);
      at += 6;
    }
  }
  append_utf8(*value, out);
  return at;
}

std::string ProtoTextLexer::found() {
  const char c = peek();
  if (at_ == text_.size()) return "the end of the file";
  if (is_letter(c) || is_digit(c)) {
    const auto from = at_;
    const auto token = word(from);
    at_ = from;
    return fmt::format("\"{}\"", token.substr(0, 80));
  }
  return fmt::format("\"{}\"", c);
}

}  // namespace lamina
