#pragma once
/// Ensembles of decision trees: random forests, gradient boosting.
#include <span>

#include "ops/eval.h"

namespace lamina {

enum class TreeAggregate : std::uint8_t { sum, average, min, max };
template <>
inline constexpr std::array enum_names<TreeAggregate> = {std::string_view("sum"), std::string_view("average"),
                                                         std::string_view("min"), std::string_view("max")};

/// How a node compares a feature with its threshold.
enum class TreeTest : std::uint8_t { less_equal, less, greater_equal, greater, equal, not_equal };
constexpr int kTreeTests = 6;

/// A row of features goes down each tree to a leaf, whose votes (a target and a weight each) are aggregated
/// over the trees. Inputs, T is f32 or f64:
///   0  x          T [N, features]
///   1  nodes      i32 [nodes, 5]: feature, test (a TreeTest), the child where the test is true, the child
///                 where it is not, 1 where NaN counts as true. A child is a node with a higher number, or
///                 ~leaf (below 0).
///   2  thresholds T [nodes]
///   3  roots      i32 [trees], each as a child
///   4  leaves     i32 [leaves + 1]: leaf i has the votes leaves[i] to leaves[i + 1] - 1
///   5  targets    i32 [votes]
///   6  weights    T [votes]
///   7  base       T [targets] (optional): added to what is aggregated
/// Output: T [N, targets].
struct TreeEnsemble {
  static constexpr OpInfo info{
      "TreeEnsemble", 7, 8, 1, Trait::none, "Decision trees, whose leaves vote for targets", 0,
      OpFamily::other};
  std::int64_t targets = 1;
  TreeAggregate aggregate = TreeAggregate::sum;
  double unvoted = 0;  ///< what a target has that no leaf votes for, before `base`
  template <class V>
  void visit(V& v) {
    v("targets", targets);
    v("aggregate", aggregate);
    v("unvoted", unvoted);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const;
};

/// Columns of a row of `nodes`.
enum TreeColumn : std::uint8_t { kFeature, kTest, kIfTrue, kIfFalse, kNanIsTrue, kTreeColumns };

/// The integers of an ensemble, all of which are in range: walks end.
struct TreeTables {
  std::span<const std::int32_t> nodes, roots, leaves, targets;
  std::int32_t features = 0;  ///< how many are asked for: the highest number and one
};
/// Throws Error(bad_input) that says what is out of range. The tensors must live longer.
TreeTables checked_trees(const TreeEnsemble& op, const Tensor& nodes, const Tensor& roots,
                         const Tensor& leaves, const Tensor& targets);

/// Whether a test is true; NaN is not equal to anything.
template <class T>
bool passes(TreeTest test, T x, T threshold) {
  switch (test) {
    case TreeTest::less_equal:
      return x <= threshold;
    case TreeTest::less:
      return x < threshold;
    case TreeTest::greater_equal:
      return x >= threshold;
    case TreeTest::greater:
      return x > threshold;
    case TreeTest::equal:
      return x == threshold;
    case TreeTest::not_equal:
      return x != threshold;
  }
  return false;
}

}  // namespace lamina
