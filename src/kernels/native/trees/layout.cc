/// From trees as a graph has them to records.
#include <cmath>
#include <limits>

#include "kernels/native/trees/walk.h"

namespace lamina {
namespace {

constexpr std::int32_t kNanPasses = INT32_MIN;

/// The next number below: x < t is x <= below(t), and never true where that is NaN.
template <class T>
T below(T t) {
  constexpr auto kInfinity = std::numeric_limits<T>::infinity();
  return t == -kInfinity ? std::numeric_limits<T>::quiet_NaN() : std::nextafter(t, -kInfinity);
}

/// A test as bounds, and whether the children change places for it.
template <class T>
struct Bounds {
  T high, low = -std::numeric_limits<T>::infinity();
  bool swapped = false;
};

template <class T>
Bounds<T> bounds_of(TreeTest test, T t) {
  switch (test) {
    case TreeTest::less_equal:
      return {t};
    case TreeTest::less:
      return {below(t)};
    case TreeTest::greater_equal:
      return {below(t), -std::numeric_limits<T>::infinity(), true};
    case TreeTest::greater:
      return {t, -std::numeric_limits<T>::infinity(), true};
    case TreeTest::equal:
      return {t, t};
    case TreeTest::not_equal:
      return {t, t, true};
  }
  return {t};
}

template <class T>
class Layout {
 public:
  Layout(const TreeTables& tables, std::span<const T> thresholds, WalkedTrees<T>& out)
      : tables_(tables), thresholds_(thresholds), out_(out), pair_of_(thresholds.size(), -1) {}

  void run() {
    out_.records.resize(tables_.roots.size());
    out_.leaf_of.resize(tables_.roots.size());
    double steps = 0, leaves = 0;
    std::vector<std::pair<std::int32_t, int>> pending;  // nodes whose pair is to be filled, and their depth
    for (std::size_t i = 0; i < tables_.roots.size(); ++i) {
      place(static_cast<std::int32_t>(i), tables_.roots[i], 0, pending);
      while (!pending.empty()) {
        const auto [node, depth] = pending.back();
        pending.pop_back();
        const auto* n = tables_.nodes.data() + static_cast<std::size_t>(node) * kTreeColumns;
        const bool swapped =
            bounds_of(static_cast<TreeTest>(n[kTest]), thresholds_[static_cast<std::size_t>(node)]).swapped;
        const auto pair = pair_of_[static_cast<std::size_t>(node)];
        for (const int second : {1, 0}) {
          const auto child = n[(second == 1) != swapped ? kIfFalse : kIfTrue];
          place(pair + second, child, depth + 1, pending);
          if (child < 0) steps += depth + 2, leaves += 1;
        }
      }
    }
    out_.depth = leaves > 0 ? steps / leaves : 1;
  }

 private:
  /// Writes a node or leaf into a record. A node that is met first gets a pair for its children.
  void place(std::int32_t at, std::int32_t child, int depth,
             std::vector<std::pair<std::int32_t, int>>& pending) {
    TreeRecord<T> r;
    if (child < 0) {
      r.high = std::numeric_limits<T>::quiet_NaN();
      r.child = at - 1;
      out_.leaf_of[static_cast<std::size_t>(at)] = ~child;
      if (out_.is_single)
        r.low = out_.weights[static_cast<std::size_t>(tables_.leaves[static_cast<std::size_t>(~child)])];
      out_.records[static_cast<std::size_t>(at)] = r;
      return;
    }
    const auto* n = tables_.nodes.data() + static_cast<std::size_t>(child) * kTreeColumns;
    const auto test = static_cast<TreeTest>(n[kTest]);
    const auto b = bounds_of(test, thresholds_[static_cast<std::size_t>(child)]);
    // NaN is not equal to anything, which makes that test true.
    const bool nan_is_true = n[kNanIsTrue] != 0 || test == TreeTest::not_equal;
    const bool nan_passes = nan_is_true != b.swapped;
    r.high = b.high;
    r.low = b.low;
    r.feature = n[kFeature] | (nan_passes ? kNanPasses : 0);
    if (test == TreeTest::equal || test == TreeTest::not_equal)
      out_.steps = TreeSteps::all;
    else if (nan_passes && out_.steps == TreeSteps::high_only)
      out_.steps = TreeSteps::nan_too;
    auto& pair = pair_of_[static_cast<std::size_t>(child)];
    if (pair < 0) {
      pair = static_cast<std::int32_t>(out_.records.size());
      out_.records.resize(out_.records.size() + 2);
      out_.leaf_of.resize(out_.records.size());
      pending.emplace_back(child, depth);
    }
    r.child = pair;
    out_.records[static_cast<std::size_t>(at)] = r;
  }

  const TreeTables& tables_;
  std::span<const T> thresholds_;
  WalkedTrees<T>& out_;
  std::vector<std::int32_t> pair_of_;
};

/// Each leaf has one vote, for the only target.
bool has_single_votes(const TreeEnsemble& op, const TreeTables& t) {
  if (op.targets != 1) return false;
  for (std::size_t i = 0; i + 1 < t.leaves.size(); ++i)
    if (t.leaves[i + 1] != t.leaves[i] + 1) return false;
  return true;
}

}  // namespace

template <class T>
WalkedTrees<T> walked_trees(const TreeEnsemble& op, const TreeTables& tables, std::span<const T> thresholds,
                            std::span<const T> weights, std::span<const T> base) {
  WalkedTrees<T> out;
  out.trees = static_cast<std::int64_t>(tables.roots.size());
  out.aggregate = op.aggregate;
  out.target_count = op.targets;
  out.unvoted = op.unvoted;
  const bool adds = op.aggregate == TreeAggregate::sum || op.aggregate == TreeAggregate::average;
  out.counts_votes = !adds || op.unvoted != 0;
  out.is_single = has_single_votes(op, tables) && !out.counts_votes && out.trees > 0;
  out.first.assign(tables.leaves.begin(), tables.leaves.end());
  out.targets.assign(tables.targets.begin(), tables.targets.end());
  out.weights.assign(weights.begin(), weights.end());
  out.base.assign(base.begin(), base.end());
  Layout<T>(tables, thresholds, out).run();
  if (out.is_single) out.leaf_of.clear(), out.first.clear(), out.targets.clear(), out.weights.clear();
  return out;
}

template WalkedTrees<float> walked_trees(const TreeEnsemble&, const TreeTables&, std::span<const float>,
                                         std::span<const float>, std::span<const float>);
template WalkedTrees<double> walked_trees(const TreeEnsemble&, const TreeTables&, std::span<const double>,
                                          std::span<const double>, std::span<const double>);

}  // namespace lamina
