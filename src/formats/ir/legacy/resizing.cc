// Interp and Resample: bilinear and nearest resizing of pictures.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "formats/ir/legacy/lowering.h"
#include "ops/resize.h"
#include "ops/shaping.h"

namespace lamina::ir::legacy {
namespace {

constexpr int kMaxFactor = 1 << 16;

/// The sizes of the output's spatial axes in the file.
Ints declared_spatial(Lowering& c) {
  c.require(c.declared().rank() == c.rank(0), "the output is {}, but the input is {}",
            to_string(c.declared()), to_string(c.shape(0)));
  const Dims sizes = c.declared().sizes();
  return Ints(sizes.begin() + 2, sizes.end());
}

/// The size that has the ratio of the file's sizes to `in`. The products fit: sizes are below 2^31.
std::optional<std::int64_t> in_ratio(const Lowering::DeclaredSizes& file, std::int64_t in) {
  if (in == file.in) return file.out;
  if (file.in <= 0 || in > INT32_MAX || file.out > INT32_MAX || in * file.out % file.in != 0) return {};
  return in * file.out / file.in;
}

/// What the file's sizes make of the input: the same sizes, or the same ratios when the model is read with
/// other shapes.
Ints as_declared(Lowering& c) {
  Ints sizes = declared_spatial(c);
  if (c.sizes_hold()) return sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto file = c.declared_sizes(i + 2);
    const auto size = file ? in_ratio(*file, c.known_size(0, i + 2)) : std::nullopt;
    c.require(size.has_value(), "the file resizes to {}, which says nothing about an input of {}",
              to_string(c.declared()), to_string(c.shape(0)));
    sizes[i] = *size;
  }
  return sizes;
}

/// The second input: sizes as numbers, or something of the wanted shape.
std::optional<Ints> sizes_of_input(Lowering& c) {
  if (c.inputs() < 2) return std::nullopt;
  const Shape& like = c.shape(1);
  if (like.known() && like.rank() == c.rank(0)) {
    const Dims sizes = like.sizes();
    return Ints(sizes.begin() + 2, sizes.end());
  }
  auto given = c.known_ints(1);
  if (given && given->size() == c.rank(0)) given->erase(given->begin(), given->begin() + 2);
  return given;
}

/// A size that follows from a size; nothing where it does not.
using SizeRule = std::function<std::optional<std::int64_t>(std::int64_t in)>;

/// Caffe's rule: shrink, then zoom, of the padded size. 0 is what some writers gave a factor that does not
/// matter.
SizeRule shrink_and_zoom(double shrink, double zoom, std::int64_t pads) {
  const auto whole = [](double x) { return x == 0 ? 1 : static_cast<std::int64_t>(x); };
  const auto is_whole = [](double x) { return x >= 0 && x <= kMaxFactor && x == std::floor(x); };
  if (!is_whole(shrink) || !is_whole(zoom)) return [](std::int64_t) { return std::nullopt; };
  return [by = whole(shrink), more = whole(zoom) - 1, pads](std::int64_t in) {
    const std::int64_t small = (in + pads - 1) / by + 1;
    return small + (small - 1) * more;
  };
}

/// The Inference Engine's rule: a product of floats, without its fraction.
SizeRule product(double factor) {
  if (!(factor > 0 && factor <= kMaxFactor)) return [](std::int64_t) { return std::nullopt; };
  return [by = static_cast<float>(factor)](std::int64_t in) {
    return static_cast<std::int64_t>(static_cast<float>(in) * by);
  };
}

/// What the factors may mean. Those of zoom and shrink go before the other one.
std::vector<SizeRule> factor_rules(Lowering& c, std::int64_t pads) {
  const double zoom = c.number("zoom_factor", 0), shrink = c.number("shrink_factor", 0),
               factor = c.number("factor", 0);
  if (zoom == 0 && shrink == 0 && factor > 0) return {product(factor)};
  return {shrink_and_zoom(shrink, zoom, pads), product((zoom == 0 ? 1 : zoom) / (shrink == 0 ? 1 : shrink)),
          product(factor)};
}

/// The sizes by the first rule that gives the file's own ones.
std::optional<Ints> interp_sizes_by_factors(Lowering& c, std::int64_t pads) {
  const std::int64_t fixed[] = {c.integer("height", 0), c.integer("width", 0)};
  const auto rows = c.declared_sizes(2), columns = c.declared_sizes(3);
  if (!rows || !columns) return {};
  for (const auto& rule : factor_rules(c, pads)) {
    const auto sizes = [&](std::int64_t height, std::int64_t width) -> std::optional<Ints> {
      const auto h = fixed[0] > 0 ? fixed[0] : rule(height), w = fixed[1] > 0 ? fixed[1] : rule(width);
      if (!h || !w) return {};
      return Ints{*h, *w};
    };
    if (sizes(rows->in, columns->in) == Ints{rows->out, columns->out})
      return sizes(c.known_size(0, 2), c.known_size(0, 3));
  }
  return {};
}

/// Height and width as attributes, a second input, the file's sizes or factors give them.
Ints interp_sizes(Lowering& c, std::int64_t pads) {
  const auto height = c.integer("height", 0), width = c.integer("width", 0);
  if (height > 0 && width > 0) return {height, width};
  if (const auto asked = sizes_of_input(c)) return *asked;
  if (c.sizes_hold()) return as_declared(c);
  if (const auto sizes = interp_sizes_by_factors(c, pads)) return *sizes;
  return as_declared(c);
}

void interp(Lowering& c) {
  c.want_inputs(1, 2);
  c.require(c.rank(0) == 4, "input 0 has the shape {}, wanted [N, C, H, W]", to_string(c.shape(0)));
  const auto begin = c.integer("pad_beg", 0), end = c.integer("pad_end", 0);
  for (const auto n : {begin, end}) c.require(n >= -kMaxFactor && n <= kMaxFactor, "a padding of {}", n);
  const Ints sizes = interp_sizes(c, begin + end);
  c.require(sizes.size() == 2, "{} sizes, wanted height and width", sizes.size());
  Interpolate op;
  op.mode = InterpolateMode::linear_onnx;
  op.coordinate_transformation_mode =
      c.boolean("align_corners", true) ? CoordinateMode::align_corners : CoordinateMode::asymmetric;
  if (begin > 0 || end > 0) {
    op.pads_begin = {0, 0, std::max<std::int64_t>(begin, 0), std::max<std::int64_t>(begin, 0)};
    op.pads_end = {0, 0, std::max<std::int64_t>(end, 0), std::max<std::int64_t>(end, 0)};
  }
  const auto taken = [](std::int64_t padding) { return Ints(2, std::max<std::int64_t>(-padding, 0)); };
  const ValueId x = c.cropped(c.real(0), taken(begin), taken(end));
  c.finish(op, {x, c.constant(sizes, "sizes"), c.constant(Ints{2, 3}, "axes")});
}

/// The file's sizes say how a product with the factor, a float in readers of that time, was rounded.
Ints resample_sizes(Lowering& c) {
  if (const auto asked = sizes_of_input(c)) return *asked;
  const double by = c.number("factor", 0);
  c.require(by >= 0 && by <= kMaxFactor, "factor is {}, wanted more than 0", by);
  if (by == 0) return as_declared(c);
  Ints sizes = declared_spatial(c);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto product = [by](std::int64_t size) {
      return static_cast<float>(size) * static_cast<float>(by);
    };
    const float exact = product(c.known_size(0, i + 2));
    const auto file = c.declared_sizes(i + 2);
    const float apart = file ? product(file->in) - static_cast<float>(file->out) : 0;
    const bool down = apart > 0 && apart < 1;
    sizes[i] = static_cast<std::int64_t>(down ? std::floor(exact) : std::ceil(exact));
  }
  return sizes;
}

void resample(Lowering& c) {
  c.want_inputs(1, 2);
  c.require(c.rank(0) >= 3, "input 0 has the shape {}, wanted [N, C, ...]", to_string(c.shape(0)));
  const Ints sizes = resample_sizes(c);
  c.require(sizes.size() + 2 == c.rank(0), "{} sizes for an input of {}", sizes.size(),
            to_string(c.shape(0)));
  Interpolate op;
  op.coordinate_transformation_mode = CoordinateMode::half_pixel;
  const std::string type = c.word("type", "caffe.resampleparameter.nearest");
  if (type.ends_with("nearest")) {
    op.mode = InterpolateMode::nearest;
    op.nearest_mode = NearestMode::round_prefer_ceil;
  } else if (type.ends_with("linear")) {
    op.mode = InterpolateMode::linear;
    op.antialias = c.boolean("antialias", false);
  } else {
    throw NotSupported{fmt::format("type {}", c.text("type").substr(0, 80))};
  }
  Ints axes(sizes.size());
  std::iota(axes.begin(), axes.end(), 2);
  c.finish(op, {c.real(0), c.constant(sizes, "sizes"), c.constant(axes, "axes")});
}

}  // namespace

void register_resizing(LoweringTable& t) {
  t.add("Interp", interp);
  t.add("Resample", resample);
}

}  // namespace lamina::ir::legacy
