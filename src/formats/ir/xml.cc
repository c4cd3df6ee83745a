#include "formats/ir/xml.h"

#include <algorithm>

#include "base/work_bounds.h"
#include "formats/ir/text.h"
#include "formats/reading_points.h"

namespace lamina::ir {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr int kMaxDepth = 256;

}  // namespace

XmlFile::XmlFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  if (file_->size() == 0)
    lamina::fail(ErrorCode::bad_file, "{}: the file is empty, wanted OpenVINO IR", path());
  if (file_->size() > kMaxBytes)
    lamina::fail(ErrorCode::bad_file, "{}: {} bytes of XML, wanted at most {}", path(), file_->size(),
                 kMaxBytes);
  parse();
  check_depth();
}

namespace {

const char* words_of(pugi::xml_parse_status status) {
  switch (status) {
    case pugi::status_no_document_element:
      return "it has no element";
    case pugi::status_end_element_mismatch:
      return "an element is closed by another name than it was opened by";
    case pugi::status_bad_end_element:
      return "the end of an element is not complete";
    case pugi::status_bad_start_element:
    case pugi::status_unrecognized_tag:
      return "the beginning of an element is not complete or has no name";
    case pugi::status_bad_attribute:
      return "an attribute is not of the form name=\"value\"";
    case pugi::status_bad_comment:
      return "a comment has no end";
    case pugi::status_bad_cdata:
      return "a CDATA section has no end";
    case pugi::status_bad_pi:
      return "a processing instruction has no end";
    case pugi::status_bad_doctype:
      return "a DOCTYPE has no end";
    default:
      return "text stands where an element was expected";
  }
}

}  // namespace

void XmlFile::parse() {
  note_parsed(8 * file_->size());  // about what a document takes
  const unsigned flags = pugi::parse_default | pugi::parse_doctype;
  const auto result = document_.load_buffer(file_->data(), file_->size(), flags, pugi::encoding_utf8);
  if (result.status == pugi::status_out_of_memory)
    lamina::fail(ErrorCode::out_of_memory, "{}: no memory for {} bytes of XML", path(), file_->size());
  if (!result) {
    lamina::fail(ErrorCode::bad_file, "{}:{}: bad XML: {}", path(), line(result.offset),
                 words_of(result.status));
  }
  for (const pugi::xml_node node : document_)
    if (node.type() == pugi::node_doctype) fail(node, "the file has a DOCTYPE, which is refused");
}

// Deep nesting would make whoever recurses overflow the stack later.
void XmlFile::check_depth() const {
  int depth = 0;
  pugi::xml_node node = document_.first_child();
  while (node) {
    note_read(16);
    if (depth > kMaxDepth) fail(node, "elements are nested more than {} deep", kMaxDepth);
    if (node.first_child()) {
      node = node.first_child();
      ++depth;
      continue;
    }
    while (node && !node.next_sibling()) {
      node = node.parent();
      --depth;
    }
    if (node) node = node.next_sibling();
  }
}

std::size_t XmlFile::line(std::ptrdiff_t offset) const {
  const auto text = file_->text();
  const auto end = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text.size());
  return 1 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

std::string XmlFile::at(pugi::xml_node node, const std::string& text) const {
  while (node && node.offset_debug() < 0) node = node.parent();
  if (!node) return fmt::format("{}: {}", path(), text);
  return fmt::format("{}:{}: {}", path(), line(node.offset_debug()), text);
}

std::string_view XmlFile::attribute(pugi::xml_node node, const char* name) const {
  const auto attribute = node.attribute(name);
  if (!attribute) fail(node, "<{}> has no attribute '{}'", node.name(), name);
  return attribute.value();
}

std::int64_t XmlFile::integer(pugi::xml_node node, const char* name) const {
  const auto text = attribute(node, name);
  const auto value = parse_integer(text);
  if (!value) fail(node, "<{}> has {}=\"{}\", wanted an integer", node.name(), name, text.substr(0, 80));
  return *value;
}

std::int64_t XmlFile::integer(pugi::xml_node node, const char* name, std::int64_t fallback) const {
  return node.attribute(name) ? integer(node, name) : fallback;
}

}  // namespace lamina::ir
