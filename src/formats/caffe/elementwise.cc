/// Sums, products and maxima of several bottoms; scales and shifts along axes.
#include "ops/elementwise.h"

#include "formats/caffe/call.h"
#include "ops/movement.h"
#include "ops/normalization.h"
#include "ops/shaping.h"

namespace lamina::caffe {
namespace {

/// Joins all bottoms, from the first on.
template <class O>
ValueId joined(const Call& c) {
  auto y = c.in(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) y = c.add(O{}, {y, c.in(i)});
  return y;
}

/// The sum of bottoms, each times its coefficient.
ValueId weighted_sum(const Call& c, const Floats& coefficients) {
  ValueId sum;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const auto k = coefficients[i];
    if (sum.valid() && k == -1) {
      sum = c.add(Subtract{}, {sum, c.in(i)});
      continue;
    }
    const auto term = k == 1 ? c.in(i) : c.add(Multiply{}, {c.in(i), c.number(k)});
    sum = sum.valid() ? c.add(Add{}, {sum, term}) : term;
  }
  return sum;
}

Values convert_eltwise(const Call& c) {
  const auto p = c.params("eltwise_param");
  c.in(1);
  const auto operation = p.choice("operation", {"PROD", "SUM", "MAX", "MIN"}, 1);
  const auto coefficients = p.numbers("coeff");
  if (!coefficients.empty() && coefficients.size() != c.inputs())
    c.fail("{} coeff for {} bottoms, wanted as many", coefficients.size(), c.inputs());
  if (!coefficients.empty() && operation != 1) c.fail("coeff is for sums only");
  if (operation == 0) return {joined<Multiply>(c)};
  if (operation == 2) return {joined<Maximum>(c)};
  if (operation == 3) return {joined<Minimum>(c)};
  return {coefficients.empty() ? joined<Add>(c) : weighted_sum(c, coefficients)};
}

/// The axes that a Scale or Bias goes along: `axis`, and how many from there on.
struct Along {
  std::size_t axis = 0, axes = 0;
};

Along along(const Call& c, const Params& p) {
  const auto rank = c.known_rank(c.in(0));
  Along a{c.axis(p.integer("axis", 1), c.in(0))};
  const auto axes = p.integer("num_axes", 1);
  if (axes < -1) c.fail("num_axes is {}, wanted -1 or more", axes);
  a.axes = axes == -1 ? rank - a.axis : static_cast<std::size_t>(axes);
  if (a.axis + a.axes > rank)
    c.fail("axis {} and num_axes {} for a bottom of shape {}", a.axis, axes, to_string(c.shape(c.in(0))));
  return a;
}

/// A blob with the sizes of these axes of the bottom; one axis takes what the blob has.
ValueId operand(const Call& c, std::size_t blob, const Along& a) {
  if (a.axes == 1) return c.constant(c.vector(blob));
  Dims dims;
  for (std::size_t i = 0; i < a.axes; ++i) dims.push_back(c.size(c.in(0), a.axis + i));
  return c.constant(c.tensor(blob, dims));
}

/// x * scale + shift, each a blob or the second bottom.
Values convert_scale(const Call& c) {
  const auto p = c.params("scale_param");
  const bool has_shift = p.flag("bias_term", false);
  if (c.inputs() > 1) {
    const auto at = static_cast<std::int64_t>(c.axis(p.integer("axis", 1), c.in(0)));
    Values inputs{c.in(0), c.in(1)};
    if (has_shift) {
      const auto& like = c.shape(c.in(1));
      inputs.push_back(like.known() ? c.constant(c.tensor(0, like.sizes())) : c.constant(c.vector(0)));
    }
    return {c.add(ScaleShift{at}, inputs)};
  }
  if (c.blobs() == 0) {  // what Caffe begins its training with
    c.warn("no weights, taken as 1 and 0");
    return {c.add(Identity{}, {c.in(0)})};
  }
  const auto a = along(c, p);
  Values inputs{c.in(0), operand(c, 0, a)};
  if (has_shift) inputs.push_back(operand(c, 1, a));
  return {c.add(ScaleShift{static_cast<std::int64_t>(a.axis)}, inputs)};
}

/// An operand that numpy would align at the right, aligned at an axis: ones behind it.
ValueId aligned(const Call& c, ValueId operand, std::size_t axis, std::size_t rank) {
  const auto own = c.known_rank(operand);
  if (own == 0) return operand;
  if (axis + own > rank)
    c.fail("the second operand has shape {}, wanted that of the axes from {} on", to_string(c.shape(operand)),
           axis);
  const auto behind = rank - axis - own;
  if (behind == 0) return operand;
  if (const auto* t = c.graph().constant(operand)) {
    auto dims = t->shape();
    dims.resize(dims.size() + behind, 1);
    return c.constant(t->reshaped(dims));
  }
  Ints axes;
  for (std::size_t i = 0; i < behind; ++i) axes.push_back(static_cast<std::int64_t>(own + i));
  return c.add(Unsqueeze{}, {operand, c.ints_constant(axes)});
}

/// x + shift, a blob or the second bottom.
Values convert_bias(const Call& c) {
  const auto p = c.params("bias_param");
  const auto rank = c.known_rank(c.in(0));
  const auto at = c.axis(p.integer("axis", 1), c.in(0));
  const auto shift = c.inputs() > 1 ? c.in(1) : operand(c, 0, along(c, p));
  return {c.add(Add{}, {c.in(0), aligned(c, shift, at, rank)})};
}

/// a * x + y, with a number of a for each channel: [N, C] or [N, C, 1, 1].
Values convert_axpy(const Call& c) {
  const auto a = aligned(c, c.in(0), 0, c.known_rank(c.in(1)));
  return {c.add(Add{}, {c.add(Multiply{}, {c.in(1), a}), c.in(2)})};
}

}  // namespace

void register_elementwise(ConverterTable& t) {
  t.add("Axpy", convert_axpy);
  t.add("Bias", convert_bias);
  t.add("Eltwise", convert_eltwise);
  t.add("Scale", convert_scale);
}

}  // namespace lamina::caffe
