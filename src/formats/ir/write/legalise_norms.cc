// Normalisations and functions of elements that OpenVINO's sets have not, or not yet in IR 10.
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/ir/write/legalise.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

/// The axes from `first` on.
ValueId last_axes(Legalisation& c, std::int64_t first) {
  Ints axes;
  if (c.shape(c.in(0)).ranked()) {
    const auto rank = c.rank(c.in(0));
    axes.resize(rank - normalize_axis(first, rank, "axis"));
    std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(rank - axes.size()));
  } else if (first < 0) {
    axes.resize(static_cast<std::size_t>(-first));
    std::iota(axes.begin(), axes.end(), first);
  } else {
    c.refuse("axes from {} on of an unknown rank", first);
  }
  return c.ints(axes, "axes");
}

/// y * scale + shift, each where it is there.
ValueId scaled(Legalisation& c, ValueId y, ValueId scale, ValueId shift) {
  const ElementType type = c.element(y);
  if (scale.valid()) y = c.add(Multiply{}, {y, c.converted(scale, type, "scale_like")}, "scaled");
  if (shift.valid()) y = c.add(Add{}, {y, c.converted(shift, type, "shift_like")}, "shifted");
  return y;
}

std::vector<ValueId> layer_normalization(Legalisation& c) {
  const auto& op = c.op<LayerNormalization>();
  MVN mvn;
  mvn.eps = op.epsilon;
  return {scaled(c, c.add(mvn, {c.in(0), last_axes(c, op.axis)}, "normal"), c.in(1), c.in(2))};
}

std::vector<ValueId> rms_normalization(Legalisation& c) {
  const auto& op = c.op<RMSNormalization>();
  const ElementType type = c.element(c.in(0));
  const ValueId squares = c.add(Power{}, {c.in(0), c.number(2, type, "two")}, "squares");
  const ValueId mean = c.add(ReduceMean{{true}}, {squares, last_axes(c, op.axis)}, "mean");
  const ValueId above = c.add(Add{}, {mean, c.number(op.epsilon, type, "epsilon")}, "above_zero");
  const ValueId root = c.add(Sqrt{}, {above}, "root");
  return {scaled(c, c.add(Divide{}, {c.in(0), root}, "normal"), c.in(1), ValueId())};
}

std::vector<ValueId> group_normalization(Legalisation& c) {
  if (c.version() > 10) return {};
  const auto& op = c.op<GroupNormalization>();
  const std::size_t rank = c.rank(c.in(0));
  const ValueId groups = c.reshaped(c.in(0), {0, op.num_groups, -1}, "groups", true);
  MVN mvn;
  mvn.eps = op.epsilon;
  const ValueId normal = c.add(mvn, {groups, c.ints({2}, "axes")}, "normal");
  const ValueId back = c.add(Reshape{}, {normal, c.sizes_of(c.in(0), "sizes")}, "joined");
  return {scaled(c, back, c.along(c.in(1), 1, rank, "scale"), c.along(c.in(2), 1, rank, "shift"))};
}

/// Under the shape with which it broadcasts to x.
ValueId lined_up(Legalisation& c, std::size_t i, std::int64_t axis, const std::string& name) {
  const ValueId operand = c.in(i);
  if (!operand.valid() || (c.shape(operand).ranked() && c.rank(operand) == 0)) return operand;
  const auto wanted = scale_shift_operand(c.shape(c.in(0)), c.shape(operand), axis);
  if (!wanted) c.refuse("axes from {} on of an unknown rank", axis);
  if (wanted->rank() == c.rank(operand)) return operand;
  Ints axes(wanted->rank() - c.rank(operand));
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(c.rank(operand)));
  if (const Tensor* tensor = c.constant(operand)) {
    Dims dims = tensor->shape();
    dims.resize(wanted->rank(), 1);
    return c.reshaped(operand, dims, name);
  }
  return c.add(Unsqueeze{}, {operand, c.ints(axes, name + "_axes")}, name);
}

std::vector<ValueId> scale_shift(Legalisation& c) {
  const auto axis = c.op<ScaleShift>().axis;
  return {scaled(c, c.in(0), lined_up(c, 1, axis, "scale"), lined_up(c, 2, axis, "shift"))};
}

std::vector<ValueId> power_static(Legalisation& c) {
  const auto& op = c.op<PowerStatic>();
  const ElementType type = c.element(c.in(0));
  ValueId y = c.in(0);
  if (op.scale != 1) y = c.add(Multiply{}, {y, c.number(op.scale, type, "scale")}, "scaled");
  if (op.shift != 0) y = c.add(Add{}, {y, c.number(op.shift, type, "shift")}, "shifted");
  if (op.power != 1) y = c.add(Power{}, {y, c.number(op.power, type, "exponent")}, "power");
  return {y};
}

std::vector<ValueId> soft_sign(Legalisation& c) {
  if (c.version() > 10) return {};
  const ElementType type = c.element(c.in(0));
  const ValueId size = c.add(Abs{}, {c.in(0)}, "size");
  const ValueId divisor = c.add(Add{}, {size, c.number(1, type, "one")}, "divisor");
  return {c.add(Divide{}, {c.in(0), divisor}, "softsign")};
}

ValueId infinity(Legalisation& c, double sign) {
  return c.number(sign * std::numeric_limits<double>::infinity(), c.element(c.in(0)), "infinity");
}

std::vector<ValueId> is_nan(Legalisation& c) {
  if (c.version() > 10) return {};
  return {c.add(NotEqual{}, {c.in(0), c.in(0)}, "nan")};
}

std::vector<ValueId> is_finite(Legalisation& c) {
  if (c.version() > 10) return {};
  return {c.add(Less{}, {c.add(Abs{}, {c.in(0)}, "size"), infinity(c, 1)}, "finite")};
}

std::vector<ValueId> is_infinite(Legalisation& c) {
  if (c.version() > 10) return {};
  const auto& op = c.op<IsInf>();
  if (op.detect_negative && op.detect_positive)
    return {c.add(Equal{}, {c.add(Abs{}, {c.in(0)}, "size"), infinity(c, 1)}, "infinite")};
  if (op.detect_negative) return {c.add(Equal{}, {c.in(0), infinity(c, -1)}, "infinite")};
  if (op.detect_positive) return {c.add(Equal{}, {c.in(0), infinity(c, 1)}, "infinite")};
  return {c.add(Less{}, {c.in(0), infinity(c, -1)}, "never")};
}

/// The input itself: only its names stay.
std::vector<ValueId> identity(Legalisation& c) { return {c.in(0)}; }

}  // namespace

void register_norms(LegalisationTable& t) {
  t.add("LayerNormalization", layer_normalization);
  t.add("RMSNormalization", rms_normalization);
  t.add("GroupNormalization", group_normalization);
  t.add("ScaleShift", scale_shift);
  t.add("PowerStatic", power_static);
  t.add("SoftSign", soft_sign);
  t.add("IsNaN", is_nan);
  t.add("IsFinite", is_finite);
  t.add("IsInf", is_infinite);
  t.add("Identity", identity);
  t.add("Elementwise", identity);
}

}  // namespace lamina::ir
