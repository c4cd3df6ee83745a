/// Reshape, Transpose, Reshape that only interleave an axis, or move blocks between depth and space.
#include <algorithm>
#include <array>

#include "ops/shaping.h"
#include "rules/certain_shapes.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// What the three shapes and the order say, all ranked.
struct Shapes {
  const Shape &from, &middle, &to;
  Ints order;
};

std::optional<Shapes> shapes_of(const Match& m, const Pattern& x, const Pattern& split,
                                const Pattern& turned) {
  const auto& g = m.graph();
  const auto order = transpose_order(g, m.node(turned));
  const Shapes s{m.shape(x), m.shape(split), g.type(m.root_node().outputs[0]).shape, order.value_or(Ints())};
  if (!order || !s.from.ranked() || !s.middle.ranked() || !s.to.ranked() || order->size() != s.middle.rank())
    return std::nullopt;
  return s;
}

/// The axis whose two halves change places, and the size of its first half.
std::optional<ShuffleChannels> shuffle_of(const Shapes& s) {
  const auto rank = s.from.rank();
  if (s.middle.rank() != rank + 1 || s.to.rank() != rank) return std::nullopt;
  std::size_t axis = 0;
  while (axis < rank && s.order[axis] == static_cast<std::int64_t>(axis)) ++axis;
  if (axis >= rank) return std::nullopt;
  Ints wanted(rank + 1);
  for (std::size_t i = 0; i <= rank; ++i) wanted[i] = static_cast<std::int64_t>(i);
  std::swap(wanted[axis], wanted[axis + 1]);
  if (s.order != wanted || !s.middle[axis].known()) return std::nullopt;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!s.from[i].same(s.to[i])) return std::nullopt;
    if (i != axis && !s.from[i].same(s.middle[i < axis ? i : i + 1])) return std::nullopt;
  }
  const auto group = s.middle[axis].size();
  if (group <= 0 || !s.from[axis].known() || s.from[axis].size() % group != 0) return std::nullopt;
  return ShuffleChannels{static_cast<std::int64_t>(axis), group};
}

/// Sizes of a picture [N, C, H, W] and of the six axes between; all known but N.
bool are_pictures(const Shapes& s) {
  if (s.from.rank() != 4 || s.middle.rank() != 6 || s.to.rank() != 4) return false;
  for (std::size_t i = 1; i < 6; ++i)
    if (!s.middle[i].known() || (i < 4 && (!s.from[i].known() || !s.to[i].known()))) return false;
  return s.from[0].same(s.middle[0]) && s.from[0].same(s.to[0]);
}

std::int64_t at(const Shape& shape, std::size_t i) { return shape[i].size(); }

/// Orders of six axes and their meaning; `block` and `depth` are the positions of these axes in the middle.
struct Form {
  std::array<std::int64_t, 6> order;
  DepthMode mode;
  std::size_t rows, columns;  // the axes of the block
};

std::optional<DepthToSpace> depth_to_space_of(const Shapes& s) {
  static constexpr Form forms[] = {{{0, 3, 4, 1, 5, 2}, DepthMode::blocks_first, 1, 2},
                                   {{0, 1, 4, 2, 5, 3}, DepthMode::depth_first, 2, 3}};
  if (!are_pictures(s)) return std::nullopt;
  for (const auto& f : forms) {
    const auto b = at(s.middle, f.rows);
    if (!std::ranges::equal(s.order, f.order) || at(s.middle, f.columns) != b || b < 1) continue;
    const bool fits = at(s.middle, 4) == at(s.from, 2) && at(s.middle, 5) == at(s.from, 3) &&
                      at(s.to, 1) * b * b == at(s.from, 1) && at(s.to, 2) == at(s.from, 2) * b &&
                      at(s.to, 3) == at(s.from, 3) * b;
    if (fits) return DepthToSpace{f.mode, b};
  }
  return std::nullopt;
}

std::optional<SpaceToDepth> space_to_depth_of(const Shapes& s) {
  static constexpr Form forms[] = {{{0, 3, 5, 1, 2, 4}, DepthMode::blocks_first, 3, 5},
                                   {{0, 1, 3, 5, 2, 4}, DepthMode::depth_first, 3, 5}};
  if (!are_pictures(s)) return std::nullopt;
  for (const auto& f : forms) {
    const auto b = at(s.middle, f.rows);
    if (!std::ranges::equal(s.order, f.order) || at(s.middle, f.columns) != b || b < 1) continue;
    const bool fits = at(s.middle, 1) == at(s.from, 1) && at(s.middle, 2) * b == at(s.from, 2) &&
                      at(s.middle, 4) * b == at(s.from, 3) && at(s.to, 1) == at(s.from, 1) * b * b &&
                      at(s.to, 2) == at(s.middle, 2) && at(s.to, 3) == at(s.middle, 4);
    if (fits) return SpaceToDepth{f.mode, b};
  }
  return std::nullopt;
}

/// A rule that makes `recognise(shapes)` of Reshape(Transpose(Reshape(x))).
template <class Recognise>
Rule shuffle_rule(const std::string& name, const std::string& doc, Recognise recognise) {
  const auto x = any();
  const auto split = is<Reshape>(x).used_once();
  const auto turned = is<Transpose>(split).used_once();
  const auto joined = is<Reshape>(turned).that([](const Graph& g, const Node& n) {
    return g.type(n.inputs[0]).shape.ranked() && g.type(n.inputs[0]).shape.rank() > 4;
  });
  using Made = typename std::invoke_result_t<Recognise, const Shapes&>::value_type;
  return rule(name, doc, RuleSet::portable, joined)
      .when([=](const Match& m) -> Found<Made> {
        const auto s = shapes_of(m, x, split, turned);
        const auto made = s ? recognise(*s) : std::nullopt;
        if (!made) return Verdict::no("its axes are cut or turned in another way");
        if (auto v = never_fails(m, split); !v) return v;
        if (auto v = never_fails(m, joined); !v) return v;
        return *made;
      })
      .make([=](Rewrite& r, const Made& made) { r.replace(r.add(made, {r.match().value(x)})); });
}

}  // namespace

void add_recognise_shuffles(Rules& rules) {
  rules.push_back(shuffle_rule("recognise-channel-shuffle",
                               "An axis split into groups, transposed and joined: ShuffleChannels",
                               shuffle_of));
  rules.push_back(shuffle_rule("recognise-depth-to-space",
                               "Blocks of channels moved into spatial axes: DepthToSpace",
                               depth_to_space_of));
  rules.push_back(shuffle_rule("recognise-space-to-depth",
                               "Blocks of spatial axes moved into channels: SpaceToDepth",
                               space_to_depth_of));
}

}  // namespace lamina
