/// Quantisation, and types of elements.
#include "ops/quantization.h"

#include <algorithm>
#include <cmath>

#include "formats/onednn_graph/call.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace lamina::onednn_graph {
namespace {

enum class Granularity : std::uint8_t { per_tensor, per_channel, per_group };

Granularity granularity_of(const Call& c) {
  return static_cast<Granularity>(
      c.choice("qtype", "per_tensor", {"per_tensor", "per_channel", "per_group"}));
}

/// Attributes `scales` and `zps`, checked.
struct Parameters {
  Floats scales;
  Ints zero_points;  ///< empty when all are 0
  std::int64_t axis = 0;
  bool grouped = false;  ///< one for each output channel of a transposed convolution, group by group
};

Parameters parameters_of(const Call& c) {
  Parameters p{c.floats("scales"), {}};
  const auto granularity = granularity_of(c);
  if (granularity == Granularity::per_group)
    c.fail("attribute \"qtype\" is per_group, wanted per_tensor or per_channel");
  auto wanted = Dim(1);
  if (granularity == Granularity::per_channel) {
    p.axis = c.axis("axis", 1, c.in(0));
    wanted = c.shape(c.in(0))[static_cast<std::size_t>(p.axis)];
  }
  const auto count = std::ssize(p.scales);
  const auto groups = c.weights().groups;
  if (groups > 1 && count % groups == 0 && wanted.is(count / groups) && !wanted.is(count)) {
    p.grouped = true;
    wanted = Dim(count);
  }
  if (count == 0 || (!wanted.fits(count) && count != 1))
    c.fail("attribute \"scales\" has {} numbers, wanted {}", count, to_string(wanted));
  for (std::size_t i = 0; i < p.scales.size(); ++i)
    if (!std::isfinite(p.scales[i]) || p.scales[i] == 0)
      c.fail("attribute \"scales\": number {} is {}, wanted a finite one other than 0", i, p.scales[i]);
  if (!c.has("zps")) return p;
  p.zero_points = c.ints("zps");
  if (!p.zero_points.empty() && p.zero_points.size() != p.scales.size())
    c.fail("attribute \"zps\" has {} numbers, wanted {}, one for each scale", p.zero_points.size(), count);
  for (const auto zero : p.zero_points)
    if (zero < INT32_MIN || zero > INT32_MAX) c.fail("attribute \"zps\" has {}, wanted one of 32 bits", zero);
  if (std::all_of(p.zero_points.begin(), p.zero_points.end(), [](auto z) { return z == 0; }))
    p.zero_points.clear();
  return p;
}

/// One number is a scalar.
Dims dims_of(std::size_t count) { return count == 1 ? Dims{} : Dims{static_cast<std::int64_t>(count)}; }

ValueId scales_of(const Call& c, const Parameters& p) {
  return c.constant(from_doubles(ElementType::f32, dims_of(p.scales.size()), p.scales));
}

ValueId zero_points_of(const Call& c, const Parameters& p, ElementType type) {
  return c.constant(
      from_doubles(type, dims_of(p.zero_points.size()), Floats(p.zero_points.begin(), p.zero_points.end())));
}

std::pair<std::int64_t, std::int64_t> range_of(ElementType type) {
  const auto bits = bits_of(type) - (is_signed(type) ? 1 : 0);
  const auto most = (std::int64_t{1} << bits) - 1;
  return {is_signed(type) ? -most - 1 : 0, most};
}

/// The type itself where it holds the zero points, else i32.
ElementType holding(const Ints& zero_points, ElementType type) {
  const auto [least, most] = range_of(type);
  const bool fits = std::all_of(zero_points.begin(), zero_points.end(),
                                [=, least = least, most = most](auto z) { return least <= z && z <= most; });
  return fits ? type : ElementType::i32;
}

ElementType integers(const Call& c, ElementType type, std::string_view what) {
  if (!is_integer(type) || bits_of(type) > 32) c.fail("the {} is {}, wanted integers", what, name_of(type));
  return type;
}

/// What was quantised to i32, for zero points that the type does not hold, in that type.
ValueId saturated(const Call& c, ValueId y, ElementType type) {
  if (c.element(y) == type) return y;
  const auto [least, most] = range_of(type);
  return c.convert(c.add(Clamp{static_cast<double>(least), static_cast<double>(most)}, {y}), type);
}

/// round(x / scale) + zero point; oneDNN says round(x / scale + zero point), which is another number at ties
/// with odd zero points only (docs/onednn-graph.md).
Values convert_quantize(const Call& c) {
  const auto p = parameters_of(c);
  const auto type = integers(c, c.out().element, "output");
  if (p.grouped) c.unsupported("scales for each output channel of grouped weights");
  Quantize op;
  op.axis = p.axis;
  op.destination_type = holding(p.zero_points, type);
  Values inputs{c.in(0), scales_of(c, p)};
  if (!p.zero_points.empty()) inputs.push_back(zero_points_of(c, p, op.destination_type));
  return {saturated(c, c.add(op, std::move(inputs)), type)};
}

/// Each group of input channels has output channels of its own, and so scales and zero points.
ValueId dequantize_groups(const Call& c, const Parameters& p) {
  constexpr std::int64_t kMostElements = 1 << 24;
  const auto& shape = c.shape(c.in(0));
  const auto groups = c.weights().groups, outputs = std::ssize(p.scales) / groups;
  const auto axis = static_cast<std::size_t>(p.axis),
             inputs_axis = c.weights().inputs_last ? shape.rank() - 1 : 0;
  if (inputs_axis == axis || !shape[inputs_axis].known() || shape[inputs_axis].size() % groups != 0)
    c.fail("the weights have shape {}, wanted input channels in {} groups", to_string(shape), groups);
  const auto inputs = shape[inputs_axis].size();
  if (inputs > kMostElements / outputs)
    c.unsupported("scales for more than {} pairs of channels", kMostElements);
  Dims dims(shape.rank(), 1);
  dims[inputs_axis] = inputs;
  dims[axis] = outputs;
  const auto spread = [&](const auto& values) {
    Floats out;
    for (std::int64_t n = 0; n < inputs * outputs; ++n) {
      const auto input = c.weights().inputs_last ? n % inputs : n / outputs,
                 output = c.weights().inputs_last ? n / inputs : n % outputs;
      out.push_back(static_cast<double>(
          values[static_cast<std::size_t>(input / (inputs / groups) * outputs + output)]));
    }
    return c.constant(from_doubles(ElementType::f32, dims, out));
  };
  auto x = c.convert(c.in(0), ElementType::f32);
  if (!p.zero_points.empty()) x = c.add(Subtract{}, {x, spread(p.zero_points)});
  return c.add(Multiply{}, {x, spread(p.scales)});
}

Values convert_dequantize(const Call& c) {
  const auto p = parameters_of(c);
  const auto type = integers(c, c.known_element(c.in(0)), "input");
  if (p.grouped) return {dequantize_groups(c, p)};
  const auto zeros = holding(p.zero_points, type);
  Dequantize op;
  op.axis = p.axis;
  Values inputs{c.convert(c.in(0), zeros), scales_of(c, p)};
  if (!p.zero_points.empty()) inputs.push_back(zero_points_of(c, p, zeros));
  return {c.add(op, std::move(inputs))};
}

/// Scales and zero points are inputs: one element, a vector along `axis`, or of the rank of the tensor, with
/// an element for each group.
struct Groups {
  std::int64_t axis = 0, block_size = 0;
};

Groups granularity_groups(const Call& c) {
  const auto x = c.in(0);
  const auto granularity = granularity_of(c);
  if (granularity == Granularity::per_tensor) return {};
  if (granularity == Granularity::per_channel) return {c.axis("axis", 1, x), 0};
  const auto sizes = c.ints("group_shape");
  if (sizes.size() != c.known_rank(x))
    c.fail("attribute \"group_shape\" has {} numbers, wanted {}", sizes.size(), c.known_rank(x));
  Groups out{c.axis("axis", 1, x), 1};
  bool any = false;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    if (sizes[a] < 1) c.fail("attribute \"group_shape\" has {}, wanted 1 or more", sizes[a]);
    if (sizes[a] == 1) continue;
    if (any) c.unsupported("groups along more than one axis");
    any = true;
    out = {static_cast<std::int64_t>(a), sizes[a]};
    const auto& size = c.shape(x)[a];
    if (size.known() && size.size() % sizes[a] != 0)
      c.fail("attribute \"group_shape\" has {} for an axis of {}, wanted a divisor", sizes[a], size.size());
  }
  return out;
}

/// One element as a scalar, vectors and tensors as they are.
ValueId parameter(const Call& c, std::size_t i, const Groups& g) {
  const auto v = c.in(i);
  const bool single = g.block_size == 0 && c.shape(v).ranked() && c.shape(v).count().is(1);
  return single ? c.to_scalar(v) : v;
}

Values convert_dynamic_quantize(const Call& c) {
  const auto g = granularity_groups(c);
  const auto type = integers(c, c.out().element, "output");
  Quantize op;
  op.axis = g.axis;
  op.block_size = g.block_size;
  Values inputs{c.in(0), parameter(c, 1, g)};
  op.destination_type = type;
  if (c.has(2)) {
    const auto zero = parameter(c, 2, g);
    if (c.known_element(zero) != type) op.destination_type = ElementType::i32;
    inputs.push_back(c.convert(zero, op.destination_type));
  }
  return {saturated(c, c.add(op, std::move(inputs)), type)};
}

Values convert_dynamic_dequantize(const Call& c) {
  const auto g = granularity_groups(c);
  const auto type = integers(c, c.known_element(c.in(0)), "input");
  Dequantize op;
  op.axis = g.axis;
  op.block_size = g.block_size;
  if (!c.has(2)) return {c.add(op, {c.in(0), parameter(c, 1, g)})};
  const auto zero = parameter(c, 2, g);
  const auto common = c.known_element(zero) == type ? type : ElementType::i32;
  return {c.add(op, {c.convert(c.in(0), common), parameter(c, 1, g), c.convert(zero, common)})};
}

/// The importer rounds the result.
Values convert_type_cast(const Call& c) {
  if (!is_float(c.known_element(c.in(0))) || !is_float(c.out().element))
    c.fail("from {} to {}, wanted floating-point types", c.op().inputs[0].dtype, c.out().dtype);
  return {c.add(Identity{}, {c.in(0)})};
}

}  // namespace

void register_quantization(ConverterTable& t) {
  t.add("Dequantize", convert_dequantize);
  t.add("DynamicDequantize", convert_dynamic_dequantize);
  t.add("DynamicQuantize", convert_dynamic_quantize);
  t.add("Quantize", convert_quantize);
  t.add("TypeCast", convert_type_cast);
}

}  // namespace lamina::onednn_graph
