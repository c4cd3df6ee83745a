#include "ops/resize.h"

#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "graph/op_model.h"
#include "graph/permute.h"
#include "ops/operators.h"
#include "ops/require.h"
#include "ops/resize_coordinates.h"
#include "ops/walk.h"
#include "ops/yuv.h"

namespace lamina {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;  // of a resized dim
constexpr std::int64_t kLargestPad = std::int64_t{1} << 20;

Ints filled_pads(const InferContext& c, const Ints& pads, std::size_t rank, std::string_view name) {
  if (pads.empty()) return Ints(rank);
  c.require(pads.size() <= rank, "{} has {} entries, wanted up to {}", name, pads.size(), rank);
  for (auto p : pads)
    c.require(p >= 0 && p <= kLargestPad, "{} has the entry {}, wanted 0 to {}", name, p, kLargestPad);
  auto out = pads;
  out.resize(rank);
  return out;
}

/// The resized axes in the order of input 1, when they are known.
std::optional<std::vector<std::size_t>> resized_axes(const InferContext& c, std::size_t rank) {
  std::vector<std::size_t> axes;
  if (!c.has(2)) {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  require_integer(c, 2, "axes");
  require_rank(c, 2, 0, 1, "axes");
  const auto given = c.ints(2);
  if (!given) return std::nullopt;
  axis_flags(*given, rank);
  for (auto a : *given) axes.push_back(normalize_axis(a, rank, "axis"));
  return axes;
}

/// Sizes come out in single precision, as in the frameworks. Plans take denormal constants for 0.
Dim scaled(const InferContext& c, const Dim& dim, float scale, bool rounds) {
  c.require(std::isnormal(scale) && scale > 0, "scale is {}, wanted a positive number that is not denormal",
            scale);
  if (!dim.known())
    return scale == std::floor(scale) && scale <= 1024 ? dim * Dim(static_cast<std::int64_t>(scale)) : Dim();
  const float size = static_cast<float>(dim.size()) * scale;
  c.require(size < static_cast<float>(kLargest), "size of {} scaled by {}, wanted less than {}", dim.size(),
            scale, kLargest);
  return static_cast<std::int64_t>(rounds ? std::floor(size + 0.5f) : size);
}

/// Input and output of one resized axis.
struct Axis {
  std::int64_t in = 0;  // of the padded picture
  std::int64_t out = 0;
  std::int64_t pad = 0;      // before the picture
  std::int64_t picture = 0;  // without pads
  bool resized = false;      // else only padded
  ResizeScale scale;
  double filter_scale = 1;  // widens the filter by its inverse
  float roi_start = 0, roi_end = 1;
};

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// What one output position of an axis reads: weights of consecutive input positions; those outside the
/// padded picture have been dropped or moved to its border.
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights;
  bool outside = false;  // tf_crop_and_resize: gets the extrapolation value
};

Taps single(std::int64_t at, std::int64_t size) {
  return {std::clamp<std::int64_t>(at, 0, size - 1), {1}, false};
}

/// Filter weights around x for positions in [first, last]; `drop`: positions outside count nothing and the
/// others are scaled to a sum of 1, else they read the border.
template <class F>
Taps filtered(double x, std::int64_t first, std::int64_t last, std::int64_t size, bool drop, bool normalize,
              const F& filter) {
  Taps t;
  t.first = std::clamp<std::int64_t>(first, 0, size - 1);
  const auto end = std::clamp<std::int64_t>(last, 0, size - 1);
  t.weights.resize(static_cast<std::size_t>(end - t.first + 1));
  double sum = 0;
  for (auto i = first; i <= last; ++i) {
    if (drop && (i < 0 || i >= size)) continue;
    const double w = filter(static_cast<double>(i) - x);
    sum += w;
    t.weights[static_cast<std::size_t>(std::clamp<std::int64_t>(i, 0, size - 1) - t.first)] += w;
  }
  if (normalize)
    for (auto& w : t.weights) w = sum == 0 ? 0 : w / sum;
  return t;
}

/// Pillow's filters work on areas and know neither coordinate modes nor borders.
Taps pillow(const Interpolate& op, const Axis& a, std::int64_t position) {
  const bool linear = op.mode == InterpolateMode::bilinear_pillow;
  const double scale = static_cast<double>(a.in) / static_cast<double>(a.out), wide = std::max(scale, 1.0);
  const double center = (static_cast<double>(position) + 0.5) * scale, support = (linear ? 1.0 : 2.0) * wide;
  const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
  const auto last = std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), a.in) - 1;
  return filtered(center - 0.5, first, last, a.in, true, true,
                  [&](double d) { return linear ? triangle(d / wide) : cubic(d / wide, op.cube_coeff); });
}

Taps taps(const Interpolate& op, const Axis& a, std::int64_t position) {
  if (op.mode == InterpolateMode::bilinear_pillow || op.mode == InterpolateMode::bicubic_pillow)
    return pillow(op, a, position);
  const ResizeCoordinates coordinates(op.coordinate_transformation_mode, a.in, a.out, a.scale, a.roi_start,
                                      a.roi_end);
  const double x = coordinates.at(position);
  Taps t;
  t.outside = coordinates.outside(position);
  if (t.outside || std::isnan(x)) {
    t.weights = {0};
    return t;
  }
  if (op.mode == InterpolateMode::nearest)
    return single(coordinates.nearest(op.nearest_mode, position), a.in);
  // The last position lies at a reasonable distance of the picture, whatever the scale says.
  const double limit = static_cast<double>(a.in) + 4, at = std::clamp(x, -limit, 2 * limit);
  const double shrink = a.filter_scale;
  const bool is_cubic = op.mode == InterpolateMode::cubic;
  const double radius = std::min((is_cubic ? 2 : 1) / shrink, 4.0 * static_cast<double>(a.in) + 16);
  const auto first = static_cast<std::int64_t>(std::floor(at - radius)) + 1;
  const auto last = static_cast<std::int64_t>(std::floor(at + radius));
  const bool drop = op.mode == InterpolateMode::linear || op.exclude_outside;
  return filtered(at, first, last, a.in, drop, drop || shrink != 1, [&](double d) {
    return is_cubic ? cubic(d * shrink, op.cube_coeff) : triangle(d * shrink);
  });
}

/// Numbers of a picture and its current dims, axis after axis on the way from input to output.
struct Picture {
  std::vector<double> values;
  Dims dims;
};

/// Resizes one axis.
Picture resize_axis(const Picture& p, std::size_t axis, const Axis& a, const std::vector<Taps>& all) {
  Picture out;
  out.dims = p.dims;
  out.dims[axis] = a.out;
  const std::int64_t inner = volume(p.dims, axis + 1, p.dims.size()), outer = volume(p.dims, 0, axis);
  out.values.resize(static_cast<std::size_t>(outer * a.out * inner));
  parallel_for(outer * a.out, 10'000 / std::max<std::int64_t>(inner, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 StopPoints points;
                 for (auto row = begin; row < end; ++row) {
                   const auto& t = all[static_cast<std::size_t>(row % a.out)];
                   double* to = out.values.data() + row * inner;
                   for (std::size_t k = 0; k < t.weights.size(); points(inner), ++k) {
                     const std::int64_t at = t.first + static_cast<std::int64_t>(k) - a.pad;
                     if (t.weights[k] == 0 || at < 0 || at >= a.picture) continue;
                     const double* from = p.values.data() + (row / a.out * a.picture + at) * inner;
                     for (std::int64_t i = 0; i < inner; ++i) to[i] += t.weights[k] * from[i];
                   }
                 }
               });
  return out;
}

/// Antialiasing: OpenVINO's linear scales the filters of all axes as soon as one shrinks, ONNX's those that
/// shrink.
void set_filter_scales(const Interpolate& op, std::vector<std::optional<Axis>>& axes) {
  const auto shrinks = [](const std::optional<Axis>& a) { return a && a->resized && a->scale.shrinks(); };
  const bool any = std::any_of(axes.begin(), axes.end(), shrinks);
  for (auto& a : axes)
    if (shrinks(a) || (a && a->resized && any && op.mode == InterpolateMode::linear))
      a->filter_scale = a->scale.value();
}

/// What evaluation knows of every axis of the input; those that stay as they are have no entry.
std::vector<std::optional<Axis>> axes_of(const Interpolate& op, const EvalContext& c) {
  const auto& x = c.dims(0);
  const auto& y = c.out_dims();
  std::vector<std::optional<Axis>> out(x.size());
  const auto pad = [](const Ints& pads, std::size_t i) { return i < pads.size() ? pads[i] : 0; };
  const auto axis = [&](std::size_t i) {
    Axis a;
    a.picture = x[i];
    a.pad = pad(op.pads_begin, i);
    a.in = x[i] + a.pad + pad(op.pads_end, i);
    a.out = y[i];
    a.scale = ResizeScale::of_sizes(a.in, a.out);
    return a;
  };
  for (std::size_t i = 0; i < x.size(); ++i)
    if (axis(i).in != x[i]) out[i] = axis(i);
  Ints list = c.has(2) ? c.ints(2) : Ints();
  for (std::size_t i = 0; !c.has(2) && i < x.size(); ++i) list.push_back(static_cast<std::int64_t>(i));
  const auto scales = op.by_scales() ? c.floats(1) : std::vector<float>();
  const auto roi = c.has(3) ? c.floats(3) : std::vector<float>();
  for (std::size_t k = 0; k < list.size(); ++k) {
    const auto i = normalize_axis(list[k], x.size(), "axis");
    auto a = axis(i);
    a.resized = true;
    if (!scales.empty()) a.scale = ResizeScale::of_number(scales[k], a.in, a.out);
    if (op.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize && !roi.empty()) {
      a.roi_start = roi[k];
      a.roi_end = roi[k + list.size()];
    }
    out[i] = a;
  }
  if (op.antialias) set_filter_scales(op, out);
  return out;
}

/// True when every output position of the axis is the input's.
bool unchanged(const Axis& a, const std::vector<Taps>& all) {
  if (a.in != a.out || a.pad != 0 || a.picture != a.in) return false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& t = all[i];
    if (t.outside) return false;
    for (std::size_t k = 0; k < t.weights.size(); ++k)
      if (t.weights[k] != (t.first + static_cast<std::int64_t>(k) == static_cast<std::int64_t>(i) ? 1 : 0))
        return false;
  }
  return true;
}

/// Puts `value` where a position of the axis lies outside the picture.
void extrapolate(Picture& p, std::size_t axis, const std::vector<Taps>& all, double value) {
  const std::int64_t inner = volume(p.dims, axis + 1, p.dims.size());
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(p.values.size()) / inner; ++row)
    if (all[static_cast<std::size_t>(row % p.dims[axis])].outside)
      std::fill_n(p.values.begin() + row * inner, inner, value);
}

}  // namespace

void Interpolate::infer(InferContext& c) const {
  require_number(c, 0, "input");
  c.require(std::isfinite(cube_coeff), "cube_coeff is {}, wanted a finite number", cube_coeff);
  const auto& x = c.shape(0);
  if (by_scales())
    require_float(c, 1, "scales");
  else
    require_integer(c, 1, "sizes");
  require_rank(c, 1, 0, 1, by_scales() ? "scales" : "sizes");
  c.require(std::isfinite(cube_coeff), "cube_coeff is {}, wanted a number", cube_coeff);
  if (c.has(3)) require_float(c, 3, "roi");
  // Before any return: what depends on them is to be known (InferContext::lacks).
  const auto scales = by_scales() ? c.constant(1) : std::nullopt;
  const auto given = by_scales() ? std::nullopt : c.dims(1);
  if (!x.ranked()) return c.set(0, c.element(0), Shape());
  const auto begin = filled_pads(c, pads_begin, x.rank(), "pads_begin"),
             end = filled_pads(c, pads_end, x.rank(), "pads_end");
  std::vector<Dim> out;
  for (std::size_t i = 0; i < x.rank(); ++i) out.push_back(x[i] + Dim(begin[i] + end[i]));
  const auto axes = resized_axes(c, x.rank());
  if (!axes) return c.set(0, c.element(0), Shape::of_rank(x.rank()));
  const auto count = static_cast<std::int64_t>(axes->size());
  if (c.shape(1).ranked() && c.shape(1).rank() == 1)
    require_dim(c, c.shape(1)[0], count, "number of sizes or scales");
  if (c.has(3) && !c.shape(3).count().is(0)) require_shape(c, 3, Shape{Dim(2 * count)}, "roi");
  std::vector<Dim> sizes(axes->size());
  if (scales) {
    const auto by = to_floats(*scales);
    const bool rounds = shape_calculation_mode == ShapeCalculationMode::rounded_scales;
    c.require(by.size() == axes->size(), "{} scales of {} axes", by.size(), axes->size());
    for (std::size_t k = 0; k < axes->size(); ++k) sizes[k] = scaled(c, out[(*axes)[k]], by[k], rounds);
  } else if (given) {
    c.require(given->size() == axes->size(), "{} sizes of {} axes", given->size(), axes->size());
    sizes = *given;
  }
  for (std::size_t k = 0; k < axes->size(); ++k) {
    const auto& in = out[(*axes)[k]];
    c.require(!sizes[k].known() || (sizes[k].size() >= 0 && sizes[k].size() < kLargest),
              "size {}, wanted 0 to {}", sizes[k].low(), kLargest - 1);
    c.require(!in.is(0) || sizes[k].low() == 0, "an axis of size 0 is resized to {}, wanted 0",
              to_string(sizes[k]));
    out[(*axes)[k]] = sizes[k];
  }
  c.set(0, c.element(0), Shape(std::move(out)));
}

void Interpolate::evaluate(EvalContext& c) const {
  const bool pil = mode == InterpolateMode::bilinear_pillow || mode == InterpolateMode::bicubic_pillow;
  const bool whole = !is_float(c.out_element(0));
  Picture p{c.doubles(0), c.dims(0)};
  const auto axes = axes_of(*this, c);
  std::vector<std::vector<Taps>> all(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (!axes[i]) continue;
    const auto& a = *axes[i];
    for (std::int64_t o = 0; o < a.out; ++o)
      all[i].push_back(a.resized ? taps(*this, a, o) : single(o, a.in));
    if (unchanged(a, all[i])) continue;
    p = resize_axis(p, i, a, all[i]);
    if (pil && whole)  // Pillow rounds after each axis
      for (auto& v : p.values) v = std::round(v);
  }
  if (coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize)
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i]) extrapolate(p, i, all[i], extrapolation_value);
  if (whole && mode == InterpolateMode::linear)
    for (auto& v : p.values) v = std::round(v);
  c.store(0, p.values);
}

/// The resized axes stay in their order where the numbers beside them are known: kernels know that order.
Verdict Interpolate::permute(PermuteContext& c) const {
  const auto& numbers = c.node().shape(1);
  if (!numbers.known() || (c.node().has(2) && !c.node().ints(2))) return not_known("axes");
  Ints axes;
  const auto resized = resized_axes(c.node(), c.rank());
  for (const auto axis : *resized) axes.push_back(c.axis(static_cast<std::int64_t>(axis)));
  const auto given = c.node().has(3) ? std::nullopt : c.node().constant(1);
  if (given && given->size() == axes.size()) {
    std::vector<std::pair<std::int64_t, double>> pairs;
    const auto values = to_doubles(*given);
    for (std::size_t k = 0; k < axes.size(); ++k) pairs.emplace_back(axes[k], values[k]);
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> sorted;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      axes[k] = pairs[k].first;
      sorted.push_back(pairs[k].second);
    }
    c.replace(1, from_doubles(given->element_type(), given->shape(), sorted));
  }
  if (c.node().has(2) || !given) c.replace(2, axes);
  auto op = *this;
  if (!pads_begin.empty())
    op.pads_begin = c.per_axis(filled_pads(c.node(), pads_begin, c.rank(), "pads_begin"));
  if (!pads_end.empty()) op.pads_end = c.per_axis(filled_pads(c.node(), pads_end, c.rank(), "pads_end"));
  c.set_op(op);
  return Verdict::yes();
}

void register_resize(Registry& r) {
  r.add<Interpolate>();
  r.add<YuvToRgb>();
}

}  // namespace lamina
