/// From trees as a graph has them to records.
#include <cmath>
#include <cstring>
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

/// NaN is not equal to anything, which makes that test true.
bool nan_passes(const std::int32_t* n, bool swapped) {
  const bool is_true = n[kNanIsTrue] != 0 || static_cast<TreeTest>(n[kTest]) == TreeTest::not_equal;
  return is_true != swapped;
}

TreeSteps steps_of(const TreeTables& t) {
  auto steps = TreeSteps::high_only;
  for (std::size_t i = 0; i < t.nodes.size(); i += kTreeColumns) {
    const auto test = static_cast<TreeTest>(t.nodes[i + kTest]);
    if (test == TreeTest::equal || test == TreeTest::not_equal) return TreeSteps::all;
    const bool swapped = test == TreeTest::greater || test == TreeTest::greater_equal;
    if (nan_passes(t.nodes.data() + i, swapped)) steps = TreeSteps::nan_too;
  }
  return steps;
}

template <class T>
class TreeLayout {
 public:
  TreeLayout(const WalkedTrees<T>& trees, const TreeTables& tables, std::span<const T> thresholds)
      : trees_(trees), tables_(tables), thresholds_(thresholds), pair_of_(thresholds.size(), -1) {}

  std::vector<TreeRecord<T>> run() {
    records_.resize(tables_.roots.size());
    std::vector<std::int32_t> pending;  // nodes whose pair is to be filled
    for (std::size_t i = 0; i < tables_.roots.size(); ++i) {
      place(static_cast<std::int32_t>(i), tables_.roots[i], pending);
      while (!pending.empty()) {
        const auto node = static_cast<std::size_t>(pending.back());
        pending.pop_back();
        const auto* n = tables_.nodes.data() + node * kTreeColumns;
        const bool swapped = bounds_of(static_cast<TreeTest>(n[kTest]), thresholds_[node]).swapped;
        for (const int second : {1, 0})
          place(pair_of_[node] + second, n[(second == 1) != swapped ? kIfFalse : kIfTrue], pending);
      }
    }
    return std::move(records_);
  }

 private:
  /// Writes a node or leaf into a record. A node that is met first gets a pair for its children, which later
  /// records of the same node lead to as well.
  void place(std::int32_t at, std::int32_t child, std::vector<std::int32_t>& pending) {
    TreeRecord<T> r;
    if (child < 0) {
      const std::int32_t leaf = ~child;
      r.high = std::numeric_limits<T>::quiet_NaN();
      r.child = at - 1;
      if (trees_.is_single)
        r.low = trees_.weights[static_cast<std::size_t>(tables_.leaves[static_cast<std::size_t>(leaf)])];
      else
        std::memcpy(&r.low, &leaf, sizeof leaf);
      records_[static_cast<std::size_t>(at)] = r;
      return;
    }
    const auto node = static_cast<std::size_t>(child);
    const auto* n = tables_.nodes.data() + node * kTreeColumns;
    const auto test = static_cast<TreeTest>(n[kTest]);
    const auto b = bounds_of(test, thresholds_[node]);
    r.high = b.high;
    r.low = b.low;
    r.feature = n[kFeature] | (nan_passes(n, b.swapped) ? kNanPasses : 0);
    auto& pair = pair_of_[node];
    if (pair < 0) {
      pair = static_cast<std::int32_t>(records_.size());
      records_.resize(records_.size() + 2);
      pending.push_back(child);
    }
    r.child = pair;
    records_[static_cast<std::size_t>(at)] = r;
  }

  const WalkedTrees<T>& trees_;
  const TreeTables& tables_;
  std::span<const T> thresholds_;
  std::vector<std::int32_t> pair_of_;
  std::vector<TreeRecord<T>> records_;
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
WalkedTrees<T> walked_trees(const TreeEnsemble& op, const TreeTables& tables, std::span<const T> weights,
                            std::span<const T> base) {
  WalkedTrees<T> out;
  out.trees = static_cast<std::int64_t>(tables.roots.size());
  out.aggregate = op.aggregate;
  out.target_count = op.targets;
  out.unvoted = op.unvoted;
  const bool adds = op.aggregate == TreeAggregate::sum || op.aggregate == TreeAggregate::average;
  out.counts_votes = !adds || op.unvoted != 0;
  out.is_single = has_single_votes(op, tables) && !out.counts_votes && out.trees > 0;
  out.steps = steps_of(tables);
  out.first = tables.leaves;
  out.targets = tables.targets;
  out.weights = weights;
  out.base = base;
  return out;
}

template <class T>
std::vector<TreeRecord<T>> tree_records(const WalkedTrees<T>& trees, const TreeTables& tables,
                                        std::span<const T> thresholds) {
  return TreeLayout<T>(trees, tables, thresholds).run();
}

template <class T>
bool are_sound(std::span<const TreeRecord<T>> records, std::int64_t trees, std::int64_t features,
               std::int64_t leaves) {
  const auto count = static_cast<std::int64_t>(records.size());
  if (count < trees) return false;
  for (std::int64_t at = 0; at < count; ++at) {
    const auto& r = records[static_cast<std::size_t>(at)];
    if ((r.feature & INT32_MAX) >= features) return false;
    const bool stays = r.child == at - 1 && r.high != r.high && r.feature >= 0;
    if (!stays && (r.child < 0 || r.child + std::int64_t{1} >= count)) return false;
    if (stays && leaves > 0 && (leaf_number(r) < 0 || leaf_number(r) >= leaves)) return false;
  }
  return true;
}

#define LAMINA_TREES(T)                                                                            \
  template WalkedTrees<T> walked_trees(const TreeEnsemble&, const TreeTables&, std::span<const T>, \
                                       std::span<const T>);                                        \
  template std::vector<TreeRecord<T>> tree_records(const WalkedTrees<T>&, const TreeTables&,       \
                                                   std::span<const T>);                            \
  template bool are_sound(std::span<const TreeRecord<T>>, std::int64_t, std::int64_t, std::int64_t);
LAMINA_TREES(float)
LAMINA_TREES(double)
#undef LAMINA_TREES

}  // namespace lamina
