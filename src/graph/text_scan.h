#pragma once
/// Words, names and numbers of the text form. Internal to text_*.cc.
#include <string>
#include <string_view>

#include "base/error.h"

namespace lamina::text {

/// Whether a name needs no quotes.
bool is_plain(std::string_view name);
/// The name, in quotes where needed.
std::string quoted_if_needed(std::string_view name);
std::string quoted(std::string_view text);

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Throws "line N: ...".
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) const {
    fail_text(fmt::format(text, std::forward<A>(args)...));
  }
  /// "found X, wanted Y".
  [[noreturn]] void unexpected(std::string_view wanted) const;
  std::size_t line() const { return line_; }

  void skip_blanks();  ///< and a comment; not the line's end
  void skip_space();   ///< line ends too
  bool at_end() const { return at_ == text_.size(); }
  /// The next character; '\0' at the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  /// True, after blanks, if the statement ends here (line's end, '}' or the end of the text).
  bool at_statement_end();

  // The functions below skip space (with line ends) before the token.
  bool next_is(std::string_view token);
  bool accept(std::string_view token);
  void expect(std::string_view token);
  bool accept_word(std::string_view word);
  bool next_is_word();
  bool next_is_quoted() { return next_is("\""); }
  std::string word(std::string_view wanted,
                   std::string_view also = {});  ///< `also`: further characters allowed
  std::string quoted(std::string_view wanted);
  std::string word_or_quoted(std::string_view wanted, std::string_view also = {});
  /// Name of a value.
  std::string name(std::string_view wanted);
  /// The characters of a number, a NaN with its bits, or a word such as inf and true.
  std::string_view number(std::string_view wanted);
  std::int64_t integer(std::string_view wanted);
  std::uint64_t unsigned_integer(std::string_view wanted);
  /// Digits only, so that "1..8" is three tokens.
  std::int64_t digits(std::string_view wanted);

 private:
  [[noreturn]] void fail_text(const std::string& text) const;
  std::string_view word_here(std::string_view also = {}) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace lamina::text
