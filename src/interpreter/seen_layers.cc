#include "interpreter/seen_layers.h"

namespace lamina {
namespace {
thread_local LayerMarks* seen = nullptr;
}

SeenLayers::SeenLayers(LayerMarks& marks) noexcept : before_(seen) { seen = &marks; }
SeenLayers::~SeenLayers() { seen = before_; }

void SeenLayers::note(const Node& node) {
  if (seen == nullptr) return;
  for (const auto s : node.sources) {
    if (s.index >= seen->size()) seen->resize(s.index + 1);
    (*seen)[s.index] = 1;
  }
}

}  // namespace lamina
