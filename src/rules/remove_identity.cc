/// Nodes that change nothing: neither a value, nor the type, nor the shape.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "rules/certain_shapes.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

bool all_equal(const std::optional<Ints>& values, std::int64_t wanted) {
  return values && std::all_of(values->begin(), values->end(), [&](auto v) { return v == wanted; });
}

/// What an arithmetic operator leaves as it is when its other operand is this number; slot of the operand
/// that stays.
struct Neutral {
  std::size_t stays;
  double number;
};
std::vector<Neutral> neutral_of(const Node& n) {
  if (n.op.is<Add>()) return {{0, 0}, {1, 0}};
  if (n.op.is<Multiply>()) return {{0, 1}, {1, 1}};
  if (n.op.is<Subtract>()) return {{0, 0}};
  if (n.op.is<Divide>() || n.op.is<Power>()) return {{0, 1}};
  return {};
}

/// Slot of the operand that arithmetic leaves as it is.
std::optional<std::size_t> neutral_arithmetic(const Graph& g, const Node& n) {
  for (const auto& neutral : neutral_of(n)) {
    const auto other = n.inputs[1 - neutral.stays];
    if (g.constant(n.inputs[neutral.stays])) continue;
    if (const auto v = uniform_value(g, other); v && *v == neutral.number) return neutral.stays;
  }
  return std::nullopt;
}

/// x + 0 and x - (-0) make +0 of -0; x + (-0) and x - 0 do not.
bool loses_sign_of_zero(const Graph& g, const Node& n, std::size_t kept) {
  if (!is_float(g.type(n.inputs[kept]).element)) return false;
  const auto zero = uniform_value(g, n.inputs[1 - kept]);
  return (n.op.is<Add>() && !std::signbit(*zero)) || (n.op.is<Subtract>() && std::signbit(*zero));
}

/// What the node computes is the same number for -0 and +0.
bool forgets_sign_of_zero(const Graph& g, const Node& n, std::size_t input) {
  if (n.op.has(Trait::products | Trait::one_zero)) return true;  // sums begin with +0
  if (n.op.is<Power>() && input == 1) return true;
  return !n.outputs.empty() && !is_float(g.type(n.outputs[0]).element);
}

/// The node tells -0 from +0 by more than the sign of its own 0, or may.
bool tells_zeros_apart(const Graph& g, const Node& n, std::size_t input) {
  if (n.op.is<Divide>()) return input == 1;
  if (n.op.is<Power>()) {
    const auto exponent = uniform_value(g, n.inputs[1]);
    return input == 0 && !(exponent && *exponent >= 0);
  }
  return n.op.has(Trait::control_flow | Trait::impure) || !n.bodies.empty();
}

}  // namespace

bool sign_of_zero_matters(const Graph& g, ValueId value) {
  constexpr std::size_t kMost = 256;
  std::unordered_set<std::uint32_t> seen{value.index};
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const auto v = open.back();
    open.pop_back();
    for (const auto& use : g.value(v).uses) {
      const Node& n = g.node(use.node);
      if (forgets_sign_of_zero(g, n, use.input)) continue;
      if (tells_zeros_apart(g, n, use.input) || seen.size() > kMost) return true;
      for (auto out : n.outputs)
        if (seen.insert(out.index).second) open.push_back(out);
    }
  }
  return false;
}

namespace {

/// Sizes and positions that the node reads beside its data are constants or follow from shapes, so that what
/// computes them cannot fail. Without elements the result is the same whatever they are; what fails must fail
/// yet.
bool others_are_certain(const Graph& g, const Node& n) {
  const auto& in = g.type(n.inputs[0]).shape;
  if (!in.ranked() || std::none_of(in.dims().begin(), in.dims().end(), [](const Dim& d) { return d.is(0); }))
    return true;
  return std::all_of(n.inputs.begin() + 1, n.inputs.end(), [&](ValueId v) {
    return !v.valid() || g.constant(v) != nullptr || dims_of_value(g, v).has_value();
  });
}

/// A Reshape to a size that is given fails where the input has another one, which inference does not see
/// where the size is computed; -1 is what the input has.
bool reshape_keeps_shape(const Graph& g, const Node& n) {
  const auto& in = g.type(n.inputs[0]).shape;
  const auto& out = g.type(n.outputs[0]).shape;
  if (!n.op.is<Reshape>()) return in.same(out);
  if (in.same(out)) return is_certain_to_fit(g, n);
  const auto pattern = dims_of_value(g, n.inputs[1]);
  if (!pattern || !same_shape_of_same_count(in, out) || pattern->size() != in.rank()) return false;
  for (std::size_t i = 0; i < in.rank(); ++i)
    if (!(*pattern)[i].is(-1) && !in[i].same((*pattern)[i])) return false;
  return true;
}

/// A slope for more or fewer channels than there are is an error.
bool slope_fits(const Graph& g, const Node& n) {
  const auto& x = g.type(n.inputs[0]).shape;
  return bool(does_not_grow("", prelu_slope_shape(x, g.type(n.inputs[1]).shape), x));
}

bool keeps_every_element(const Graph& g, const Node& n) {
  const auto& in = g.type(n.inputs[0]).shape;
  const auto& out = g.type(n.outputs[0]).shape;
  if (n.op.is<Identity>()) return true;
  if (const auto* convert = n.op.as<Convert>())
    return g.type(n.inputs[0]).element == convert->destination_type;
  if (n.op.is<ConvertLike>()) return g.type(n.inputs[0]).element == g.type(n.outputs[0]).element;
  if (n.op.has(Trait::keeps_values)) return reshape_keeps_shape(g, n);
  if (const auto* clamp = n.op.as<Clamp>()) return clamp->min == -INFINITY && clamp->max == INFINITY;
  // Orders, pads and axes that do not fit the rank are errors.
  if (!in.ranked() || !others_are_certain(g, n)) return false;
  if (n.op.is<Broadcast>()) return in.same(out) && broadcasts_within(g, n.inputs[1], n.inputs[0]);
  if (n.op.is<Tile>()) return in.same(out);
  if (n.op.is<Transpose>()) {
    const auto order = transpose_order(g, n);
    return order && std::is_sorted(order->begin(), order->end());
  }
  if (n.op.is<Pad>()) return all_equal(constant_ints(g, n, 1), 0) && all_equal(constant_ints(g, n, 2), 0);
  if (n.op.is<Slice>()) return all_equal(constant_ints(g, n, 3), 1) && in.same(out);
  if (n.op.is<StridedSlice>())
    return in.same(out) && (!has_input(n, 3) || all_equal(constant_ints(g, n, 3), 1)) &&
           all_equal(n.op.as<StridedSlice>()->new_axis_mask, 0) &&
           all_equal(n.op.as<StridedSlice>()->shrink_axis_mask, 0);
  if (n.op.is<PRelu>()) return uniform_value(g, n.inputs[1]) == 1.0 && slope_fits(g, n);
  if (n.op.is<Concat>()) return n.inputs.size() == 1;
  if (n.op.is<Split>()) return n.outputs.size() == 1;
  if (n.op.is<VariadicSplit>()) return n.outputs.size() == 1 && in.same(out);
  if (const auto* shuffle = n.op.as<ShuffleChannels>()) return shuffle->group == 1;
  return false;
}

/// A reduction over nothing, or over axes of size 1 that stay.
bool reduces_nothing(const Graph& g, const Node& n) {
  const bool kind = n.op.is<ReduceSum>() || n.op.is<ReduceMean>() || n.op.is<ReduceMax>() ||
                    n.op.is<ReduceMin>() || n.op.is<ReduceProd>();
  const auto axes = kind && n.bodies.empty() ? constant_ints(g, n, 1) : std::nullopt;
  const auto &in = g.type(n.inputs[0]).shape, &out = g.type(n.outputs[0]).shape;
  if (!axes || !in.ranked() || !out.ranked() || in.rank() != out.rank()) return false;
  return std::all_of(axes->begin(), axes->end(),
                     [&](std::int64_t axis) { return in[normalize_axis(axis, in.rank(), "axis")].is(1); });
}

std::optional<std::size_t> kept_input(const Graph& g, const Node& n) {
  if (n.op.has(Trait::binary_elementwise)) return neutral_arithmetic(g, n);
  if (!n.inputs[0].valid()) return std::nullopt;
  if (keeps_every_element(g, n) || (n.op.has(Trait::epilogue) && reduces_nothing(g, n))) return 0;
  return std::nullopt;
}

bool may_change_nothing(const Graph&, const Node& n) {
  return !n.inputs.empty() && n.outputs.size() == 1 && !n.op.has(Trait::control_flow | Trait::impure);
}

/// The value that the root's readers can read instead.
Found<ValueId> same_value(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto kept = kept_input(g, n);
  if (!kept) return std::nullopt;
  const auto from = n.inputs[*kept], to = n.outputs[0];
  if (n.op.has(Trait::binary_elementwise)) {
    const auto other = n.inputs[1 - *kept];
    if (auto v = does_not_grow(m.label(other), g.type(other).shape, g.type(from).shape); !v) return v;
    if (loses_sign_of_zero(g, n, *kept) && sign_of_zero_matters(g, to))
      return Verdict::no("it turns -0 into 0, and a later result depends on the sign of zero");
  }
  if (g.type(from).element != g.type(to).element)
    return Verdict::no("it gives {} of {}", name_of(g.type(to).element), name_of(g.type(from).element));
  if (auto v = output_stays_apart(m, to, from); !v) return v;
  return from;
}

}  // namespace

void add_remove_identity(Rules& rules) {
  rules.push_back(rule("remove-identity", "Removes operators that change neither values nor type nor shape",
                       RuleSet::normalize, node("operator without effect", may_change_nothing, {}))
                      .when(same_value)
                      .make([](Rewrite& r, ValueId same) {
                        r.note("changes nothing");
                        r.replace(same);
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
