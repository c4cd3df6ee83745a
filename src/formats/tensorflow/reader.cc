/// The entry of the TensorFlow reader.
#include "formats/loaded.h"
#include "formats/read_error.h"
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
    fail_reading(FileProblem::tensorflow,
                 "{}: is a SavedModel, wanted a frozen graph (TensorFlow's "
                 "convert_variables_to_constants makes one)",
                 file->path());
  if (tensorflow::looks_like_text_graph(file->text()))
    file = blaming(FileProblem::tensorflow, [&] { return tensorflow::text_as_wire(file); });
  try {
    auto graph = tensorflow::parse_graph(file->text());
    tensorflow::inline_functions(graph);
    return tensorflow::Importer(graph, file, settings).run();
  } catch (const Error& e) {
    throw ReadError(e, fmt::format("{}: {}", file->path(), e.what()), FileProblem::tensorflow);
  }
}

}  // namespace lamina
