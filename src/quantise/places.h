#pragma once
/// Where a graph is quantised: which inputs of which nodes, and which values share a scale.
#include <map>
#include <set>

#include "quantise/layers.h"

namespace lamina {

/// Input `input` of the node reads a quantised value.
struct QuantisedUse {
  NodeId node;
  std::size_t input = 0;
  auto operator<=>(const QuantisedUse&) const = default;
};

struct QuantisedPlaces {
  std::set<QuantisedUse> uses;
  /// Values that are quantised, with the group of those that share one scale.
  std::map<ValueId, std::size_t> groups;
  std::size_t group_count = 0;
  /// Values that are levels already, because what they are made of is: Concat, pooling and the like keep
  /// levels.
  std::set<ValueId> carried;
  /// Values whose numbers decide the range of their group.
  std::set<ValueId> deciding;
};

/// Quantises what the layers read (those without a reason for f32), what is added to their results, and
/// poolings of them. Values keep 8 bits through operators that only choose, move or join elements: what these
/// read is quantised in place of what they give, unless somebody reads that in f32. `apart`: nodes that
/// stay f32 and are not gone through. `exclude_types`: operators that stay f32.
QuantisedPlaces place(const Graph& graph, const std::vector<Layer>& layers, const std::set<NodeId>& apart,
                      const std::vector<std::string>& exclude_types);

}  // namespace lamina
