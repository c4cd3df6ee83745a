/// Resize and Upsample.
#include "ops/resize.h"

#include <algorithm>
#include <cmath>

#include "formats/onnx/build.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

template <class E>
E named(const Call& c, std::string_view attribute, std::string_view fallback) {
  const auto name = c.s(attribute, fallback);
  for (std::size_t i = 0; i < enum_names<E>.size(); ++i)
    if (enum_names<E>[i] == name) return static_cast<E>(i);
  c.unsupported("{} = \"{}\" is not supported", attribute, name);
}

InterpolateMode read_mode(const Call& c) {
  const auto mode = c.s("mode", "nearest");
  if (mode == "nearest") return InterpolateMode::nearest;
  if (mode == "linear" || mode == "bilinear") return InterpolateMode::linear_onnx;
  if (mode == "cubic") return InterpolateMode::cubic;
  c.fail("mode is \"{}\", wanted nearest, linear or cubic", mode);
}

bool is_given(const Call& c, std::size_t input) {
  if (!c.has(input)) return false;
  const auto& shape = c.type(c.in(input)).shape;
  return !(shape.ranked() && shape.rank() == 1 && shape[0].is(0));
}

/// The number of axes that scales or sizes are given for, where it is known. `axes`: empty for all.
std::optional<std::size_t> count_of_axes(const Call& c, const Ints& axes) {
  if (!axes.empty()) return axes.size();
  const auto& shape = c.type(c.in(0)).shape;
  return shape.ranked() ? std::optional(shape.rank()) : std::nullopt;
}

/// Scales, or sizes, of which there is one for each axis, as far as that is known before the model runs.
ValueId one_for_each(const Call& c, ValueId values, const Ints& axes, std::string_view what) {
  const auto& shape = c.type(values).shape;
  const auto count = count_of_axes(c, axes);
  if (!count || !shape.ranked()) return values;
  if (shape.rank() > 1 || (shape.count().known() && !shape.count().is(static_cast<std::int64_t>(*count))))
    c.fail("{} have shape {}, wanted [{}]", what, to_string(shape), *count);
  return values;
}

/// The axes that scales, or sizes, leave as they are need not be spoken of.
struct Target {
  Ints axes;                    // of the values; empty: all, in order
  std::vector<bool> unchanged;  // by value, where known
};

/// Nothing where the numbers may be too many or too few: the operator says so when the model runs.
void note_unchanged(const Call& c, Target& t, ValueId values, bool scales) {
  const auto count = count_of_axes(c, t.axes);
  if (scales) {
    const auto known = c.known(values);
    if (!known || known->size() != count) return;
    for (auto s : to_doubles(*known)) t.unchanged.push_back(s == 1);
    return;
  }
  const auto dims = dims_of_value(c.graph(), values);
  const auto& shape = c.type(c.in(0)).shape;
  if (!dims || !shape.ranked() || dims->size() != count) return;
  for (std::size_t i = 0; i < dims->size(); ++i)
    t.unchanged.push_back((*dims)[i].same(shape[t.axes.empty() ? i : static_cast<std::size_t>(t.axes[i])]));
}

/// Interpolate along the axes that change.
Values interpolate(Call& c, Interpolate op, ValueId values, Target target, ValueId roi = {}) {
  const auto x = c.in(0);
  const bool scales = op.by_scales();
  if (scales && c.known_element(values) != ElementType::f32) values = c.convert(values, ElementType::f32);
  if (!roi.valid()) note_unchanged(c, target, values, scales);
  Ints kept, axes;
  for (std::size_t i = 0; i < target.unchanged.size(); ++i)
    if (!target.unchanged[i]) {
      kept.push_back(static_cast<std::int64_t>(i));
      axes.push_back(target.axes.empty() ? static_cast<std::int64_t>(i) : target.axes.at(i));
    }
  if (!target.unchanged.empty() && kept.empty()) return {c.add(Identity{}, {x})};
  if (kept.size() < target.unchanged.size()) {
    const auto known = c.known(values);
    if (known) {
      std::vector<double> some;
      for (auto i : kept) some.push_back(to_doubles(*known).at(static_cast<std::size_t>(i)));
      values =
          c.constant(from_doubles(known->element_type(), {static_cast<std::int64_t>(some.size())}, some));
    } else {
      values = c.add(Gather{}, {values, c.ints_constant(kept), c.int_constant(0)});
    }
    target.axes = axes;
  }
  Values inputs{x, values};
  if (!target.axes.empty() || roi.valid())
    inputs.push_back(target.axes.empty() ? c.axes_from(x, 0) : c.ints_constant(target.axes));
  if (roi.valid()) inputs.push_back(roi);
  return {c.add(op, std::move(inputs))};
}

/// One scale for all axes, in f32, so that the result fits into the sizes or covers them.
ValueId common_scale(Call& c, ValueId sizes, const Ints& axes, bool larger) {
  auto old = c.shape_of(c.in(0));
  if (!axes.empty()) old = folded(c, c.add(Gather{}, {old, c.ints_constant(axes), c.int_constant(0)}));
  const auto ratios = divide(c, c.convert(sizes, ElementType::f32), c.convert(old, ElementType::f32));
  const auto zero = c.ints_constant({0});
  const auto scale = larger ? c.add(ReduceMax{}, {ratios, zero}) : c.add(ReduceMin{}, {ratios, zero});
  return folded(c, c.filled(scale, c.shape_of(sizes)));
}

/// Where a scale does not give a whole number of pixels, engines disagree on where the last corner is.
void check_corners(const Call& c, const Interpolate& op, ValueId scales, const Ints& axes) {
  if (op.coordinate_transformation_mode != CoordinateMode::align_corners) return;
  const auto known = c.known(scales);
  const auto& shape = c.type(c.in(0)).shape;
  if (!known || !shape.ranked()) c.unsupported("align_corners with scales or a rank that is not known");
  const auto factors = to_floats(*known);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto axis = axes.empty() ? i : static_cast<std::size_t>(axes[i]);
    // In single precision, as sizes are made: 20 times 0.3 are 6 pixels.
    const auto size = shape[axis].known() ? factors[i] * static_cast<float>(shape[axis].size()) : factors[i];
    if (size != std::floor(size)) c.unsupported("align_corners with a scale that gives {} pixels", size);
  }
}

/// Before opset 11 the nearest pixel is the one below, but the one above where an axis shrinks.
NearestMode first_nearest_mode(const Call& c) {
  const auto known = c.known(c.in(1));
  if (!known) return NearestMode::simple;
  const auto scales = to_doubles(*known);
  const bool shrinks = std::any_of(scales.begin(), scales.end(), [](double s) { return s < 1; });
  return shrinks ? NearestMode::simple : NearestMode::floor;
}

Values convert_resize(Call& c) {
  Interpolate op;
  op.mode = read_mode(c);
  op.shape_calculation_mode = ShapeCalculationMode::scales;
  if (c.version() < 11) {
    op.coordinate_transformation_mode = CoordinateMode::asymmetric;
    op.nearest_mode = first_nearest_mode(c);
    return interpolate(c, op, one_for_each(c, c.in(1), {}, "scales"), {});
  }
  op.coordinate_transformation_mode =
      named<CoordinateMode>(c, "coordinate_transformation_mode", "half_pixel");
  op.nearest_mode = named<NearestMode>(c, "nearest_mode", "round_prefer_floor");
  op.antialias = c.flag("antialias");
  op.cube_coeff = c.f("cubic_coeff_a", -0.75);
  op.exclude_outside = c.flag("exclude_outside");
  op.extrapolation_value = c.f("extrapolation_value", 0);
  Target target;
  if (const auto axes = c.maybe_ints("axes"))
    for (auto a : *axes) {
      target.axes.push_back(static_cast<std::int64_t>(c.axis(a, c.known_rank(c.in(0)))));
      if (std::count(target.axes.begin(), target.axes.end(), target.axes.back()) > 1)
        c.fail("axes name the axis {} twice", a);
    }
  const bool crop = op.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize;
  const auto roi = crop ? c.in(1) : ValueId{};
  if (is_given(c, 2)) {
    const auto scales = one_for_each(c, c.in(2), target.axes, "scales");
    check_corners(c, op, scales, target.axes);
    return interpolate(c, op, scales, target, roi);
  }
  if (!is_given(c, 3)) c.fail("has neither scales nor sizes");
  const auto sizes = one_for_each(c, c.in(3), target.axes, "sizes");
  const auto policy = c.s("keep_aspect_ratio_policy", "stretch");
  if (policy == "not_larger" || policy == "not_smaller") {
    op.shape_calculation_mode = ShapeCalculationMode::rounded_scales;
    return interpolate(c, op, common_scale(c, sizes, target.axes, policy == "not_smaller"), target, roi);
  }
  if (policy != "stretch") c.fail("keep_aspect_ratio_policy is \"{}\"", policy);
  op.shape_calculation_mode = ShapeCalculationMode::sizes;
  return interpolate(c, op, sizes, target, roi);
}

Values convert_upsample(Call& c) {
  Interpolate op;
  op.mode = read_mode(c);
  op.shape_calculation_mode = ShapeCalculationMode::scales;
  op.coordinate_transformation_mode = CoordinateMode::asymmetric;
  op.nearest_mode = NearestMode::floor;
  if (c.version() >= 9) return interpolate(c, op, one_for_each(c, c.in(1), {}, "scales"), {});
  const auto scales = c.floats("scales");
  if (scales.empty()) c.fail("has no scales");
  const auto values =
      c.constant(from_doubles(ElementType::f32, {static_cast<std::int64_t>(scales.size())}, scales));
  return interpolate(c, op, one_for_each(c, values, {}, "scales"), {});
}

}  // namespace

void register_resize(ConverterTable& t) {
  t.add("Resize", convert_resize);
  t.add("Upsample", convert_upsample);
}

}  // namespace lamina::onnx
