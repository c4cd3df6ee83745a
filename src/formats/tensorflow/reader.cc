/// The entry of the TensorFlow reader.
#include "base/error.h"
#include "formats/loaded.h"
#include "formats/tensorflow/functions.h"
#include "formats/tensorflow/importer.h"
#include "formats/tensorflow/text.h"

namespace lamina {

bool looks_like_tensorflow(std::string_view bytes) {
  return tensorflow::looks_like_graph(bytes) || tensorflow::looks_like_text_graph(bytes) ||
         tensorflow::looks_like_saved_model(bytes);
}

Loaded read_tensorflow(const ModelSource& source, const ReadSettings& settings) {
  auto file = source.model();
  if (tensorflow::looks_like_saved_model(file->text()))
    fail(ErrorCode::bad_file,
         "{}: is a SavedModel, wanted a frozen graph (TensorFlow's "
         "convert_variables_to_constants makes one)",
         file->path());
  if (tensorflow::looks_like_text_graph(file->text())) file = tensorflow::text_as_wire(file);
  try {
    auto graph = tensorflow::parse_graph(file->text());
    tensorflow::inline_functions(graph);
    return tensorflow::Importer(graph, file, settings).run();
  } catch (const Error& e) {
    const auto code = e.code() == ErrorCode::bad_input ? ErrorCode::bad_file : e.code();
    fail(code, "{}: {}", file->path(), e.what());
  }
}

}  // namespace lamina
