/// The entry of the reader of oneDNN Graph's JSON.
#include "formats/loaded.h"
#include "formats/onednn_graph/importer.h"
#include "formats/read_error.h"

namespace lamina {

Loaded read_onednn_graph(const ModelSource& source, const ReadSettings& settings) {
  const auto& file = *source.model();
  try {
    const auto graph = onednn_graph::parse_graph(file.text());
    return onednn_graph::Importer(graph, settings).run();
  } catch (const Error& e) {
    throw ReadError(e, fmt::format("{}: {}", file.path(), e.what()));
  }
}

}  // namespace lamina
