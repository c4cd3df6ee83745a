#pragma once
/// Tensors that are views into others: inputs of a Concat are written directly into its result, and results
/// of a Split are read from its input.
#include <map>
#include <set>

#include "plan/choose.h"

namespace lamina {

struct Subview {
  ValueId whole;           ///< the tensor that holds it
  std::int64_t first = 0;  ///< element of the whole's memory where it begins
  std::int64_t row = 0;    ///< elements from one pixel to the next, as in MakeContext; 0: dense
};

struct Subviews {
  std::map<ValueId, Subview> of;
  /// The order in which whole tensors are placed, each before the tensors inside it.
  std::vector<ValueId> order;
  /// For each Concat with inputs that are written in place: which ones.
  std::map<NodeId, std::vector<bool>> in_place;
  /// Splits all of whose results are views, so that they do not run.
  std::set<NodeId> free;
};

/// Finds what can be done without changing a choice: every kernel that writes or reads a subview must take
/// tensors as wide as needed.
Subviews find_subviews(const Graph& graph, const std::vector<Picked>& picked);

}  // namespace lamina
