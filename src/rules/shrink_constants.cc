/// A constant operand that repeats itself along an axis is kept once: what was one value per channel is one
/// again after it had been spread over a whole tensor.
#include <cstring>

#include "ops/activation.h"
#include "ops/quantization.h"
#include "rules/rules.h"
#include "rules/shrink_constants.h"

namespace lamina {
namespace {

/// Whether all slices along the axis hold the same bytes.
bool repeats(const Tensor& t, std::size_t axis) {
  const auto bytes = static_cast<std::size_t>(bits_of(t.element_type())) / 8;
  std::size_t inner = bytes, outer = 1;
  for (std::size_t i = axis + 1; i < t.rank(); ++i) inner *= static_cast<std::size_t>(t.shape()[i]);
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(t.shape()[i]);
  const auto rest = (static_cast<std::size_t>(t.shape()[axis]) - 1) * inner;
  for (std::size_t o = 0; o < outer; ++o) {
    const auto* slice = t.raw() + o * (inner + rest);
    if (std::memcmp(slice, slice + inner, rest) != 0) return false;
  }
  return true;
}

/// The first slice along the axis.
Tensor first_slice(const Tensor& t, std::size_t axis) {
  auto dims = t.shape();
  const auto size = static_cast<std::size_t>(dims[axis]);
  dims[axis] = 1;
  Tensor out(t.element_type(), dims);
  std::size_t inner = static_cast<std::size_t>(bits_of(t.element_type())) / 8;
  for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<std::size_t>(dims[i]);
  for (std::size_t to = 0, from = 0; to < out.bytes(); to += inner, from += inner * size)
    std::memcpy(out.raw() + to, t.raw() + from, inner);
  return out;
}

/// Another operand has that size there, so the result does not depend on this one's.
bool given_elsewhere(const Graph& g, const Node& n, std::size_t input, std::size_t from_last,
                     std::int64_t size) {
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (i == input || !n.inputs[i].valid()) continue;
    const auto& shape = g.type(n.inputs[i]).shape;
    if (shape.ranked() && from_last < shape.rank() && shape[shape.rank() - 1 - from_last].is(size))
      return true;
  }
  return false;
}

struct Repeated {
  std::size_t input = 0, axis = 0;
};

Found<Repeated> find(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  // What the parameters of these must broadcast to keeps its sizes.
  const std::size_t first = n.op.is<PRelu>() || n.op.is<FakeQuantize>() ? 1 : 0;
  for (std::size_t i = first; i < n.inputs.size(); ++i) {
    const auto* t = g.constant(n.inputs[i]);
    // One axis may be an axis of channels by an operator's own rule (PRelu); and nothing would be gained.
    if (!t || t->rank() < 2 || t->size() < 2 || bits_of(t->element_type()) < 8) continue;
    for (std::size_t axis = 0; axis < t->rank(); ++axis)
      if (t->shape()[axis] > 1 && given_elsewhere(g, n, i, t->rank() - 1 - axis, t->shape()[axis]) &&
          repeats(*t, axis))
        return Repeated{i, axis};
  }
  return std::nullopt;
}

}  // namespace

Tensor without_repeats(Tensor t) {
  for (std::size_t axis = 0; axis < t.rank() && t.size() > 0; ++axis)
    if (t.shape()[axis] > 1 && repeats(t, axis)) t = first_slice(t, axis);
  return t;
}

void add_shrink_constants(Rules& rules) {
  rules.push_back(
      rule("shrink-constants", "Stores once the values that a constant operand repeats along an axis",
           RuleSet::portable,
           with_trait(Trait::binary_elementwise | Trait::nary_elementwise, "element-wise operator", {}))
          .when(find)
          .make([](Rewrite& r, const Repeated& found) {
            const Node& n = r.match().root_node();
            const auto old = n.inputs[found.input];
            auto inputs = n.inputs;
            inputs[found.input] =
                r.constant(first_slice(*r.graph().constant(old), found.axis), r.graph().value(old).name);
            r.replace(r.add(Op(n.op), std::move(inputs)));
          })
          .in_later_sets_too());
}

}  // namespace lamina
