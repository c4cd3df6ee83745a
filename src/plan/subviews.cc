#include "plan/subviews.h"

#include <algorithm>

#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina {
namespace {

/// How the parts of a tensor along an axis lie in memory.
struct Geometry {
  bool dense = false;      ///< each part is one piece
  bool wide = false;       ///< each part is a range of every pixel's channels
  std::int64_t inner = 1;  ///< elements per index of the axis, in one piece or one pixel
};

Geometry geometry(const Dims& dims, std::size_t axis, Layout layout) {
  Geometry g;
  if (packing_of(layout)) return g;
  std::int64_t outer = 1;
  bool before = true;
  for (const auto i : info_of(layout).order(dims.size())) {
    if (i == axis)
      before = false;
    else
      (before ? outer : g.inner) *= dims[i];
  }
  g.dense = outer == 1;
  g.wide = !g.dense && layout == Layout::channels_last && dims.size() >= 3 && axis == 1;
  return g;
}

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<Picked>& picked) : graph_(graph), picked_(picked) {
    for (const auto& p : picked) offers_[p.node] = &p.offer;
  }

  Subviews run() {
    for (auto it = picked_.rbegin(); it != picked_.rend(); ++it)
      if (const auto* c = graph_.node(it->node).op.as<Concat>(); c && it->offer.skips_in_place)
        concat(*it, c->axis);
    for (const auto& p : picked_) {
      const auto& op = graph_.node(p.node).op;
      if ((op.is<Split>() || op.is<VariadicSplit>()) && !p.offer.last_resort) split(p);
    }
    return std::move(subviews_);
  }

 private:
  Dims dims(ValueId v) const { return graph_.type(v).shape.sizes(); }
  /// Most lists are of all inputs or outputs, in order.
  static bool has(const std::vector<std::size_t>& list, std::size_t i) {
    if (i < list.size() && list[i] == i) return true;
    return std::find(list.begin(), list.end(), i) != list.end();
  }
  std::int64_t row_of(ValueId v) const {
    const auto it = subviews_.of.find(v);
    return it == subviews_.of.end() ? 0 : it->second.row;
  }

  /// True if every reader takes the value in this layout; `wide`: as rows of a wider tensor.
  bool readers_take(ValueId v, Layout layout, bool wide) const {
    for (const auto& use : graph_.value(v).uses) {
      const auto it = offers_.find(use.node);
      if (it == offers_.end()) {
        if (wide) return false;
        continue;
      }
      const auto& offer = *it->second;
      if (!wide) continue;
      if (offer.is_view || offer.inputs[use.input] != layout || !has(offer.wide_inputs, use.input))
        return false;
    }
    return true;
  }

  void concat(const Picked& p, std::int64_t axis_given) {
    const auto& node = graph_.node(p.node);
    const auto y = node.outputs[0];
    const auto layout = p.offer.outputs[0];
    const auto shape = dims(y);
    const auto axis = normalize_axis(axis_given, shape.size(), "axis");
    const auto g = geometry(shape, axis, layout);
    const auto outer_row = row_of(y);
    if (!g.wide && (!g.dense || outer_row != 0)) return;
    const auto row = g.wide ? (outer_row != 0 ? outer_row : shape[1]) : 0;
    std::map<ValueId, int> times;
    for (const auto v : node.inputs) ++times[v];
    std::vector<bool> in_place(node.inputs.size(), false);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto v = node.inputs[i];
      in_place[i] = part_fits(v, layout, row != 0) && p.offer.inputs[i] == layout && times[v] == 1;
      if (in_place[i]) add(v, {y, first, row});
      first += dims(v)[axis] * g.inner;
    }
    if (std::find(in_place.begin(), in_place.end(), true) != in_place.end())
      subviews_.in_place[p.node] = in_place;
  }

  /// The value's producer can write it in that place.
  bool part_fits(ValueId v, Layout layout, bool wide) const {
    const auto producer = graph_.producer(v);
    const auto it = producer.valid() ? offers_.find(producer) : offers_.end();
    if (it == offers_.end() || subviews_.of.contains(v) || graph_.is_result(v)) return false;
    const auto& offer = *it->second;
    const std::size_t output = graph_.value(v).output;
    if (offer.is_view || offer.outputs[output] != layout) return false;
    if (wide && !has(offer.wide_outputs, output)) return false;
    return readers_take(v, layout, wide);
  }

  void split(const Picked& p) {
    const auto& node = graph_.node(p.node);
    const auto x = node.inputs[0];
    const auto* axis_value = graph_.constant(node.inputs[1]);
    const auto producer = graph_.producer(x);
    const auto it = producer.valid() ? offers_.find(producer) : offers_.end();
    if (!axis_value || it == offers_.end() || it->second->is_view || graph_.is_result(x)) return;
    const auto layout = p.offer.inputs[0];
    if (it->second->outputs[graph_.value(x).output] != layout) return;
    const auto shape = dims(x);
    const auto axis = normalize_axis(to_ints(*axis_value).at(0), shape.size(), "axis");
    const auto g = geometry(shape, axis, layout);
    const auto outer_row = row_of(x);
    if (!g.wide && (!g.dense || outer_row != 0)) return;
    const auto row = g.wide ? (outer_row != 0 ? outer_row : shape[1]) : 0;
    for (const auto v : node.outputs)
      if (subviews_.of.contains(v) || graph_.is_result(v) || !readers_take(v, layout, row != 0)) return;
    std::int64_t first = 0;
    for (const auto v : node.outputs) {
      add(v, {x, first, row});
      first += dims(v)[axis] * g.inner;
    }
    subviews_.free.insert(p.node);
  }

  void add(ValueId v, const Subview& part) {
    subviews_.of[v] = part;
    subviews_.order.push_back(v);
  }

  const Graph& graph_;
  const std::vector<Picked>& picked_;
  std::map<NodeId, const Offer*> offers_;
  Subviews subviews_;
};

}  // namespace

Subviews find_subviews(const Graph& graph, const std::vector<Picked>& picked) {
  return Finder(graph, picked).run();
}

}  // namespace lamina
