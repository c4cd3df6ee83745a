#pragma once
/// Records the layers that the interpreter runs in bodies of control flow.
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// By layer (SourceId): other than 0 when a node that stands for it has run. Those behind its end have not.
using LayerMarks = std::vector<std::uint8_t>;

/// While it lives, nodes of graphs that this thread interprets leave their layers in `marks`.
class SeenLayers {
 public:
  explicit SeenLayers(LayerMarks& marks) noexcept;
  ~SeenLayers();
  SeenLayers(const SeenLayers&) = delete;

  /// Does nothing where nobody looks.
  static void note(const Node& node);

 private:
  LayerMarks* before_;
};

}  // namespace lamina
