#include "formats/onnx/ml/forest.h"

#include <algorithm>
#include <limits>

#include "base/cancellation.h"
#include "formats/onnx/build.h"
#include "formats/onnx/ml/ml.h"

namespace lamina::onnx {
namespace {

constexpr std::int64_t kMostNumbers = INT32_MAX / 8;
constexpr std::int64_t kMostTargets = 1 << 20;

/// Visits what is reached from roots, children before their parents. Calls leave(inner) once for each.
template <class F, class G>
void visit_children_first(const Forest& forest, const F& leave, const G& circle) {
  enum State : std::uint8_t { unseen, open, done };
  std::vector<State> state(forest.inner.size(), unseen);
  std::vector<Forest::Child> stack;
  StopPoints points;
  for (const auto root : forest.roots) {
    if (root >= 0) stack.push_back(root);
    while (!stack.empty()) {
      points(16);
      const auto at = stack.back();
      auto& here = state[static_cast<std::size_t>(at)];
      if (here != unseen) {
        if (here == open) leave(at);
        here = done;
        stack.pop_back();
        continue;
      }
      here = open;
      const auto& n = forest.inner[static_cast<std::size_t>(at)];
      for (const auto child : {n.if_false, n.if_true}) {
        if (child < 0) continue;
        const auto childs = state[static_cast<std::size_t>(child)];
        if (childs == open) circle(child);
        if (childs == unseen) stack.push_back(child);
      }
    }
  }
}

std::int32_t narrow(std::int64_t v) { return static_cast<std::int32_t>(v); }

/// The rows of the nodes in a TreeEnsemble: parents before their children. A test for members is a chain of
/// rows, one for each member.
class NodeRows {
 public:
  explicit NodeRows(const Forest& forest) : forest_(forest), first_(forest.inner.size()) {
    visit_children_first(
        forest, [&](auto at) { order_.push_back(at); }, [](auto) {});
    std::reverse(order_.begin(), order_.end());
    std::int64_t count = 0;
    for (const auto at : order_) {
      const auto& n = node(at);
      first_[static_cast<std::size_t>(at)] = count;
      count += n.is_member ? std::max<std::int64_t>(1, std::ssize(n.members)) : 1;
    }
    StopPoints points;
    for (const auto at : order_) add(node(at), points);
  }

  /// The nodes that roots reach, in the order of their rows.
  const std::vector<Forest::Child>& order() const { return order_; }
  const std::vector<std::int32_t>& numbers() const { return numbers_; }
  const Floats& thresholds() const { return thresholds_; }
  /// The first row of a node; ~leaf for a leaf.
  std::int32_t place(Forest::Child child) const {
    return narrow(child < 0 ? child : first_[static_cast<std::size_t>(child)]);
  }

 private:
  const Forest::Inner& node(Forest::Child at) const { return forest_.inner[static_cast<std::size_t>(at)]; }

  void add(const Forest::Inner& n, StopPoints& points) {
    if (!n.is_member) return add_row(n, n.test, n.threshold, place(n.if_false), points);
    // Nothing is equal to NaN, so an empty set has no member.
    if (n.members.empty())
      return add_row(n, TreeTest::equal, std::numeric_limits<double>::quiet_NaN(), place(n.if_false), points);
    for (std::size_t i = 0; i < n.members.size(); ++i)
      add_row(n, TreeTest::equal, n.members[i],
              i + 1 < n.members.size() ? narrow(std::ssize(thresholds_) + 1) : place(n.if_false), points);
  }

  void add_row(const Forest::Inner& n, TreeTest test, double threshold, std::int32_t if_false,
               StopPoints& points) {
    points(16);
    numbers_.insert(numbers_.end(), {narrow(n.feature), static_cast<std::int32_t>(test), place(n.if_true),
                                     if_false, n.nan_is_true ? 1 : 0});
    thresholds_.push_back(threshold);
  }

  const Forest& forest_;
  std::vector<Forest::Child> order_;
  std::vector<std::int64_t> first_;  // by node; those that no root reaches have no rows
  std::vector<std::int32_t> numbers_;
  Floats thresholds_;
};

}  // namespace

void Forest::check(const Call& c) const {
  if (targets < 1 || targets > kMostTargets) c.fail("has {} targets, wanted 1..{}", targets, kMostTargets);
  std::int64_t rows = 0;
  for (const auto& n : inner) rows += 1 + std::ssize(n.members);
  if (rows > kMostNumbers || std::ssize(leaves) > kMostNumbers || std::ssize(votes) > kMostNumbers)
    c.fail("its trees have more than {} nodes, leaves or votes", kMostNumbers);
  const auto leaf_count = std::ssize(leaves) - 1;
  const auto check_child = [&](Child child, std::string_view what) {
    if (child >= std::ssize(inner)) c.fail("{} is node {}, there are {}", what, child, inner.size());
    if (child < 0 && ~child >= leaf_count) c.fail("{} is leaf {}, there are {}", what, ~child, leaf_count);
  };
  StopPoints points;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    points(8);
    const auto& n = inner[i];
    check_child(n.if_true, "a node's child");
    check_child(n.if_false, "a node's child");
    if (n.feature < 0 || n.feature >= kMostNumbers)
      c.fail("node {} asks for feature {}, wanted 0 or more", i, n.feature);
  }
  for (const auto root : roots) check_child(root, "a root");
  for (const auto& v : votes)
    if (v.target < 0 || v.target >= targets)
      c.fail("a leaf votes for target {}, wanted 0..{}", v.target, targets - 1);
  visit_children_first(
      *this, [](auto) {},
      [&](auto at) { c.fail("its trees go in a circle: a node leads back to node {}", at); });
}

std::vector<bool> Forest::maybe_unvoted() const {
  // A target gets a vote wherever a row goes when all leaves of one tree vote for it. For each inner node the
  // number of a target's votes would do as well, but most ensembles are of one kind or the other.
  std::vector<bool> maybe(static_cast<std::size_t>(targets), true);
  std::vector<std::int64_t> seen(inner.size(), -1), hits(static_cast<std::size_t>(targets));
  std::vector<std::int64_t> leaf_seen(leaves.size(), -1), last(static_cast<std::size_t>(targets), -1);
  std::int64_t visit = 0;
  StopPoints points;
  for (std::size_t tree = 0; tree < roots.size(); ++tree) {
    std::vector<Child> stack{roots[tree]};
    std::vector<std::size_t> touched;
    std::int64_t leaf_count = 0;
    while (!stack.empty()) {
      points(16);
      const auto at = stack.back();
      stack.pop_back();
      auto& mark = at >= 0 ? seen[static_cast<std::size_t>(at)] : leaf_seen[static_cast<std::size_t>(~at)];
      if (mark == static_cast<std::int64_t>(tree)) continue;
      mark = static_cast<std::int64_t>(tree);
      if (at >= 0) {
        const auto& n = inner[static_cast<std::size_t>(at)];
        stack.insert(stack.end(), {n.if_true, n.if_false});
        continue;
      }
      ++leaf_count;
      ++visit;
      const auto leaf = static_cast<std::size_t>(~at);
      for (auto v = leaves[leaf]; v < leaves[leaf + 1]; ++v) {
        points(4);
        const auto target = static_cast<std::size_t>(votes[static_cast<std::size_t>(v)].target);
        if (last[target] == visit) continue;
        last[target] = visit;
        if (hits[target]++ == 0) touched.push_back(target);
      }
    }
    for (const auto target : touched) {
      if (hits[target] == leaf_count) maybe[target] = false;
      hits[target] = 0;
    }
  }
  return maybe;
}

ValueId Forest::add_to(Call& c, ValueId x, TreeAggregate aggregate, double unvoted,
                       const Floats& base) const {
  const NodeRows rows(*this);
  const auto& shape = c.shape(x);
  for (const auto at : rows.order())
    if (const auto feature = inner[static_cast<std::size_t>(at)].feature;
        shape.ranked() && !shape[1].fits(Dim(feature + 1, Dim::kUnbounded)))
      c.fail("node {} asks for feature {}, the input has {}", at, feature, to_string(shape));
  std::vector<std::int32_t> starts, first_rows, vote_targets;
  for (const auto start : leaves) starts.push_back(narrow(start));
  for (const auto root : roots) first_rows.push_back(rows.place(root));
  Floats weights;
  StopPoints points;
  for (const auto& v : votes) {
    points(4);
    vote_targets.push_back(narrow(v.target));
    weights.push_back(v.weight);
  }
  const auto type = c.known_element(x);
  const auto list = [&](const std::vector<std::int32_t>& v) {
    return c.constant(Tensor::of<std::int32_t>({std::ssize(v)}, v));
  };
  Values inputs{
      x,
      c.constant(Tensor::of<std::int32_t>({std::ssize(rows.thresholds()), kTreeColumns}, rows.numbers())),
      floats_constant(c, rows.thresholds(), type),
      list(first_rows),
      list(starts),
      list(vote_targets),
      floats_constant(c, weights, type)};
  if (!base.empty()) inputs.push_back(floats_constant(c, base, type));
  return c.add(TreeEnsemble{targets, aggregate, unvoted}, std::move(inputs));
}

}  // namespace lamina::onnx
