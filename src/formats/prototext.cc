#include "formats/prototext.h"

#include <deque>

#include "base/numbers.h"
#include "base/work_bounds.h"
#include "formats/prototext_lexer.h"

namespace lamina {

struct ProtoText::Decoded {
  std::deque<std::string> strings;
};

/// Fields, with the messages that are open on a stack of its own.
class ProtoTextParser {
  static constexpr std::size_t kField = 64;  // bytes that take as long as a field beside its text

 public:
  explicit ProtoTextParser(ProtoText& tree) : tree_(tree), lexer_(tree.path(), tree.file_->text()) {}

  void run() {
    for (;;) {
      const char c = lexer_.peek();
      if (lexer_.at_end()) break;
      if (!open_.empty() && c == open_.back().closing) {
        close();
      } else {
        field();
      }
    }
    if (!open_.empty()) {
      const auto& node = tree_.nodes_[open_.back().node];
      lexer_.fail("the file ends in the message \"{}\" that line {} begins, wanted \"{}\"", node.name,
                  node.line, open_.back().closing);
    }
  }

 private:
  struct Open {
    std::uint32_t node = 0;
    char closing = '}';
    bool in_list = false;
  };

  void field() {
    const auto name = lexer_.field_name();
    const bool colon = lexer_.take(':');
    if (lexer_.take('[')) {
      if (!lexer_.take(']')) return element(name);
      lexer_.separator();
    } else if (!begin_message(name, false)) {
      if (!colon) lexer_.fail("{} behind \"{}\", wanted \":\" or \"{{\"", lexer_.found(), name);
      scalar(name);
      lexer_.separator();
    }
  }

  /// Elements of a list up to its end or to the first message, whose end goes on.
  void element(std::string_view name) {
    do {
      if (begin_message(name, true)) return;
      scalar(name);
    } while (lexer_.take(','));
    end_list();
  }

  void end_list() {
    if (!lexer_.take(']')) lexer_.fail("{} in a list, wanted \",\" or \"]\"", lexer_.found());
    lexer_.separator();
  }

  bool begin_message(std::string_view name, bool in_list) {
    const char closing = lexer_.take('{') ? '}' : lexer_.take('<') ? '>' : '\0';
    if (closing == '\0') return false;
    if (open_.size() >= ProtoText::kDeepest)
      lexer_.fail("messages in messages more than {} deep", ProtoText::kDeepest);
    open_.push_back({static_cast<std::uint32_t>(tree_.nodes_.size()), closing, in_list});
    add(name, ProtoText::Kind::message, {}, false);
    return true;
  }

  void close() {
    const Open done = open_.back();
    open_.pop_back();
    lexer_.take(done.closing);
    tree_.nodes_[done.node].next = static_cast<std::uint32_t>(tree_.nodes_.size());
    if (!done.in_list)
      lexer_.separator();
    else if (lexer_.take(','))
      element(tree_.nodes_[done.node].name);
    else
      end_list();
  }

  void scalar(std::string_view name) {
    const char c = lexer_.peek();
    if (c == '"' || c == '\'') return string(name);
    const bool negative = lexer_.take('-');
    if (lexer_.begins_number()) return add(name, ProtoText::Kind::number, lexer_.number(), negative);
    const auto word = lexer_.identifier();
    if (word.empty())
      lexer_.fail("{} as the value of \"{}\", wanted a number, string or word", lexer_.found(), name);
    if (negative && !parse_real<float>(word)) lexer_.fail("\"-\" before \"{}\", wanted a number", word);
    add(name, ProtoText::Kind::identifier, word, negative);
  }

  void string(std::string_view name) {
    auto& decoded = tree_.decoded_->strings;
    const auto first = lexer_.raw_string();
    const char c = lexer_.peek();
    if (c != '"' && c != '\'' && first.find('\\') == std::string_view::npos)
      return add(name, ProtoText::Kind::string, first, false);
    std::string& all = decoded.emplace_back();
    lexer_.decode(first, all);
    for (char next = c; next == '"' || next == '\''; next = lexer_.peek())
      lexer_.decode(lexer_.raw_string(), all);
    add(name, ProtoText::Kind::string, all, false);
  }

  void add(std::string_view name, ProtoText::Kind kind, std::string_view text, bool negative) {
    if (tree_.nodes_.size() >= ProtoText::kMostFields)
      lexer_.fail("more than {} fields", ProtoText::kMostFields);
    note_parsed(sizeof(tree_.nodes_[0]));
    note_read(text.size() + kField);
    const auto next = static_cast<std::uint32_t>(tree_.nodes_.size() + 1);
    tree_.nodes_.push_back({name, text, next, lexer_.line(), kind, negative});
  }

  ProtoText& tree_;
  ProtoTextLexer lexer_;
  std::vector<Open> open_;
};

ProtoText::ProtoText(std::shared_ptr<const MappedFile> file)
    : file_(std::move(file)), decoded_(std::make_unique<Decoded>()) {
  ProtoTextParser(*this).run();
}
ProtoText::~ProtoText() = default;

ProtoText::Message ProtoText::root() const { return {this, 0, static_cast<std::uint32_t>(nodes_.size())}; }

std::optional<ProtoText::Field> ProtoText::Message::find(std::string_view name) const {
  std::optional<Field> last;
  for (const auto field : *this)
    if (field.name() == name) last.emplace(field);
  return last;
}

std::vector<ProtoText::Field> ProtoText::Message::all(std::string_view name) const {
  std::vector<Field> out;
  for (const auto field : *this)
    if (field.name() == name) out.push_back(field);
  return out;
}

void ProtoText::Field::refuse(std::string_view wanted) const {
  if (kind() == Kind::message) fail("\"{}\" is a message, wanted {}", name(), wanted);
  const char* sign = node().negative ? "-" : "";
  fail("\"{}\" is {}{}{}{}, wanted {}", name(), kind() == Kind::string ? "\"" : sign, text().substr(0, 80),
       text().size() > 80 ? "..." : "", kind() == Kind::string ? "\"" : "", wanted);
}

ProtoText::Message ProtoText::Field::message() const {
  if (!is_message()) refuse("a message");
  return {tree_, index_ + 1, node().next};
}

std::string_view ProtoText::Field::string() const {
  if (kind() != Kind::string) refuse("a string in quotes");
  return text();
}

std::string_view ProtoText::Field::word() const {
  if (kind() != Kind::identifier || node().negative) refuse("a word without quotes");
  return text();
}

std::optional<std::uint64_t> ProtoText::Field::magnitude() const {
  if (kind() != Kind::number) return std::nullopt;
  return prototext_integer(text());
}

std::int64_t ProtoText::Field::integer() const {
  const auto value = magnitude();
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  if (!value || *value > kSign - (node().negative ? 0 : 1)) refuse("a whole number of 64 bits");
  return static_cast<std::int64_t>(node().negative ? 0 - *value : *value);
}

std::uint64_t ProtoText::Field::natural() const {
  const auto value = magnitude();
  if (!value || (node().negative && *value != 0)) refuse("a whole number, 0 or more");
  return *value;
}

template <class T>
T ProtoText::Field::real() const {
  if (kind() != Kind::number && kind() != Kind::identifier) refuse("a number");
  auto digits = text();
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) refuse("a decimal number");
  const bool plain = digits.find_first_of(".eEfF") == std::string_view::npos;
  if (kind() == Kind::number && plain && digits.size() > 1 && digits[0] == '0') refuse("a decimal number");
  if (kind() == Kind::number && (digits.ends_with('f') || digits.ends_with('F'))) digits.remove_suffix(1);
  const auto value = parse_real<T>(digits);
  if (!value) refuse("a number");
  return node().negative ? -*value : *value;
}

double ProtoText::Field::number() const { return real<double>(); }
float ProtoText::Field::single() const { return real<float>(); }

bool ProtoText::Field::boolean() const {
  const auto word = text();
  if (kind() == Kind::identifier && !node().negative) {
    if (word == "true" || word == "True" || word == "t") return true;
    if (word == "false" || word == "False" || word == "f") return false;
  }
  if (const auto value = magnitude(); value && *value <= 1 && !node().negative) return *value == 1;
  refuse("true or false");
}

bool looks_like_prototext(std::string_view text) {
  try {
    ProtoTextLexer lexer("", text);
    lexer.field_name();
    const char c = lexer.peek();
    return c == ':' || c == '{' || c == '<' || c == '[';
  } catch (const Error&) {
    return false;
  }
}

}  // namespace lamina
