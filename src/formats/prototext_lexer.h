#pragma once
/// The tokens of protobuf's text format.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lamina {

class ProtoTextLexer {
 public:
  /// `path` and `text` must outlive the lexer. A byte order mark at the beginning is skipped.
  ProtoTextLexer(std::string_view path, std::string_view text);

  /// The next character that is neither white space nor in a comment; '\0' at the end, too.
  char peek();
  bool at_end() { return peek() == '\0' && at_ == text_.size(); }
  bool take(char c);
  void separator();  ///< one `,` or `;`, which may be missing
  std::uint32_t line() const { return line_; }

  /// "name", "123" (a field without one), "[extension]" with nothing between its words; throws for all else.
  std::string_view field_name();
  std::string_view identifier();  ///< "" when there is none
  bool begins_number();
  std::string_view number();  ///< without a sign, checked
  /// What lies between its quotes, escapes and all.
  std::string_view raw_string();
  /// Appends the bytes for which a raw string stands.
  void decode(std::string_view raw, std::string& out) const;

  /// What comes next, to be shown.
  std::string found();
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) const {
    lamina::fail(ErrorCode::bad_file, "{}:{}: {}", path_, line_, fmt::format(text, std::forward<A>(args)...));
  }

 private:
  std::string_view word(std::size_t from);
  std::string_view bracketed_name();
  std::size_t decode_escape(std::string_view raw, std::size_t at, std::string& out) const;
  std::size_t decode_code_point(std::string_view raw, std::size_t at, std::string& out) const;

  std::string_view path_, text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

/// The number that a token of number() stands for: decimal, "0x1F", "017". Nothing when it has a fraction or
/// an exponent, or is more than 64 bits have.
std::optional<std::uint64_t> prototext_integer(std::string_view token);

}  // namespace lamina
