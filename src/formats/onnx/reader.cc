/// The entry of the ONNX reader.
#include "base/error.h"
#include "formats/loaded.h"
#include "formats/onnx/importer.h"
#include "formats/read_error.h"

namespace lamina {

Loaded read_onnx(const ModelSource& source, const ReadSettings& settings) {
  const auto& file = *source.model();
  if (file.size() == 0) fail(ErrorCode::bad_file, "{}: is empty, wanted an ONNX model", file.path());
  try {
    const auto model = onnx::parse_model(file.text());
    return onnx::Importer(model, source, settings).run();
  } catch (const Error& e) {
    throw ReadError(e, fmt::format("{}: {}", file.path(), e.what()));
  }
}

}  // namespace lamina
