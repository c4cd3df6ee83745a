#include "graph/text_scan.h"

#include <algorithm>
#include <array>

#include "base/numbers.h"

namespace lamina::text {
namespace {

constexpr std::array<std::string_view, 6> kKeywords = {"graph", "body", "const", "sources", "from", "_"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_word(char c) { return starts_word(c) || is_digit(c) || c == '.'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool is_plain(std::string_view name) {
  return !name.empty() && starts_word(name[0]) && std::all_of(name.begin(), name.end(), in_word) &&
         std::find(kKeywords.begin(), kKeywords.end(), name) == kKeywords.end();
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string quoted_if_needed(std::string_view name) {
  return is_plain(name) ? std::string(name) : quoted(name);
}

void Scanner::fail_text(const std::string& text) const {
  throw Error(ErrorCode::bad_file, fmt::format("line {}: {}", line_, text));
}

void Scanner::unexpected(std::string_view wanted) const {
  if (at_end()) fail("the text ends, wanted {}", wanted);
  if (peek() == '\n') fail("the line ends, wanted {}", wanted);
  auto found = word_here("-");
  if (found.empty()) found = text_.substr(at_, 1);
  const auto byte = static_cast<unsigned char>(found[0]);
  if (found.size() == 1 && (byte < 32 || byte > 126)) fail("found the byte {}, wanted {}", byte, wanted);
  fail("found \"{}\", wanted {}", found.substr(0, 60), wanted);
}

void Scanner::skip_blanks() {
  while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) ++at_;
  if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
}

void Scanner::skip_space() {
  for (skip_blanks(); !at_end() && peek() == '\n'; skip_blanks()) {
    ++at_;
    ++line_;
  }
}

bool Scanner::at_statement_end() {
  skip_blanks();
  return at_end() || peek() == '\n' || peek() == '}';
}

bool Scanner::next_is(std::string_view token) {
  skip_space();
  return text_.substr(at_).starts_with(token);
}

bool Scanner::accept(std::string_view token) {
  if (!next_is(token)) return false;
  at_ += token.size();
  return true;
}

void Scanner::expect(std::string_view token) {
  if (!accept(token)) unexpected(fmt::format("\"{}\"", token));
}

std::string_view Scanner::word_here(std::string_view also) const {
  std::size_t end = at_;
  if (end < text_.size() && starts_word(text_[end]))
    while (end < text_.size() && (in_word(text_[end]) || also.find(text_[end]) != std::string_view::npos))
      ++end;
  return text_.substr(at_, end - at_);
}

bool Scanner::accept_word(std::string_view wanted) {
  skip_space();
  if (word_here() != wanted) return false;
  at_ += wanted.size();
  return true;
}

bool Scanner::next_is_word() {
  skip_space();
  return starts_word(peek());
}

std::string Scanner::word(std::string_view wanted, std::string_view also) {
  skip_space();
  const auto found = word_here(also);
  if (found.empty()) unexpected(wanted);
  at_ += found.size();
  return std::string(found);
}

std::string Scanner::quoted(std::string_view wanted) {
  if (!next_is_quoted()) unexpected(wanted);
  std::string out;
  for (++at_; peek() != '"'; ++at_) {
    if (at_end() || peek() == '\n') fail("text in quotes does not end on its line");
    if (peek() != '\\') {
      out += peek();
      continue;
    }
    ++at_;
    const auto plain = std::string_view("\"\\ntr").find(peek());
    if (peek() == 'x') {
      const int high = at_ + 2 < text_.size() ? hex_value(text_[at_ + 1]) : -1;
      const int low = at_ + 2 < text_.size() ? hex_value(text_[at_ + 2]) : -1;
      if (high < 0 || low < 0) fail("found \\x without two hexadecimal digits");
      out += static_cast<char>(high * 16 + low);
      at_ += 2;
    } else if (!at_end() && plain != std::string_view::npos) {
      out += "\"\\\n\t\r"[plain];
    } else {
      fail("found an unknown escape, wanted one of \\\" \\\\ \\n \\t \\r \\xHH");
    }
  }
  ++at_;
  return out;
}

std::string Scanner::word_or_quoted(std::string_view wanted, std::string_view also) {
  return next_is_quoted() ? quoted(wanted) : word(wanted, also);
}

std::string Scanner::name(std::string_view wanted) {
  if (!next_is_quoted()) {
    const auto found = word_here();
    if (!found.empty() && !is_plain(found))
      fail("\"{}\" is a keyword and needs quotes to be a name, wanted {}", found, wanted);
    return word(wanted);
  }
  auto out = quoted(wanted);
  if (out.empty()) fail("found an empty name, wanted {}", wanted);
  return out;
}

std::string_view Scanner::number(std::string_view wanted) {
  skip_space();
  std::size_t end = at_;
  const auto more = [&](std::size_t i) {
    const char c = text_[i];
    return in_word(c) || ((c == '+' || c == '-') && (i == at_ || text_[i - 1] == 'e' || text_[i - 1] == 'E'));
  };
  while (end < text_.size() && more(end)) ++end;
  if (text_.substr(at_, end - at_) == "nan" && end < text_.size() && text_[end] == '(') {
    const auto close = text_.find(')', end);
    if (close == std::string_view::npos || close - end > 20) fail("found nan( without an end");
    end = close + 1;
  }
  if (end == at_) unexpected(wanted);
  const auto out = text_.substr(at_, end - at_);
  at_ = end;
  return out;
}

std::int64_t Scanner::integer(std::string_view wanted) {
  const auto found = number(wanted);
  const auto value = parse_integer<std::int64_t>(found);
  if (!value) fail("found \"{}\", wanted {}", found.substr(0, 60), wanted);
  return *value;
}

std::uint64_t Scanner::unsigned_integer(std::string_view wanted) {
  const auto found = number(wanted);
  const auto value = parse_integer<std::uint64_t>(found);
  if (!value) fail("found \"{}\", wanted {}", found.substr(0, 60), wanted);
  return *value;
}

std::int64_t Scanner::digits(std::string_view wanted) {
  skip_space();
  std::size_t end = at_;
  while (end < text_.size() && is_digit(text_[end])) ++end;
  if (end == at_) unexpected(wanted);
  const auto value = parse_integer<std::int64_t>(text_.substr(at_, end - at_));
  if (!value)
    fail("found \"{}\", wanted {} below 2^63", text_.substr(at_, std::min<std::size_t>(end - at_, 60)),
         wanted);
  at_ = end;
  return *value;
}

}  // namespace lamina::text
