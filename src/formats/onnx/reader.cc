/// The entry of the ONNX reader.
#include "base/error.h"
#include "formats/loaded.h"
#include "formats/onnx/importer.h"

namespace lamina {

Loaded read_onnx(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (file->size() == 0) fail(ErrorCode::bad_file, "{}: is empty, wanted an ONNX model", path);
  try {
    const auto model = onnx::parse_model(file->text());
    return onnx::Importer(model, file).run();
  } catch (const Error& e) {
    throw Error(e.code() == ErrorCode::bad_input ? ErrorCode::bad_file : e.code(), path + ": " + e.what());
  }
}

}  // namespace lamina
