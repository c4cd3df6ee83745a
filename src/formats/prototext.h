#pragma once
/// protobuf's text format, without a schema: a tree of fields in the order of the file.
///
/// Comments, strings with escapes that follow each other, `{}` and `<>`, lists, extensions and Any in
/// brackets,
/// `,` or `;` behind fields, hexadecimal and octal numbers, `1.`, `2e-2f`, inf and nan. Of a list each
/// element becomes a field of its name. Errors are Error(bad_file) "path:line: ...".
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/reading_points.h"

namespace lamina {

class ProtoText {
 public:
  enum class Kind : std::uint8_t { message, identifier, number, string };
  class Field;
  class Message;

  static constexpr std::size_t kDeepest = 100;  ///< messages in messages
  static constexpr std::size_t kMostFields = std::size_t{1} << 25;

  /// Fields are views into the file and into this, which is neither copied nor moved.
  explicit ProtoText(std::shared_ptr<const MappedFile> file);
  ~ProtoText();
  ProtoText(const ProtoText&) = delete;
  ProtoText& operator=(const ProtoText&) = delete;

  Message root() const;
  const std::string& path() const { return file_->path(); }
  std::size_t fields() const { return nodes_.size(); }

 private:
  friend class ProtoTextParser;
  /// A field; those of a message lie behind it, up to `next`.
  struct Node {
    std::string_view name, text;
    std::uint32_t next = 0, line = 0;
    Kind kind = Kind::message;
    bool negative = false;
  };
  struct Decoded;  // strings that are not in the file as they are

  std::shared_ptr<const MappedFile> file_;
  std::vector<Node> nodes_;
  std::unique_ptr<Decoded> decoded_;
};

/// The fields of a message, in order.
class ProtoText::Message {
 public:
  class Iterator {
   public:
    using value_type = Field;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const ProtoText* tree, std::uint32_t index) : tree_(tree), index_(index) {}
    Field operator*() const;
    Iterator& operator++() {
      note_read(8);
      index_ = tree_->nodes_[index_].next;
      return *this;
    }
    Iterator operator++(int) {
      auto was = *this;
      ++*this;
      return was;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const ProtoText* tree_ = nullptr;
    std::uint32_t index_ = 0;
  };

  Message() = default;  ///< an empty one
  Iterator begin() const { return {tree_, begin_}; }
  Iterator end() const { return {tree_, end_}; }
  bool empty() const { return begin_ == end_; }

  /// The last field of that name, as protobuf has it for what is not repeated. Looks at all fields.
  std::optional<Field> find(std::string_view name) const;
  /// All of that name, in order.
  std::vector<Field> all(std::string_view name) const;

 private:
  friend class ProtoText;
  Message(const ProtoText* tree, std::uint32_t begin, std::uint32_t end)
      : tree_(tree), begin_(begin), end_(end) {}
  const ProtoText* tree_ = nullptr;
  std::uint32_t begin_ = 0, end_ = 0;
};

/// A field and its value. The functions that give one throw when it is none of that kind.
class ProtoText::Field {
 public:
  /// "name"; "[package.extension]" and "[type.googleapis.com/package.Type]" with their brackets.
  std::string_view name() const { return node().name; }
  Kind kind() const { return node().kind; }
  bool is_message() const { return kind() == Kind::message; }
  int line() const { return static_cast<int>(node().line); }
  /// An identifier or a number as it is written, without its sign; the bytes of a string.
  std::string_view text() const { return node().text; }
  bool is_negative() const { return node().negative; }  ///< has a sign

  Message message() const;
  std::string_view string() const;  ///< bytes, escapes decoded
  std::string_view word() const;    ///< an identifier: the name of an enumeration's value
  std::int64_t integer() const;
  std::uint64_t natural() const;
  double number() const;
  float single() const;  ///< rounded once
  bool boolean() const;

  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) const {
    lamina::fail(ErrorCode::bad_file, "{}:{}: {}", tree_->path(), line(),
                 fmt::format(text, std::forward<A>(args)...));
  }
  /// "name: found, wanted what".
  [[noreturn]] void refuse(std::string_view wanted) const;

 private:
  friend class ProtoText::Message::Iterator;
  Field(const ProtoText* tree, std::uint32_t index) : tree_(tree), index_(index) {}
  const Node& node() const { return tree_->nodes_[index_]; }
  std::optional<std::uint64_t> magnitude() const;
  template <class T>
  T real() const;

  const ProtoText* tree_;
  std::uint32_t index_;
};

inline ProtoText::Field ProtoText::Message::Iterator::operator*() const { return {tree_, index_}; }

/// Whether a text begins like a text-format message: a name, then `:`, `{`, `<` or `[`.
bool looks_like_prototext(std::string_view text);

}  // namespace lamina
