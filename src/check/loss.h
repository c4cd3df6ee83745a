#pragma once
/// How much of its digits a graph loses.
#include <vector>

#include "check/interval.h"

namespace lamina::checking {

/// The worst share of a tensor's largest element that roundings take away, before anything rounds to levels:
/// where a graph adds large numbers and takes them away again, that is much. Listens to propagate().
class Loss {
 public:
  explicit Loss(const Graph& graph) : graph_(graph), behind_(graph.value_slots(), false) {}
  PropagateOptions::Observe observer() {
    return [this](ValueId v, Interval& x) { see(v, x); };
  }
  double worst() const { return worst_; }

 private:
  void see(ValueId v, const Interval& x);

  const Graph& graph_;
  std::vector<bool> behind_;  // quantisers, by value
  double worst_ = 0;
};

}  // namespace lamina::checking
