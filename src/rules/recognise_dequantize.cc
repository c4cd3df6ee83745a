#include <algorithm>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "ops/walk.h"
#include "rules/quantised_products.h"
#include "rules/rules.h"
#include "rules/spelled_dequantize.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// A FakeQuantize has rounded the integers, which were perhaps moved or pooled since.
bool are_rounded(const Graph& g, ValueId integers) {
  constexpr std::size_t kMostMoves = 16;
  return search_up(g, integers, kMostMoves, [&](const Node& n, ValueId) -> std::optional<bool> {
    if (n.op.is<Quantize>() || n.op.is<FakeQuantize>()) return true;
    if (n.op.is<Convert>() || hands_on(g, n)) return std::nullopt;
    return false;
  });
}

struct Parameters {
  Tensor scale, zero_point;  ///< one number or one for each index of the axis; the second invalid: 0
  std::int64_t axis = 1;
};

/// The axes along which the operand has more than one number.
std::vector<std::size_t> axes_of(const Dims& operand, std::size_t rank) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < operand.size(); ++i)
    if (operand[i] != 1) out.push_back(i + rank - operand.size());
  return out;
}

Verdict find_axis(const Match& m, ValueId operand, const Shape& x, std::optional<std::size_t>& axis) {
  const auto& dims = m.graph().constant(operand)->shape();
  if (auto v = does_not_grow(m.label(operand), Shape::of(dims), x); !v) return v;
  const auto own = axes_of(dims, x.rank());
  if (own.empty()) return Verdict::yes();
  if (own.size() > 1 || (axis && *axis != own[0]))
    return Verdict::no("its scale and zero point differ along more than one axis");
  axis = own[0];
  return Verdict::yes();
}

Verdict are_levels(const std::vector<double>& zeros, ElementType type) {
  const auto [low, high] = integer_range<std::int64_t>(type);
  for (const double z : zeros)
    if (z != std::nearbyint(z) || z < static_cast<double>(low) || z > static_cast<double>(high))
      return Verdict::no("its zero point {} is no {}", z, name_of(type));
  return Verdict::yes();
}

Found<Parameters> parameters_of(const Match& m, const SpelledDequantize& found) {
  const Graph& g = m.graph();
  const auto& type = g.type(found.integers);
  if (!type.shape.ranked()) return Verdict::no("the rank of {} is not known", m.label(found.integers));
  std::optional<std::size_t> axis;
  if (auto v = find_axis(m, found.scale, type.shape, axis); !v) return v;
  auto scale = to_doubles(*g.constant(found.scale));
  std::vector<double> zeros(1);
  if (found.zero_point.valid()) {
    if (auto v = find_axis(m, found.zero_point, type.shape, axis); !v) return v;
    zeros = to_doubles(*g.constant(found.zero_point));
    if (auto v = are_levels(zeros, type.element); !v) return v;
  }
  const auto count = std::max(scale.size(), zeros.size());
  if (scale.empty() || zeros.empty()) return Verdict::no("it has no elements");
  scale.resize(count, scale[0]);
  zeros.resize(count, zeros[0]);
  const Dims dims = count == 1 ? Dims{} : Dims{static_cast<std::int64_t>(count)};
  Parameters out{from_doubles(ElementType::f32, dims, scale), {}, axis ? std::int64_t(*axis) : 1};
  if (std::any_of(zeros.begin(), zeros.end(), [](double z) { return z != 0; }))
    out.zero_point = from_doubles(type.element, dims, zeros);
  return out;
}

Found<Parameters> recognised(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto found = spelled_dequantize(g, n);
  if (!found || g.type(n.outputs[0]).element != ElementType::f32 || !g.constant(found->scale) ||
      (found->zero_point.valid() && !g.constant(found->zero_point)))
    return std::nullopt;
  if (!are_rounded(g, found->integers) && !feeds_quantised_product(g, n.outputs[0])) return std::nullopt;
  for (const auto id : {found->convert, found->subtract})
    if (id.valid() && m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
  return parameters_of(m, *found);
}

void make_dequantize(Rewrite& r, const Parameters& parameters) {
  const Graph& g = r.graph();
  const auto found = *spelled_dequantize(g, r.match().root_node());
  for (const auto id : {found.subtract, found.convert})
    if (id.valid() && g.readers(g.node(id).outputs[0]) == 1) r.absorb(id);
  std::vector<ValueId> inputs{found.integers, r.constant(parameters.scale, g.value(found.scale).name)};
  if (parameters.zero_point.valid())
    inputs.push_back(r.constant(parameters.zero_point, g.value(found.zero_point).name));
  r.replace(r.add(Dequantize{.axis = parameters.axis}, std::move(inputs)));
}

}  // namespace

void add_recognise_dequantize(Rules& rules) {
  rules.push_back(rule("recognise-dequantize",
                       "Turns Convert, Subtract and Multiply of rounded integers into a Dequantize",
                       RuleSet::normalize, is<Multiply>())
                      .when(recognised)
                      .make(make_dequantize));
}

}  // namespace lamina
