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
  const auto& shape = c.shape(x);
  // Parents have lower numbers than their children; a test for members is a chain of tests for each.
  std::vector<Child> order;
  visit_children_first(
      *this, [&](auto at) { order.push_back(at); }, [](auto) {});
  std::reverse(order.begin(), order.end());
  std::vector<std::int64_t> first(inner.size());
  std::int64_t count = 0;
  const auto length = [](const Inner& n) {
    return n.is_member ? std::max<std::int64_t>(1, std::ssize(n.members)) : 1;
  };
  for (const auto at : order) {
    first[static_cast<std::size_t>(at)] = count;
    count += length(inner[static_cast<std::size_t>(at)]);
  }
  const auto place = [&](Child child) {
    return narrow(child < 0 ? child : first[static_cast<std::size_t>(child)]);
  };
  std::vector<std::int32_t> nodes;
  Floats thresholds;
  StopPoints points;
  for (const auto at : order) {
    const auto& n = inner[static_cast<std::size_t>(at)];
    if (shape.ranked() && !shape[1].fits(Dim(n.feature + 1, Dim::kUnbounded)))
      c.fail("node {} asks for feature {}, the input has {}", at, n.feature, to_string(shape));
    for (std::int64_t i = 0, steps = length(n); i < steps; ++i) {
      points(16);
      const auto next = i + 1 < steps ? narrow(std::ssize(thresholds) + 1) : place(n.if_false);
      nodes.insert(nodes.end(),
                   {narrow(n.feature), static_cast<std::int32_t>(n.is_member ? TreeTest::equal : n.test),
                    place(n.if_true), next, n.nan_is_true ? 1 : 0});
      if (!n.is_member)
        thresholds.push_back(n.threshold);
      else  // nothing is equal to NaN, so that an empty set has no member
        thresholds.push_back(n.members.empty() ? std::numeric_limits<double>::quiet_NaN()
                                               : n.members[static_cast<std::size_t>(i)]);
    }
  }
  std::vector<std::int32_t> starts, roots_out, targets_out;
  for (const auto start : leaves) starts.push_back(narrow(start));
  for (const auto root : roots) roots_out.push_back(place(root));
  Floats weights;
  for (const auto& v : votes) {
    points(4);
    targets_out.push_back(narrow(v.target));
    weights.push_back(v.weight);
  }
  const auto type = c.known_element(x);
  const auto list = [&](const std::vector<std::int32_t>& v) {
    return c.constant(Tensor::of<std::int32_t>({std::ssize(v)}, v));
  };
  Values inputs{x,
                c.constant(Tensor::of<std::int32_t>({std::ssize(thresholds), kTreeColumns}, nodes)),
                floats_constant(c, thresholds, type),
                list(roots_out),
                list(starts),
                list(targets_out),
                floats_constant(c, weights, type)};
  if (!base.empty()) inputs.push_back(floats_constant(c, base, type));
  return c.add(TreeEnsemble{targets, aggregate, unvoted}, std::move(inputs));
}

}  // namespace lamina::onnx
