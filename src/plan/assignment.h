#pragma once
/// One offer for each node, and the layouts in which the values between them exist, so that the sum of all
/// costs is least.
#include <map>

#include "plan/plan.h"

namespace lamina {

class Assignment {
 public:
  /// All arguments must outlive the assignment. `answers` of each node have an offer.
  Assignment(const Graph& graph, const std::vector<NodeId>& nodes, const std::map<NodeId, Answers>& answers,
             const Machine& machine);

  /// Index of the node's chosen offer.
  std::size_t chosen(NodeId node) const { return chosen_.at(node); }
  /// The cost of the offer beside the other choices, including reorders that only it would need.
  Cost cost(NodeId node, const Offer& offer) const;

 private:
  class Problem;
  const Graph& graph_;
  const std::map<NodeId, Answers>& answers_;
  const Machine& machine_;
  std::map<NodeId, std::size_t> chosen_;     // index of the offer
  std::map<ValueId, std::uint64_t> states_;  // in which layouts a value exists, where that matters
};

}  // namespace lamina
