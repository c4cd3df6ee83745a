#include "rules/parts.h"

#include <algorithm>

#include "ops/movement.h"
#include "ops/slicing.h"

namespace lamina {
namespace {

bool is_set(const Ints& mask, std::size_t i) { return i < mask.size() && mask[i] != 0; }

/// What a slice takes of one axis.
struct Range {
  std::size_t axis;
  std::int64_t start, stop;
};

/// The one range that is not all of its axis.
std::optional<PartOfTensor> part_by(const Graph& g, NodeId cut, const std::vector<Range>& ranges) {
  const auto whole = g.node(cut).inputs[0];
  const auto& shape = g.type(whole).shape;
  std::optional<PartOfTensor> found;
  for (const auto& r : ranges) {
    const Dim& size = shape[r.axis];
    if (!size.known()) {
      if (r.start != 0 || r.stop < INT32_MAX) return std::nullopt;
      continue;
    }
    const auto taken = slice_range(size.size(), r.start, r.stop, 1);
    if (taken.count == size.size()) continue;
    if (found) return std::nullopt;
    found = PartOfTensor{whole, cut, r.axis, taken.first, taken.count};
  }
  return found;
}

bool all_ones(const Ints& steps) {
  return std::all_of(steps.begin(), steps.end(), [](auto s) { return s == 1; });
}

std::optional<PartOfTensor> part_by_slice(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const auto rank = g.type(n.inputs[0]).shape.rank();
  const auto start = constant_ints(g, n, 1), stop = constant_ints(g, n, 2), step = constant_ints(g, n, 3);
  const auto axes = has_input(n, 4) ? constant_ints(g, n, 4) : Ints();
  if (!start || !stop || !step || !axes || !all_ones(*step)) return std::nullopt;
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < start->size(); ++i)
    ranges.push_back(
        {i < axes->size() ? normalize_axis((*axes)[i], rank, "axis") : i, (*start)[i], stop->at(i)});
  return part_by(g, id, ranges);
}

std::optional<PartOfTensor> part_by_strided_slice(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const auto& op = *n.op.as<StridedSlice>();
  const auto rank = g.type(n.inputs[0]).shape.rank();
  const auto begin = constant_ints(g, n, 1), end = constant_ints(g, n, 2);
  const auto step = has_input(n, 3) ? constant_ints(g, n, 3) : Ints();
  if (!begin || !end || !step || !all_ones(*step)) return std::nullopt;
  std::vector<Range> ranges;
  std::size_t axis = 0;
  for (std::size_t i = 0; i < begin->size(); ++i) {
    if (is_set(op.new_axis_mask, i) || is_set(op.shrink_axis_mask, i)) return std::nullopt;
    if (is_set(op.ellipsis_mask, i)) {
      axis = rank - (begin->size() - i - 1);
      continue;
    }
    if (axis >= rank) return std::nullopt;
    ranges.push_back({axis++, is_set(op.begin_mask, i) ? 0 : (*begin)[i],
                      is_set(op.end_mask, i) ? INT64_MAX : end->at(i)});
  }
  return part_by(g, id, ranges);
}

std::optional<PartOfTensor> part_by_split(const Graph& g, NodeId id, ValueId value) {
  const Node& n = g.node(id);
  const auto axes = constant_ints(g, n, 1);
  if (!axes || axes->size() != 1) return std::nullopt;
  PartOfTensor part{n.inputs[0], id, normalize_axis((*axes)[0], g.type(n.inputs[0]).shape.rank(), "axis")};
  for (auto v : n.outputs) {
    const auto& shape = g.type(v).shape;
    if (!shape.ranked() || !shape[part.axis].known()) return std::nullopt;
    part.size = shape[part.axis].size();
    if (v == value) return part;
    part.begin += part.size;
  }
  return std::nullopt;
}

}  // namespace

std::optional<PartOfTensor> part_of_tensor(const Graph& g, ValueId value) {
  const auto id = g.producer(value);
  if (!id.valid()) return std::nullopt;
  const Node& n = g.node(id);
  const bool splits = n.op.is<Split>() || n.op.is<VariadicSplit>();
  if (!splits && !n.op.is<Slice>() && !n.op.is<StridedSlice>()) return std::nullopt;
  if (!g.type(n.inputs[0]).shape.ranked()) return std::nullopt;
  if (splits) return part_by_split(g, id, value);
  return n.op.is<Slice>() ? part_by_slice(g, id) : part_by_strided_slice(g, id);
}

}  // namespace lamina
