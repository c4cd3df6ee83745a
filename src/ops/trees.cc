#include "ops/trees.h"

#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "graph/op_model.h"
#include "ops/coupling.h"
#include "ops/operators.h"
#include "ops/require.h"

namespace lamina {
namespace {

void require_i32(const InferContext& c, std::size_t i, std::string_view name) {
  const auto e = c.element(i);
  c.require(e == ElementType::i32 || e == ElementType::undefined, "{} have type {}, wanted i32", name,
            name_of(e));
}

void require_child(std::int32_t child, std::int64_t first, std::size_t nodes, std::size_t leaves,
                   std::string_view of) {
  const bool is_leaf = child < 0;
  const auto number = is_leaf ? ~static_cast<std::int64_t>(child) : child;
  if (number < (is_leaf ? 0 : first) || number >= static_cast<std::int64_t>(is_leaf ? leaves : nodes))
    fail(ErrorCode::bad_input, "TreeEnsemble: {} is {} {}, wanted {}..{}", of, is_leaf ? "leaf" : "node",
         number, is_leaf ? 0 : first, static_cast<std::int64_t>(is_leaf ? leaves : nodes) - 1);
}

/// What the votes for one target come to.
class Votes {
 public:
  explicit Votes(const TreeEnsemble& op, std::size_t trees)
      : op_(op),
        trees_(static_cast<double>(trees)),
        totals_(static_cast<std::size_t>(op.targets)),
        voted_(totals_.size()) {}

  void clear() {
    std::fill(totals_.begin(), totals_.end(), 0.0);
    std::fill(voted_.begin(), voted_.end(), false);
  }
  void add(std::size_t target, double weight) {
    double& total = totals_[target];
    if (op_.aggregate == TreeAggregate::min)
      total = voted_[target] ? std::min(total, weight) : weight;
    else if (op_.aggregate == TreeAggregate::max)
      total = voted_[target] ? std::max(total, weight) : weight;
    else
      total += weight;
    voted_[target] = true;
  }
  double of(std::size_t target) const {
    if (!voted_[target]) return op_.unvoted;
    return op_.aggregate == TreeAggregate::average ? totals_[target] / trees_ : totals_[target];
  }

 private:
  const TreeEnsemble& op_;
  double trees_;
  std::vector<double> totals_;
  std::vector<bool> voted_;
};

}  // namespace

void TreeEnsemble::infer(InferContext& c) const {
  const auto e = c.element(0);
  c.require(e == ElementType::f32 || e == ElementType::f64 || e == ElementType::undefined,
            "x has type {}, wanted f32 or f64", name_of(e));
  c.require(targets >= 1 && targets <= (std::int64_t{1} << 24), "targets is {}, wanted 1..{}", targets,
            std::int64_t{1} << 24);
  require_rank(c, 0, 2, "x");
  require_rank(c, 1, 2, "nodes");
  require_i32(c, 1, "nodes");
  if (c.shape(1).ranked()) require_dim(c, c.shape(1)[1], Dim(kTreeColumns), "columns of nodes");
  for (const auto& [i, name] :
       {std::pair<std::size_t, std::string_view>(3, "roots"), {4, "leaves"}, {5, "targets"}}) {
    require_rank(c, i, 1, name);
    require_i32(c, i, name);
  }
  for (const auto& [i, name] :
       {std::pair<std::size_t, std::string_view>(2, "thresholds"), {6, "weights"}, {7, "base"}}) {
    if (!c.has(i)) continue;
    require_rank(c, i, 1, name);
    require_same_element(c, 0, i, name);
  }
  if (c.shape(1).ranked() && c.shape(2).ranked()) require_dim(c, c.shape(2)[0], c.shape(1)[0], "thresholds");
  if (c.shape(5).ranked() && c.shape(6).ranked()) require_dim(c, c.shape(6)[0], c.shape(5)[0], "weights");
  if (c.has(7) && c.shape(7).ranked()) require_dim(c, c.shape(7)[0], Dim(targets), "base");
  c.set(0, e, Shape{c.shape(0).ranked() ? c.shape(0)[0] : Dim(), Dim(targets)});
}

NodeWork TreeEnsemble::work(const WorkContext& c) const {
  // Each row takes a path, which is about as long as a balanced tree is deep.
  const double trees = c.in(3), nodes = std::max(1.0, c.in(2)) / std::max(1.0, trees);
  return {.others = c.axis(0, 0) * trees * (1 + 2 * std::log2(1 + nodes))};
}

TreeTables checked_trees(const TreeEnsemble& op, const Tensor& nodes, const Tensor& roots,
                         const Tensor& leaves, const Tensor& targets) {
  TreeTables t{nodes.data<std::int32_t>(), roots.data<std::int32_t>(), leaves.data<std::int32_t>(),
               targets.data<std::int32_t>(), 0};
  const auto count = t.nodes.size() / kTreeColumns;
  if (t.leaves.empty()) fail(ErrorCode::bad_input, "TreeEnsemble: leaves is empty, wanted at least 0");
  const auto leaf_count = t.leaves.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* n = t.nodes.data() + i * kTreeColumns;
    if (n[kFeature] < 0 || n[kFeature] == INT32_MAX)
      fail(ErrorCode::bad_input, "TreeEnsemble: node {} asks for feature {}", i, n[kFeature]);
    if (n[kTest] < 0 || n[kTest] >= kTreeTests)
      fail(ErrorCode::bad_input, "TreeEnsemble: node {} has the test {}, wanted 0..{}", i, n[kTest],
           kTreeTests - 1);
    for (const auto column : {kIfTrue, kIfFalse})
      require_child(n[column], static_cast<std::int64_t>(i) + 1, count, leaf_count, "a node's child");
    t.features = std::max(t.features, n[kFeature] + 1);
  }
  for (const auto root : t.roots) require_child(root, 0, count, leaf_count, "a root");
  for (std::size_t i = 0; i < leaf_count; ++i)
    if (t.leaves[i] < 0 || t.leaves[i] > t.leaves[i + 1])
      fail(ErrorCode::bad_input, "TreeEnsemble: leaf {} has the votes {} to {}", i, t.leaves[i],
           t.leaves[i + 1]);
  if (t.leaves.front() < 0 || static_cast<std::size_t>(t.leaves.back()) > t.targets.size())
    fail(ErrorCode::bad_input, "TreeEnsemble: leaves have votes up to {}, there are {}", t.leaves.back(),
         t.targets.size());
  for (const auto target : t.targets)
    if (target < 0 || target >= op.targets)
      fail(ErrorCode::bad_input, "TreeEnsemble: a vote is for target {}, wanted 0..{}", target,
           op.targets - 1);
  return t;
}

void TreeEnsemble::evaluate(EvalContext& c) const {
  const auto t = checked_trees(*this, c.in(1), c.in(3), c.in(4), c.in(5));
  const auto rows = c.dims(0)[0], features = c.dims(0)[1];
  if (rows > 0 && t.features > features)
    fail(ErrorCode::bad_input, "TreeEnsemble: x has {} features, the trees ask for {}", features, t.features);
  const auto x = c.doubles(0), thresholds = c.doubles(2), weights = c.doubles(6);
  const auto base = c.has(7) ? c.doubles(7) : std::vector<double>(static_cast<std::size_t>(targets));
  std::vector<double> out(c.out().size());
  parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points;
    Votes votes(*this, t.roots.size());
    for (auto row = begin; row < end; ++row) {
      points(targets);
      votes.clear();
      const auto* features_of_row = x.data() + row * features;
      for (auto at : t.roots) {
        while (at >= 0) {
          points();
          const auto* n = t.nodes.data() + static_cast<std::size_t>(at) * kTreeColumns;
          const double value = features_of_row[n[kFeature]];
          const bool is_true =
              passes(static_cast<TreeTest>(n[kTest]), value, thresholds[static_cast<std::size_t>(at)]) ||
              (n[kNanIsTrue] != 0 && std::isnan(value));
          at = n[is_true ? kIfTrue : kIfFalse];
        }
        const auto leaf = static_cast<std::size_t>(~at);
        points(t.leaves[leaf + 1] - t.leaves[leaf]);
        for (auto v = t.leaves[leaf]; v < t.leaves[leaf + 1]; ++v)
          votes.add(static_cast<std::size_t>(t.targets[static_cast<std::size_t>(v)]),
                    weights[static_cast<std::size_t>(v)]);
      }
      for (std::size_t k = 0; k < base.size(); ++k)
        out[static_cast<std::size_t>(row) * base.size() + k] = votes.of(k) + base[k];
    }
  });
  c.store(0, out);
}

void register_trees(Registry& r) {
  r.add<PairwiseCoupling>();
  r.add<TreeEnsemble>();
}

}  // namespace lamina
