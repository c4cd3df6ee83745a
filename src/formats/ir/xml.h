#pragma once
/// The XML file: read with limits, errors with path and line.
#include <memory>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "formats/read_error.h"

namespace lamina::ir {

/// An error that already says where in the file it is.
struct LocatedError : ReadError {
  using ReadError::ReadError;
};

class XmlFile {
 public:
  /// Parses; refuses DOCTYPE, nesting beyond 256 elements, and files that are no XML.
  explicit XmlFile(std::shared_ptr<const MappedFile> file);

  const std::string& path() const { return file_->path(); }
  pugi::xml_node root() const { return document_.document_element(); }

  /// "path:line: text"
  std::string at(pugi::xml_node node, const std::string& text) const;
  template <class... A>
  [[noreturn]] void fail(pugi::xml_node node, fmt::format_string<A...> text, A&&... args) const {
    throw LocatedError(ErrorCode::bad_file, at(node, fmt::format(text, std::forward<A>(args)...)));
  }

  /// The attribute's text, or an error.
  std::string_view attribute(pugi::xml_node node, const char* name) const;
  std::int64_t integer(pugi::xml_node node, const char* name) const;
  std::int64_t integer(pugi::xml_node node, const char* name, std::int64_t fallback) const;

 private:
  void parse();
  void check_depth() const;
  std::size_t line(std::ptrdiff_t offset) const;

  std::shared_ptr<const MappedFile> file_;
  pugi::xml_document document_;
};

}  // namespace lamina::ir
