#pragma once
/// Trees laid out for walking down many of them at once.
///
/// A record is a node in place of a parent's pointer to it: the two children of a node lie side by side, the
/// one for "inside the bounds" first, so that a step is a comparison and an addition, without a branch to
/// guess. A leaf steps onto itself: lanes that have arrived wait for the others.
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ops/trees.h"

namespace lamina {

template <class T>
struct TreeRecord {
  T high = 0;  ///< the test is true up to here; NaN: never
  T low = 0;   ///< and from here on, where the trees need it; of a leaf: its weight, or its number as bits
  std::int32_t feature = 0;  ///< its highest bit: NaN passes the test, too
  std::int32_t child = 0;    ///< record of the first child; of a leaf: the one before itself
};

/// What a step must look at: the more, the slower.
enum class TreeSteps : std::uint8_t { high_only, nan_too, all };

/// What runs: records, and the graph's constants. The tensors must live as long.
template <class T>
struct WalkedTrees {
  std::span<const TreeRecord<T>> records;  ///< the roots first, then pairs
  std::int64_t trees = 0;
  TreeSteps steps = TreeSteps::high_only;
  /// Each leaf has one vote, for target 0: the weights are in the leaves. Else a leaf's votes are those from
  /// first[leaf] to first[leaf + 1].
  bool is_single = false;
  std::span<const std::int32_t> first, targets;
  std::span<const T> weights, base;
  TreeAggregate aggregate = TreeAggregate::sum;
  std::int64_t target_count = 1;
  double unvoted = 0;
  bool counts_votes = false;  ///< whether a target got a vote must be known
};

/// All but the records, of constants in the form of ops/trees.h, which must be valid (checked_trees).
template <class T>
WalkedTrees<T> walked_trees(const TreeEnsemble& op, const TreeTables& tables, std::span<const T> weights,
                            std::span<const T> base);
/// The records of `trees`.
template <class T>
std::vector<TreeRecord<T>> tree_records(const WalkedTrees<T>& trees, const TreeTables& tables,
                                        std::span<const T> thresholds);
/// Whether all that walks over these records read is there: features below `features`, leaves below `leaves`
/// (0: weights are in the leaves).
template <class T>
bool are_sound(std::span<const TreeRecord<T>> records, std::int64_t trees, std::int64_t features,
               std::int64_t leaves);

/// The number of a leaf where weights are not in the leaves.
template <class T>
std::int32_t leaf_number(const TreeRecord<T>& r) {
  std::int32_t number = 0;
  std::memcpy(&number, &r.low, sizeof number);
  return number;
}

/// Rows that are taken together: a tree's records stay in the cache for all of them.
std::int64_t rows_of_block(std::int64_t targets);
/// Bytes of scratch memory that a block needs.
std::size_t block_bytes(std::int64_t targets, bool counts_votes);

/// y = trees(x) for up to rows_of_block() rows. Has stop points.
template <class T>
void walk_block(const WalkedTrees<T>& trees, const T* x, std::int64_t features, std::int64_t rows, T* y,
                void* scratch);

}  // namespace lamina
