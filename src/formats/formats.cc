#include "formats/formats.h"

#include "base/error.h"

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

Loaded read(const ModelSource& source, const ReadSettings& settings) {
  const auto& settable = settings.settable;
  const auto& file = *source.model();
  if (file.size() == 0) fail(ErrorCode::bad_file, "{}: is empty, wanted a model", file.path());
  if (looks_like_tensorflow(file.text())) return read_tensorflow(source, settings);
  if (!looks_like_xml(file.text())) return read_onnx(source, settings);
  if (!settable.empty())
    fail(ErrorCode::bad_option, "{}: settable \"{}\": an IR has no inputs with values", file.path(),
         settable[0]);
  return read_ir(source, settings);
}

Loaded read_file(const std::string& path) { return read(FileSource(path)); }
Loaded read_onnx(const std::string& path) { return read_onnx(FileSource(path)); }
Loaded read_ir(const std::string& xml_path) { return read_ir(FileSource(xml_path)); }

Graph read_model(const std::string& path) { return read_file(path).graph; }

}  // namespace lamina
