/// The entry of the ONNX reader.
#include "base/error.h"
#include "formats/loaded.h"
#include "formats/onnx/importer.h"

namespace lamina {

Loaded read_onnx(const ModelSource& source, const ReadSettings& settings) {
  const auto& file = *source.model();
  if (file.size() == 0) fail(ErrorCode::bad_file, "{}: is empty, wanted an ONNX model", file.path());
  try {
    const auto model = onnx::parse_model(file.text());
    return onnx::Importer(model, source, settings).run();
  } catch (const Error& e) {
    const auto code = e.code() == ErrorCode::bad_input ? ErrorCode::bad_file : e.code();
    fail(code, "{}: {}", file.path(), e.what());
  }
}

}  // namespace lamina
