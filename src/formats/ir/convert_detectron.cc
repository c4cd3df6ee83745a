// Layers of ExperimentalDetectron that are several operators of lamina.
#include <algorithm>
#include <array>
#include <cmath>

#include "formats/ir/converters.h"
#include "formats/ir/text.h"
#include "ops/eval.h"

namespace lamina::ir {
namespace {

constexpr std::int64_t kLargest = 1 << 24;

std::int64_t count_attribute(LayerContext& c, const char* name, std::int64_t least) {
  const Ints given = c.has(name) ? c.integers(name) : Ints{0};
  c.require(given.size() == 1 && given[0] >= least && given[0] <= kLargest, "{}=\"{}\", wanted {}..{}", name,
            c.text(name).substr(0, 80), least, kLargest);
  return given[0];
}

ValueId scalar(LayerContext& c, std::int64_t value, const std::string& suffix) {
  return c.constant(Tensor::scalar(value), suffix);
}

ValueId number(LayerContext& c, float value, const std::string& suffix) {
  return c.constant(Tensor::scalar(value), suffix);
}

/// Size of an input along an axis, an i64 scalar: a constant when it is known.
ValueId size_of(LayerContext& c, std::size_t input, std::size_t axis, const std::string& suffix) {
  if (const Shape shape = c.shape(input); shape.ranked() && shape[axis].known())
    return scalar(c, shape[axis].size(), suffix);
  const ValueId sizes =
      c.add(c.plain_op("ShapeOf", {{"output_type", ElementType::i64}}), {c.in(input)}, suffix + "_of_shape");
  return c.add(
      c.plain_op("Gather"),
      {sizes, scalar(c, static_cast<std::int64_t>(axis), suffix + "_axis"), scalar(c, 0, suffix + "_along")},
      suffix);
}

ValueId as_f32(LayerContext& c, ValueId value, const std::string& suffix) {
  return c.add(c.plain_op("Convert", {{"destination_type", ElementType::f32}}), {value}, suffix);
}

/// One axis of a grid of priors: a picture's, cut into as many cells as the feature map has.
struct GridAxis {
  const char *count, *stride;  ///< attributes; 0 or absent: by the shapes
  std::size_t axis;
  const char* name;
};

/// The middles of the cells, [n].
ValueId middles(LayerContext& c, const GridAxis& along) {
  const std::string name = along.name;
  const std::int64_t given = count_attribute(c, along.count, 0);
  const ValueId count =
      given > 0 ? scalar(c, given, name + "_count") : size_of(c, 1, along.axis, name + "_count");
  const auto stride = c.has(along.stride) ? parse_number(c.text(along.stride)) : 0.0;
  c.require(stride && *stride >= 0 && *stride < 1e9, "{}=\"{}\", wanted 0 or more", along.stride,
            c.text(along.stride).substr(0, 80));
  ValueId step = number(c, static_cast<float>(*stride), name + "_stride");
  if (*stride == 0)
    step = c.add(c.plain_op("Divide"),
                 {as_f32(c, size_of(c, 2, along.axis, name + "_pixels"), name + "_size"),
                  as_f32(c, count, name + "_cells")},
                 name + "_step");
  const ValueId cells =
      c.add(c.plain_op("Range", {{"output_type", ElementType::i64}}),
            {scalar(c, 0, name + "_first"), count, scalar(c, 1, name + "_next")}, name + "_range");
  const ValueId middle =
      c.add(c.plain_op("Add"), {as_f32(c, cells, name + "_f32"), number(c, 0.5F, name + "_half")},
            name + "_middle");
  return c.add(c.plain_op("Multiply"), {middle, step}, name + "_places");
}

/// The places under a shape, as far as they count for x1, y1, x2, y2.
ValueId shift(LayerContext& c, ValueId places, const Ints& shape, const std::vector<float>& counts,
              const std::string& name) {
  const ValueId grid =
      c.add(c.plain_op("Reshape"), {places, c.constant(shape, name + "_shape")}, name + "_grid");
  return c.add(c.plain_op("Multiply"), {grid, c.constant(Tensor::of(Dims{4}, counts), name + "_counts")},
               name + "_shift");
}

/// Every prior in the middle of every cell: [H*W*priors, 4], or [H, W, priors, 4] where that is not wanted
/// flat.
void prior_grid(LayerContext& c) {
  c.want_inputs(3, 3);
  const TensorType priors = c.type(0);
  c.require(!priors.shape.ranked() || priors.shape.fits(Shape{Dim(), Dim(4)}),
            "priors have shape {}, wanted [n,4]", to_string(priors.shape));
  for (const std::size_t i : {1, 2})
    c.require(!c.shape(i).ranked() || c.shape(i).rank() == 4, "input {} has shape {}, wanted rank 4", i,
              to_string(c.shape(i)));
  const ValueId x = shift(c, middles(c, {"w", "stride_x", 3, "x"}), {1, -1, 1, 1}, {1, 0, 1, 0}, "x");
  const ValueId y = shift(c, middles(c, {"h", "stride_y", 2, "y"}), {-1, 1, 1, 1}, {0, 1, 0, 1}, "y");
  ValueId grid = c.add(c.plain_op("Add"), {x, y}, "grid");
  if (priors.element != ElementType::f32)
    grid = c.add(c.plain_op("ConvertLike"), {grid, c.in(0)}, "grid_like");
  if (!c.boolean("flatten", true)) return c.finish(c.plain_op("Add"), {grid, c.in(0)});
  const ValueId all = c.add(c.plain_op("Add"), {grid, c.in(0)}, "all");
  c.finish(c.plain_op("Reshape"), {all, c.constant(Ints{-1, 4}, "flat")});
}

/// The regions with the largest probabilities, as many as there are and max_rois at most.
void top_regions(LayerContext& c) {
  c.want_inputs(2, 2);
  const Shape regions = c.shape(0), probabilities = c.shape(1);
  c.require(!regions.ranked() || regions.fits(Shape{Dim(), Dim(4)}), "regions have shape {}, wanted [n,4]",
            to_string(regions));
  c.require(!probabilities.ranked() || probabilities.rank() == 1,
            "probabilities have shape {}, wanted rank 1", to_string(probabilities));
  c.require(!regions.ranked() || !probabilities.ranked() || regions[0].fits(probabilities[0]),
            "regions {} and probabilities {} do not fit", to_string(regions), to_string(probabilities));
  const ValueId most = scalar(c, count_attribute(c, "max_rois", 1), "most");
  const ValueId count = c.add(c.plain_op("Minimum"), {size_of(c, 1, 0, "regions"), most}, "count");
  const Op top = c.plain_op("TopK", {{"axis", std::int64_t{0}}, {"stable", true}});
  const NodeId best = c.graph().add_node(top, {c.in(1), count}, c.layer().name + "/best", 2);
  c.finish(c.plain_op("Gather"), {c.in(0), c.graph().node(best).outputs[1], scalar(c, 0, "axis")});
}

}  // namespace

void register_detectron(ConverterTable& t) {
  t.add("ExperimentalDetectronPriorGridGenerator", prior_grid);
  t.add("ExperimentalDetectronTopKROIs", top_regions);
}

}  // namespace lamina::ir
