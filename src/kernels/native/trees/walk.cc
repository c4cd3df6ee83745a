/// Walks down trees, some at once, so that one's waiting for memory is another's time.
#include "kernels/native/trees/walk.h"

#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "base/work_partition.h"
#include "kernels/native/simd/per_isa.h"

namespace lamina {
namespace {

constexpr int kLanes = 8;
constexpr std::int64_t kMostRows = 128, kMostSums = 1 << 16;

template <TreeSteps kSteps, class T>
inline bool passes_test(const TreeRecord<T>& r, const T* x) {
  if constexpr (kSteps == TreeSteps::high_only) {
    return x[r.feature] <= r.high;
  } else {
    const T value = x[r.feature & INT32_MAX];
    bool in = value <= r.high;
    if constexpr (kSteps == TreeSteps::all) in &= value >= r.low;
    return in | ((value != value) & (r.feature < 0));
  }
}

/// From records `at` to leaves, a row of features for each.
template <TreeSteps kSteps, int kCount, class T>
inline void walk(const TreeRecord<T>* records, const T* const* x, std::int32_t* at) {
  std::int32_t here[kCount];
  LAMINA_UNROLL
  for (int i = 0; i < kCount; ++i) here[i] = at[i];
  for (;;) {
    std::int32_t moved = 0;
    for (int step = 0; step < 2; ++step) {
      LAMINA_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const auto& r = records[here[i]];
        const std::int32_t next = r.child + static_cast<std::int32_t>(!passes_test<kSteps>(r, x[i]));
        moved |= next ^ here[i];
        here[i] = next;
      }
    }
    if (moved == 0) break;
  }
  LAMINA_UNROLL
  for (int i = 0; i < kCount; ++i) at[i] = here[i];
}

/// Sums of a block of rows.
template <class T>
class Sums {
 public:
  Sums(const WalkedTrees<T>& trees, std::int64_t rows, void* scratch)
      : trees_(trees),
        count_(rows * trees.target_count),
        sums_(static_cast<double*>(scratch)),
        voted_(static_cast<bool*>(scratch) + rows_of_block(trees.target_count) * trees.target_count *
                                                 static_cast<std::int64_t>(sizeof(double))) {
    std::fill_n(sums_, count_, 0.0);
    if (trees.counts_votes) std::memset(voted_, 0, static_cast<std::size_t>(count_));
  }

  inline void add(std::int64_t row, std::int32_t record) {
    if (trees_.is_single) {
      sums_[row] += static_cast<double>(trees_.records[static_cast<std::size_t>(record)].low);
      return;
    }
    const auto leaf = leaf_number(trees_.records[static_cast<std::size_t>(record)]);
    const auto* first = trees_.first.data() + leaf;
    double* sums = sums_ + row * trees_.target_count;
    for (auto v = first[0]; v < first[1]; ++v) {
      const auto target = trees_.targets[static_cast<std::size_t>(v)];
      const auto weight = static_cast<double>(trees_.weights[static_cast<std::size_t>(v)]);
      if (trees_.counts_votes)
        count_vote(sums[target], voted_[row * trees_.target_count + target], weight);
      else
        sums[target] += weight;
    }
  }

  void store(T* y) const {
    const bool divides = trees_.aggregate == TreeAggregate::average;
    for (std::int64_t i = 0; i < count_; ++i) {
      double v = divides ? sums_[i] / static_cast<double>(trees_.trees) : sums_[i];
      if (trees_.counts_votes && !voted_[i]) v = trees_.unvoted;
      if (!trees_.base.empty())
        v += static_cast<double>(trees_.base[static_cast<std::size_t>(i % trees_.target_count)]);
      y[i] = static_cast<T>(v);
    }
  }

 private:
  void count_vote(double& sum, bool& voted, double weight) const {
    if (trees_.aggregate == TreeAggregate::min)
      sum = voted ? std::min(sum, weight) : weight;
    else if (trees_.aggregate == TreeAggregate::max)
      sum = voted ? std::max(sum, weight) : weight;
    else
      sum += weight;
    voted = true;
  }

  const WalkedTrees<T>& trees_;
  std::int64_t count_;
  double* sums_;
  bool* voted_;
};

/// All rows go down one tree, then down the next; what is left over of the rows goes down some trees at once.
template <TreeSteps kSteps, class T>
void walk_rows(const WalkedTrees<T>& trees, const T* x, std::int64_t features, std::int64_t rows,
               Sums<T>& sums) {
  const auto* records = trees.records.data();
  const auto together = rows / kLanes * kLanes;
  StopPoints points(1 << 12);
  const T* lanes[kLanes];
  std::int32_t at[kLanes];
  if (together > 0)
    for (std::int64_t tree = 0; tree < trees.trees; ++tree) {
      for (std::int64_t row = 0; row < together; row += kLanes) {
        for (int i = 0; i < kLanes; ++i)
          lanes[i] = x + (row + i) * features, at[i] = static_cast<std::int32_t>(tree);
        walk<kSteps, kLanes>(records, lanes, at);
        for (int i = 0; i < kLanes; ++i) sums.add(row + i, at[i]);
      }
      points(together);
    }
  for (auto row = together; row < rows; ++row) {
    std::fill_n(lanes, kLanes, x + row * features);
    std::int64_t tree = 0;
    for (; tree + kLanes <= trees.trees; tree += kLanes) {
      for (int i = 0; i < kLanes; ++i) at[i] = static_cast<std::int32_t>(tree + i);
      walk<kSteps, kLanes>(records, lanes, at);
      for (int i = 0; i < kLanes; ++i) sums.add(row, at[i]);
      points(kLanes);
    }
    for (; tree < trees.trees; ++tree) {
      at[0] = static_cast<std::int32_t>(tree);
      walk<kSteps, 1>(records, lanes, at);
      sums.add(row, at[0]);
    }
  }
}

}  // namespace

std::int64_t rows_of_block(std::int64_t targets) {
  return std::clamp<std::int64_t>(kMostSums / targets / kLanes * kLanes, 1, kMostRows);
}

std::size_t block_bytes(std::int64_t targets, bool counts_votes) {
  const auto sums = rows_of_block(targets) * targets;
  return static_cast<std::size_t>(
      round_up(sums * static_cast<std::int64_t>(sizeof(double) + (counts_votes ? 1 : 0)), 64));
}

template <class T>
void walk_block(const WalkedTrees<T>& trees, const T* x, std::int64_t features, std::int64_t rows, T* y,
                void* scratch) {
  Sums<T> sums(trees, rows, scratch);
  switch (trees.steps) {
    case TreeSteps::high_only:
      walk_rows<TreeSteps::high_only>(trees, x, features, rows, sums);
      break;
    case TreeSteps::nan_too:
      walk_rows<TreeSteps::nan_too>(trees, x, features, rows, sums);
      break;
    case TreeSteps::all:
      walk_rows<TreeSteps::all>(trees, x, features, rows, sums);
      break;
  }
  sums.store(y);
}

template void walk_block(const WalkedTrees<float>&, const float*, std::int64_t, std::int64_t, float*, void*);
template void walk_block(const WalkedTrees<double>&, const double*, std::int64_t, std::int64_t, double*,
                         void*);

}  // namespace lamina
