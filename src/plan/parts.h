#pragma once
/// Tensors that lie inside others: parts of a Concat that are written in their place, parts of a Split that
/// are read where they are.
#include <map>

#include "plan/choose.h"

namespace lamina {

struct Part {
  ValueId whole;           ///< the tensor that holds it
  std::int64_t first = 0;  ///< element of the whole's memory where it begins
  std::int64_t row = 0;    ///< elements from one pixel to the next, as in MakeContext; 0: dense
};

struct Parts {
  std::map<ValueId, Part> of;
  /// In which order wholes must be placed before their parts.
  std::vector<ValueId> order;
  /// For each node whose inputs lie in place already: which of them.
  std::map<NodeId, std::vector<bool>> in_place;
  /// Splits of which nothing is left to run.
  std::vector<NodeId> free;
};

/// Finds what can be done without changing a choice: every kernel that writes or reads a part must take
/// tensors as wide as needed.
Parts find_parts(const Graph& graph, const std::vector<Picked>& picked);

}  // namespace lamina
