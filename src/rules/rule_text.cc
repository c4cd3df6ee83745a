#include "rules/rule_text.h"

#include "base/error.h"
#include "base/numbers.h"

namespace lamina {
namespace {

constexpr std::size_t kMostText = 1 << 16;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<RuleStatement> all() {
    std::vector<RuleStatement> out;
    for (skip(true); at_ < text_.size(); skip(true)) {
      out.push_back(statement());
      for (const auto& earlier : out)
        if (&earlier != &out.back() && earlier.name == out.back().name)
          wrong(fmt::format("\"{}\" is made twice", earlier.name));
    }
    if (out.empty()) wrong("no statement");
    return out;
  }

 private:
  RuleStatement statement() {
    RuleStatement s;
    s.name = word("a name");
    expect('=');
    s.op = word("an operator");
    expect('(');
    if (!accept(')')) {
      do s.arguments.push_back(argument());
      while (accept(','));
      expect(')');
    }
    while (!at_end_of_statement()) {
      auto name = word("an attribute or the end of the statement");
      expect('=');
      s.attributes.emplace_back(std::move(name), value());
    }
    return s;
  }

  RuleStatement::Argument argument() {
    using Kind = RuleStatement::Argument::Kind;
    skip(false);
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '-'))
      return {Kind::number, {}, number()};
    auto name = word("a value's name");
    if (name == "_") return {Kind::absent, {}, 0};
    if (name == "const") return {Kind::constant, word("a constant's name"), 0};
    return {Kind::name, std::move(name), 0};
  }

  double number() {
    const auto from = at_;
    while (at_ < text_.size() && text_.find_first_of(",) \t;\n", at_) != at_) ++at_;
    const auto value = parse_real<double>(text_.substr(from, at_ - from));
    if (!value) wrong(fmt::format("\"{}\" is no number", text_.substr(from, at_ - from)));
    return *value;
  }

  /// Up to white space, or in quotes or brackets.
  std::string value() {
    skip(false);
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '[')) {
      const char close = text_[at_] == '"' ? '"' : ']';
      const auto end = text_.find(close, at_ + 1);
      if (end == std::string_view::npos) wrong("a value without an end");
      std::string out(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return out;
    }
    const auto from = at_;
    while (at_ < text_.size() && text_.find_first_of(" \t;\n", at_) != at_) ++at_;
    if (at_ == from) wrong("wanted a value");
    return std::string(text_.substr(from, at_ - from));
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string word(std::string_view wanted) {
    skip(false);
    const auto from = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    if (at_ == from || is_digit(text_[from])) wrong(fmt::format("wanted {}", wanted));
    return std::string(text_.substr(from, at_ - from));
  }

  void skip(bool ends) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                  (ends && (text_[at_] == ';' || text_[at_] == '\n' || text_[at_] == '\r'))))
      ++at_;
  }
  bool accept(char c) {
    skip(false);
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) wrong(fmt::format("wanted \"{}\"", c));
  }
  bool at_end_of_statement() {
    skip(false);
    return at_ >= text_.size() || text_[at_] == ';' || text_[at_] == '\n' || text_[at_] == '\r';
  }
  [[noreturn]] void wrong(const std::string& what) const {
    fail(ErrorCode::bad_file, "\"{}\", at character {}: {}", text_, at_ + 1, what);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<RuleStatement> parse_rule_text(std::string_view text) {
  if (text.size() > kMostText) fail(ErrorCode::bad_file, "{} characters of text", text.size());
  return Scanner(text).all();
}

}  // namespace lamina
