#pragma once
/// How far correct arithmetic may be off: tensors with a radius, led through a graph.
#include <cfloat>
#include <functional>
#include <vector>

#include "graph/graph.h"

namespace lamina::checking {

/// Where the magnitudes of an f32 sum's terms add up to more, the order of the terms, or a transform of them
/// as Winograd's, decides whether it passes f32's range on the way.
inline constexpr double kLargestSum = FLT_MAX / 1024;

/// A tensor and how far correct results may be off, element by element; without `radius` it is exact.
struct Interval {
  Tensor middle;
  std::vector<double> radius;
};

struct PropagateOptions {
  using Observe = std::function<void(ValueId, Interval&)>;
  /// Called for each value that a node makes, and may set it.
  Observe observe = {};
  /// True if a rule computed a FakeQuantize's output range. Its ends have been rounded then, and each level
  /// is off by up to 2^-20 of the larger one.
  std::function<bool(const Tensor& low, const Tensor& high)> reckoned = {};
};

/// Turns every node that stands for several (epilogues, ops/decompose.h) into these.
void decompose_all(Graph& graph);

/// Results of a graph that decompose_all() has seen, from inputs in the order of its inputs. f32 sums in
/// another order, or with weights that were rounded once more, differ by up to 2^-20 of the sum of their
/// terms' magnitudes, functions by 2^-20 of what they give; the rest follows from what the operators do with
/// that.
std::vector<Interval> propagate(const Graph& graph, const std::vector<Interval>& in,
                                const PropagateOptions& options = {});

}  // namespace lamina::checking
