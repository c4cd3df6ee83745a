/// The entry of the ONNX reader.
#include <algorithm>

#include "base/error.h"
#include "formats/loaded.h"
#include "formats/onnx/importer.h"

namespace lamina {
namespace {

constexpr std::size_t kLongest = 600;  // names of hostile files have any length

/// Bytes of the UTF-8 character at the front of a text, 0 when it is none that can be printed.
std::size_t character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return length;
}

/// Names come from the file: they must not break the line or the terminal.
std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty() && out.size() < kLongest) {
    const auto length = character(text);
    if (length == 0) out += '?';
    out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text.empty() ? out : out + "...";
}

}  // namespace

Loaded read_onnx(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (file->size() == 0) fail(ErrorCode::bad_file, "{}: is empty, wanted an ONNX model", path);
  try {
    const auto model = onnx::parse_model(file->text());
    return onnx::Importer(model, file).run();
  } catch (const Error& e) {
    const auto code = e.code() == ErrorCode::bad_input ? ErrorCode::bad_file : e.code();
    throw Error(code, path + ": " + printable(e.what()));
  }
}

}  // namespace lamina
