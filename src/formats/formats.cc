#include "formats/formats.h"

#include "base/error.h"
#include "base/mapped_file.h"

namespace lamina {
namespace {

/// XML: the first character after a byte order mark and white space is '<'. A protobuf message cannot start
/// with it where it counts: 0x3c would be field 7 as a group, which ONNX does not have.
bool looks_like_xml(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '<';
}

}  // namespace

Loaded read_file(const std::string& path) {
  bool xml = false;
  {
    const auto file = MappedFile::open(path);
    if (file->size() == 0) fail(ErrorCode::bad_file, "{}: is empty, wanted a model", path);
    xml = looks_like_xml(file->text());
  }
  return xml ? read_ir(path) : read_onnx(path);
}

Graph read_model(const std::string& path) { return read_file(path).graph; }

}  // namespace lamina
