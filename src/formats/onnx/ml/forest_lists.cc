#include "formats/onnx/ml/forest_lists.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/cancellation.h"

namespace lamina::onnx {
namespace {

Numbers numbers_of_tensor(Call& c, std::string_view name) {
  const auto t = c.tensor(name);
  if (!t) return {};
  if (!is_float(t->element_type())) c.fail("{} is {}, wanted a float type", name, name_of(t->element_type()));
  return {to_doubles(t->to_aligned()), t->element_type() == ElementType::f64};
}

void require_count(const Call& c, std::string_view name, std::size_t count, std::size_t wanted) {
  if (count != wanted)
    c.fail("{} has {} elements, wanted {} as the other lists of nodes", name, count, wanted);
}

Ints node_list(const Call& c, std::string_view name, std::size_t count) {
  auto values = c.ints(name);
  require_count(c, name, values.size(), count);
  return values;
}

TreeTest test_named(const Call& c, std::string_view mode) {
  constexpr std::array names{std::string_view("BRANCH_LEQ"), std::string_view("BRANCH_LT"),
                             std::string_view("BRANCH_GTE"), std::string_view("BRANCH_GT"),
                             std::string_view("BRANCH_EQ"),  std::string_view("BRANCH_NEQ")};
  const auto at = std::find(names.begin(), names.end(), mode);
  if (at == names.end())
    c.fail("a node has the mode \"{}\", wanted LEAF or one of {}", mode, fmt::join(names, ", "));
  return static_cast<TreeTest>(at - names.begin());
}

/// Nodes by their tree's number and their own.
class NodeNumbers {
 public:
  NodeNumbers(const Call& c, const Ints& trees, const Ints& nodes) : c_(c), trees_(trees), nodes_(nodes) {
    order_.resize(trees.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    StopPoints points;
    std::sort(order_.begin(), order_.end(),
              comparing(points, [&](auto a, auto b) { return key(a) < key(b); }));
    for (std::size_t i = 1; i < order_.size(); ++i)
      if (key(order_[i - 1]) == key(order_[i]))
        c.fail("node {} of tree {} occurs twice", nodes[order_[i]], trees[order_[i]]);
  }
  std::size_t find(std::int64_t tree, std::int64_t node, std::string_view what) const {
    const std::pair wanted(tree, node);
    const auto at = std::lower_bound(order_.begin(), order_.end(), wanted,
                                     [&](auto i, const auto& w) { return key(i) < w; });
    if (at == order_.end() || key(*at) != wanted)
      c_.fail("{} is node {} of tree {}, which there is not", what, node, tree);
    return *at;
  }

 private:
  std::pair<std::int64_t, std::int64_t> key(std::size_t i) const { return {trees_[i], nodes_[i]}; }
  const Call& c_;
  const Ints &trees_, &nodes_;
  std::vector<std::size_t> order_;
};

/// Units of work (StopPoints) that finding a node by its number takes about.
constexpr std::int64_t kSearch = 64;

/// `of`: the prefix of the votes' attributes: "target" or "class".
void read_votes(Call& c, std::string_view of, const NodeNumbers& numbers,
                const std::vector<Forest::Child>& place, ReadForest& out) {
  const auto name = [&](std::string_view what) { return fmt::format("{}_{}", of, what); };
  const auto ids = c.ints(name("ids"));
  const auto nodes = node_list(c, name("nodeids"), ids.size());
  const auto trees = node_list(c, name("treeids"), ids.size());
  const auto weights = read_numbers(c, name("weights"));
  require_count(c, name("weights"), weights.values.size(), ids.size());
  out.is_double |= weights.is_double;
  auto& forest = out.forest;
  // Counted first, so that each leaf's votes lie together, in the order of the file.
  std::vector<std::int64_t> leaf_of(ids.size(), -1);
  StopPoints points;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    points(kSearch);
    const auto at = place[numbers.find(trees[i], nodes[i], "what votes")];
    if (at >= 0) continue;  // votes of inner nodes count nowhere
    leaf_of[i] = ~at;
    ++forest.leaves[static_cast<std::size_t>(~at) + 1];
  }
  std::partial_sum(forest.leaves.begin(), forest.leaves.end(), forest.leaves.begin());
  forest.votes.resize(static_cast<std::size_t>(forest.leaves.back()));
  auto next = forest.leaves;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (leaf_of[i] >= 0)
      forest.votes[static_cast<std::size_t>(next[static_cast<std::size_t>(leaf_of[i])]++)] = {
          ids[i], weights.values[i]};
}

/// TreeEnsemble's sets of members: one after the other, each ended by NaN.
void read_members(Call& c, Forest& forest) {
  const auto values = numbers_of_tensor(c, "membership_values").values;
  std::size_t at = 0;
  for (auto& n : forest.inner) {
    if (!n.is_member) continue;
    const auto end = std::find_if(values.begin() + static_cast<std::ptrdiff_t>(at), values.end(),
                                  [](double v) { return std::isnan(v); });
    if (end == values.end())
      c.fail(
          "membership_values has fewer sets, each ended by NaN, than there are nodes that test for members");
    n.members.assign(values.begin() + static_cast<std::ptrdiff_t>(at), end);
    at = static_cast<std::size_t>(end - values.begin()) + 1;
  }
  if (at != values.size())
    c.fail("membership_values has more sets than there are nodes that test for members");
}

}  // namespace

Numbers read_numbers(Call& c, const std::string& name) {
  if (c.has_attribute(name + "_as_tensor")) return numbers_of_tensor(c, name + "_as_tensor");
  return {c.floats(name), false};
}

ReadForest read_forest(Call& c, std::string_view of, std::int64_t targets) {
  ReadForest out;
  auto& forest = out.forest;
  forest.targets = targets;
  const auto* modes = c.find("nodes_modes");
  if (!modes || modes->strings.empty()) c.fail("has no nodes_modes");
  const auto count = modes->strings.size();
  const auto trees = node_list(c, "nodes_treeids", count), nodes = node_list(c, "nodes_nodeids", count);
  const auto features = node_list(c, "nodes_featureids", count);
  const auto if_true = node_list(c, "nodes_truenodeids", count);
  const auto if_false = node_list(c, "nodes_falsenodeids", count);
  auto nan = c.ints("nodes_missing_value_tracks_true");
  if (nan.empty()) nan.assign(count, 0);
  require_count(c, "nodes_missing_value_tracks_true", nan.size(), count);
  const auto thresholds = read_numbers(c, "nodes_values");
  require_count(c, "nodes_values", thresholds.values.size(), count);
  out.is_double = thresholds.is_double;

  const NodeNumbers numbers(c, trees, nodes);
  std::vector<Forest::Child> place(count);
  std::int64_t inner = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (modes->strings[i] != "LEAF") {
      place[i] = inner++;
    } else {
      place[i] = ~(std::ssize(forest.leaves) - 1);
      forest.leaves.push_back(0);
    }
  }
  StopPoints points;
  for (std::size_t i = 0; i < count; ++i) {
    points(2 * kSearch);
    // The first node of a tree is its root.
    if (i == 0 || trees[i] != trees[i - 1]) forest.roots.push_back(place[i]);
    if (place[i] < 0) continue;
    const auto child = [&](std::int64_t number) { return place[numbers.find(trees[i], number, "a child")]; };
    forest.inner.push_back({features[i],
                            test_named(c, modes->strings[i]),
                            thresholds.values[i],
                            nan[i] != 0,
                            child(if_true[i]),
                            child(if_false[i]),
                            false,
                            {}});
  }
  read_votes(c, of, numbers, place, out);
  forest.check(c);
  return out;
}

ReadForest read_tree_ensemble(Call& c) {
  ReadForest out;
  auto& forest = out.forest;
  forest.targets = c.i("n_targets", 1);
  const auto features = c.ints("nodes_featureids");
  const auto count = features.size();
  const auto modes_tensor = c.tensor("nodes_modes");
  const Ints modes = modes_tensor ? to_ints(*modes_tensor) : Ints{};
  require_count(c, "nodes_modes", modes.size(), count);
  const auto splits = numbers_of_tensor(c, "nodes_splits");
  require_count(c, "nodes_splits", splits.values.size(), count);
  const auto if_true = node_list(c, "nodes_truenodeids", count),
             if_false = node_list(c, "nodes_falsenodeids", count);
  const auto true_leafs = node_list(c, "nodes_trueleafs", count);
  const auto false_leafs = node_list(c, "nodes_falseleafs", count);
  auto nan = c.ints("nodes_missing_value_tracks_true");
  if (nan.empty()) nan.assign(count, 0);
  require_count(c, "nodes_missing_value_tracks_true", nan.size(), count);
  constexpr std::int64_t kMember = 6;
  StopPoints points;
  for (std::size_t i = 0; i < count; ++i) {
    points(16);
    if (modes[i] < 0 || modes[i] > kMember)
      c.fail("nodes_modes[{}] is {}, wanted 0..{}", i, modes[i], kMember);
    if (if_true[i] < 0 || if_false[i] < 0) c.fail("node {} has a child below 0", i);
    const bool is_member = modes[i] == kMember;
    forest.inner.push_back({features[i],
                            is_member ? TreeTest::equal : static_cast<TreeTest>(modes[i]),
                            splits.values[i],
                            nan[i] != 0,
                            true_leafs[i] != 0 ? ~if_true[i] : if_true[i],
                            false_leafs[i] != 0 ? ~if_false[i] : if_false[i],
                            is_member,
                            {}});
  }
  read_members(c, forest);
  const auto targets = c.ints("leaf_targetids");
  const auto weights = numbers_of_tensor(c, "leaf_weights");
  require_count(c, "leaf_weights", weights.values.size(), targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    points(4);
    forest.votes.push_back({targets[i], weights.values[i]});
    forest.leaves.push_back(std::ssize(forest.votes));
  }
  for (const auto root : c.ints("tree_roots")) {
    if (root < 0) c.fail("a root is {}, wanted 0 or more", root);
    forest.roots.push_back(root);
  }
  out.is_double = splits.is_double || weights.is_double;
  forest.check(c);
  return out;
}

}  // namespace lamina::onnx
