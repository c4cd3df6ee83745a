#pragma once
/// Tensors that are views into others: what a Concat joins is written in its place, what a Split cuts is read
/// where it lies.
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
  /// For each node whose inputs lie in place already: which of them.
  std::map<NodeId, std::vector<bool>> in_place;
  /// Splits of which nothing is left to run.
  std::set<NodeId> free;
};

/// Finds what can be done without changing a choice: every kernel that writes or reads a subview must take
/// tensors as wide as needed.
Subviews find_subviews(const Graph& graph, const std::vector<Picked>& picked);

}  // namespace lamina
