/// A convolution between SpaceToBatch and BatchToSpace is one with dilations, as tf.nn.atrous_conv2d meant
/// it.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// The nodes from the SpaceToBatch to the BatchToSpace: a convolution, two Transposes around it or none, and
/// a sum behind it or none.
struct Blocks {
  NodeId sum, back, convolution, forth, space;
  Convolution op;  ///< the new one
};

/// Block sizes, begins and ends of SpaceToBatch or BatchToSpace.
struct Edges {
  Ints block, begin, end;
};
std::optional<Edges> edges_of(const Graph& g, const Node& n) {
  auto block = constant_ints(g, n, 1), begin = constant_ints(g, n, 2), end = constant_ints(g, n, 3);
  if (!block || !begin || !end || block->size() != begin->size() || block->size() != end->size())
    return std::nullopt;
  return Edges{*block, *begin, *end};
}

/// The edges with their axes in this order.
Edges in_order(const Edges& e, const Ints& order) {
  Edges out;
  for (auto axis : order) {
    const auto i = static_cast<std::size_t>(axis);
    out.block.push_back(e.block.at(i));
    out.begin.push_back(e.begin.at(i));
    out.end.push_back(e.end.at(i));
  }
  return out;
}

bool is_window_of_ones(const Ints& list) {
  return std::all_of(list.begin(), list.end(), [](auto v) { return v == 1; });
}

/// An element of a window's list; an empty list means the same number everywhere.
std::int64_t at(const Ints& list, std::size_t i, std::int64_t usual) {
  return list.empty() ? usual : list[i];
}

/// A constant that is the same along the batch and all axes in blocks.
bool by_channel(const Graph& g, ValueId v, const Ints& block) {
  const auto* t = g.constant(v);
  if (!t || t->rank() > block.size()) return false;
  const auto offset = block.size() - t->rank();
  for (std::size_t i = 0; i < t->rank(); ++i)
    if (t->shape()[i] != 1 && (i + offset == 0 || block[i + offset] != 1)) return false;
  return true;
}

/// Dilations by the blocks, and the pads that are left when the crops are taken off. Each part has every n-th
/// pixel, so zeros that the convolution puts around a part are n times as many around the whole.
Verdict dilate(Convolution& op, const Edges& space, const Edges& batch, const std::string& label) {
  if (space.block != batch.block) return Verdict::no("blocks are not the same before and behind {}", label);
  const auto rank = space.block.size();
  if (rank < 3 || space.block[0] != 1 || space.block[1] != 1)
    return Verdict::no("blocks reach over channels");
  const Convolution part = op;
  const bool pads = part.auto_pad == AutoPad::explicit_;
  op.dilations.assign(rank - 2, 1);
  op.pads_begin.assign(rank - 2, 0);
  op.pads_end.assign(rank - 2, 0);
  op.auto_pad = AutoPad::explicit_;
  for (std::size_t i = 0; i < rank; ++i) {
    if (space.block[i] > INT32_MAX) return Verdict::no("its numbers are too large");
    const auto own = [&](const Ints& list) {
      return pads && i >= 2 ? space.block[i] * at(list, i - 2, 0) : 0;
    };
    const auto begin = space.begin[i] + own(part.pads_begin) - batch.begin[i],
               end = space.end[i] + own(part.pads_end) - batch.end[i];
    if (begin < 0 || end < 0) return Verdict::no("more is cropped than was padded along axis {}", i);
    if (i < 2 && (begin != 0 || end != 0)) return Verdict::no("axis {} is padded", i);
    if (i < 2) continue;
    const auto dilation = at(part.dilations, i - 2, 1);
    if (dilation > INT32_MAX || begin > INT32_MAX || end > INT32_MAX)
      return Verdict::no("its numbers are too large");
    op.dilations[i - 2] = dilation * space.block[i];
    op.pads_begin[i - 2] = begin;
    op.pads_end[i - 2] = end;
  }
  return Verdict::yes();
}

/// A sum with a constant, a Transpose, or a convolution.
bool is_between(const Graph& g, const Node& n) {
  if (!n.bodies.empty()) return false;
  return n.op.is<Convolution>() || n.op.is<Transpose>() || (n.op.is<Add>() && g.constant(n.inputs[1]));
}

/// The roles of the nodes; nothing for other orders.
std::optional<Blocks> order_of(const Graph& g, const std::vector<NodeId>& links, NodeId space) {
  Blocks b;
  b.space = space;
  std::size_t i = 0;
  const auto next = [&]<class T>(NodeId& id, std::type_identity<T>) {
    if (i < links.size() && g.node(links[i]).op.is<T>()) id = links[i++];
  };
  next(b.sum, std::type_identity<Add>());
  next(b.back, std::type_identity<Transpose>());
  next(b.convolution, std::type_identity<Convolution>());
  next(b.forth, std::type_identity<Transpose>());
  if (i < links.size() || !b.convolution.valid() || b.back.valid() != b.forth.valid()) return std::nullopt;
  b.op = *g.node(b.convolution).op.as<Convolution>();
  return b;
}

/// The order of the axes in front of the convolution, which those behind it are put back from.
Found<Ints> order_before(const Graph& g, const Blocks& b, std::size_t rank) {
  Ints same(rank);
  std::iota(same.begin(), same.end(), 0);
  if (!b.forth.valid()) return same;
  const auto forth = transpose_order(g, g.node(b.forth)), back = transpose_order(g, g.node(b.back));
  if (!forth || !back || forth->size() != rank || back->size() != rank) return std::nullopt;
  for (std::size_t i = 0; i < rank; ++i)
    if ((*back)[static_cast<std::size_t>((*forth)[i])] != static_cast<std::int64_t>(i))
      return Verdict::no("the Transposes around '{}' do not cancel", g.label(b.convolution));
  return *forth;
}

Found<Blocks> blocks_of(const Match& m, const Pattern& links, const Pattern& space) {
  const Graph& g = m.graph();
  auto found = order_of(g, m.links(links), m.id(space));
  const auto to = edges_of(g, m.root_node()), from = edges_of(g, m.node(space));
  if (!found || !to || !from || from->block.size() != to->block.size()) return std::nullopt;
  auto& b = *found;
  const auto order = order_before(g, b, from->block.size());
  if (!order) return order.verdict();
  const auto label = fmt::format("'{}'", g.label(b.convolution));
  if (!is_window_of_ones(b.op.strides)) return Verdict::no("{} has strides", label);
  if (b.op.auto_pad == AutoPad::same_upper || b.op.auto_pad == AutoPad::same_lower)
    return Verdict::no("{} pads each part by its own size", label);
  if (has_input(g.node(b.convolution), 3)) return Verdict::no("{} has a zero point", label);
  if (b.sum.valid() && !by_channel(g, g.node(b.sum).inputs[1], to->block))
    return Verdict::no(
        "'{}' adds a tensor that is no constant, or one that varies along the batch or an axis in blocks",
        g.label(b.sum));
  NodeId reader = m.root();
  for (auto id : {b.sum, b.back, b.convolution, b.forth, b.space}) {
    if (!id.valid()) continue;
    if (auto v = read_only_by(g, g.node(id).outputs[0], reader); !v) return v;
    reader = id;
  }
  if (auto v = dilate(b.op, in_order(*from, *order), in_order(*to, *order), label); !v) return v;
  return b;
}

ValueId make_dilated(Rewrite& r, const Blocks& b) {
  const Graph& g = r.graph();
  auto inputs = g.node(b.convolution).inputs;
  inputs[0] = g.node(b.space).inputs[0];
  if (b.forth.valid()) inputs[0] = r.add(Transpose{}, {inputs[0], g.node(b.forth).inputs[1]});
  r.named_after(b.convolution);
  auto y = r.add(b.op, std::move(inputs));
  if (b.back.valid()) y = r.add(Transpose{}, {y, g.node(b.back).inputs[1]});
  if (!b.sum.valid()) return y;
  r.named_after(b.sum);
  return r.add(Add{}, {y, g.node(b.sum).inputs[1]});
}

}  // namespace

void add_recognise_dilation(Rules& rules) {
  const auto space = is<SpaceToBatch>(any());
  const auto links = chain(node("operator", is_between, {}), space);
  rules.push_back(rule("recognise-dilation",
                       "A convolution between SpaceToBatch and BatchToSpace is a convolution with dilations",
                       RuleSet::portable, is<BatchToSpace>(links))
                      .when([=](const Match& m) { return blocks_of(m, links, space); })
                      .make([](Rewrite& r, const Blocks& b) { r.replace(make_dilated(r, b)); }));
}

}  // namespace lamina
