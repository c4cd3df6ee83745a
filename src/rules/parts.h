#pragma once
/// Parts of a tensor along one axis, however they are cut: by Split, VariadicSplit, Slice or StridedSlice.
#include "rules/support.h"

namespace lamina {

struct PartOfTensor {
  ValueId whole;
  NodeId cut;  ///< by which node
  std::size_t axis = 0;
  std::int64_t begin = 0, size = 0;
};

/// Nothing where the value is no part, of known size, along one axis.
std::optional<PartOfTensor> part_of_tensor(const Graph& graph, ValueId value);

}  // namespace lamina
