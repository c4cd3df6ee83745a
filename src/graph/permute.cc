#include "graph/permute.h"

#include <algorithm>

namespace lamina {

PermuteContext::PermuteContext(const InferContext& node, Ints order) : node_(node), order_(std::move(order)) {
  made_.op = node.node().op;
  made_.inputs.resize(node.node().inputs.size());
  made_.inputs.at(0).kind = PermutedInput::Kind::permuted;
  made_.outputs.assign(node.outputs(), order_);
}

std::int64_t PermuteContext::axis(std::int64_t axis, std::string_view what) const {
  return order_[normalize_axis(axis, rank(), what)];
}

Ints PermuteContext::axes(const Ints& axes) const {
  Ints out;
  for (auto a : axes) out.push_back(axis(a));
  return out;
}

Ints PermuteContext::per_axis(const Ints& list) const {
  LAMINA_CHECK(list.size() == rank(), "{} numbers for {} axes", list.size(), rank());
  Ints out(list.size());
  for (std::size_t k = 0; k < list.size(); ++k) out[static_cast<std::size_t>(order_[k])] = list[k];
  return out;
}

Verdict PermuteContext::follow_as(std::size_t input, const Shape& shape) {
  if (!shape.ranked() || shape.rank() > rank())
    return Verdict::no("its input {} has the shape {}, wanted a rank of at most {}", input, to_string(shape),
                       rank());
  made_.inputs.at(input) = {PermutedInput::Kind::permuted, shape, {}};
  return Verdict::yes();
}

void PermuteContext::replace(std::size_t input, Tensor value) {
  if (made_.inputs.size() <= input) made_.inputs.resize(input + 1);
  made_.inputs[input] = {PermutedInput::Kind::replaced, {}, std::move(value)};
}

void PermuteContext::replace(std::size_t input, const Ints& list) {
  replace(input, Tensor::of({static_cast<std::int64_t>(list.size())}, list));
}

Verdict PermuteContext::move_axes_input(std::size_t input) {
  const auto given = node_.ints(input);
  if (!given) return not_known("axes");
  replace(input, axes(*given));
  return Verdict::yes();
}

void PermuteContext::drop_axes(const std::vector<bool>& dropped) {
  Ints stay;
  for (std::size_t k = 0; k < rank(); ++k)
    if (!dropped.at(k)) stay.push_back(order_[k]);
  Ints sorted = stay;
  std::sort(sorted.begin(), sorted.end());
  for (auto& axis : stay) axis = std::lower_bound(sorted.begin(), sorted.end(), axis) - sorted.begin();
  made_.outputs.assign(made_.outputs.size(), stay);
}

Verdict permute_elementwise(PermuteContext& c) {
  if (c.node().node().op.has(Trait::unary_elementwise)) return Verdict::yes();
  for (std::size_t i = 0; i < c.node().inputs(); ++i)
    if (c.node().has(i))
      if (auto v = c.follow(i); !v) return v;
  return Verdict::yes();
}

PermutedNode permuted(const Graph& graph, const Node& node, const Ints& order) {
  PermutedNode out;
  const InferContext types(graph, node);
  const auto& x = types.has(0) ? types.shape(0) : Shape();
  if (!x.ranked() || x.rank() != order.size() || !node.bodies.empty()) {
    out.verdict = node.bodies.empty() ? Verdict::no("the rank of what {} reads is not known", node.op.name())
                                      : Verdict::no("{} has an epilogue", node.op.name());
    return out;
  }
  PermuteContext context(types, order);
  try {
    out.verdict = node.op->permute(context);
  } catch (const Error& e) {  // such as an axis that nobody looks at as long as sizes are not known
    out.verdict = Verdict::no("{}", e.what());
  }
  if (out.verdict) out.made = std::move(context.result());
  return out;
}

}  // namespace lamina
