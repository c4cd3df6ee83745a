/// Reductions, normalisations, Softmax, resizing.
#include <algorithm>
#include <cmath>

#include "ops/eval.h"
#include "ops/normalization.h"
#include "ops/reduction.h"
#include "ops/resize.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

Ints random_axes(GraphBuilder& b, std::size_t rank) {
  Ints axes;
  if (rank >= 3 && b.percent(50)) {  // the spatial ones
    for (std::size_t i = 2; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
    return axes;
  }
  for (std::size_t i = 0; i < rank; ++i)
    if (b.percent(40))
      axes.push_back(static_cast<std::int64_t>(i) - (b.percent(20) ? static_cast<std::int64_t>(rank) : 0));
  if (axes.empty()) axes.push_back(b.percent(50) ? -1 : 0);
  return axes;
}

template <class T>
Op reduction(bool keep_dims) {
  T op;
  op.keep_dims = keep_dims;
  return op;
}

void add_reduction(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 5);
  if (!x) return;
  const bool keep = b.percent(50);
  const auto op =
      b.one_of<Op>({reduction<ReduceMean>(keep), reduction<ReduceMean>(keep), reduction<ReduceSum>(keep),
                    reduction<ReduceMax>(keep), reduction<ReduceMin>(keep), reduction<ReduceProd>(keep),
                    reduction<ReduceL1>(keep), reduction<ReduceL2>(keep)});
  b.add(op, {*x, b.ints(random_axes(b, b.rank(*x)))});
}

void add_softmax(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 5);
  if (!x) return;
  const auto axis = b.percent(50) ? -1 : b.below(static_cast<std::int64_t>(b.rank(*x)));
  if (b.percent(75))
    b.add(Softmax{axis}, {*x});
  else
    b.add(LogSoftmax{axis}, {*x});
}

void add_batch_norm(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 5);
  if (!x) return;
  const Dims c{b.dims(*x)[1]};
  b.add(BatchNormInference{b.one_of({1e-5, 1e-3})},
        {*x, b.floats(c, 0.5, 1.5), b.floats(c), b.floats(c), b.floats(c, 0.3, 2)});
}

void add_layer_norm(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 5);
  if (!x) return;
  const auto dims = b.dims(*x);
  const auto axis = b.percent(75) ? -1 : b.between(1, static_cast<std::int64_t>(dims.size()) - 1);
  const Dims part(dims.begin() + static_cast<std::ptrdiff_t>(normalize_axis(axis, dims.size(), "axis")),
                  dims.end());
  if (b.percent(70)) {
    std::vector<ValueId> inputs{*x, b.floats(part, 0.5, 1.5)};
    if (b.percent(70)) inputs.push_back(b.floats(part));
    b.add(LayerNormalization{axis, 1e-3}, inputs);
  } else {
    b.add(RMSNormalization{axis, 1e-3}, {*x, b.floats(part, 0.5, 1.5)});
  }
}

void add_mean_variance(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 5);
  if (!x) return;
  MVN op;
  op.normalize_variance = b.percent(85);
  op.eps = b.one_of({1e-3, 1e-2});
  op.eps_mode = b.percent(70) ? MvnEpsMode::inside_sqrt : MvnEpsMode::outside_sqrt;
  if (b.percent(70)) {
    b.add(op, {*x, b.ints(random_axes(b, b.rank(*x)))});
    return;
  }
  const auto c = b.dims(*x)[1];
  if (b.percent(60)) {
    const auto groups = c % 2 == 0 ? 2 : (c % 3 == 0 ? 3 : 1);
    b.add(GroupNormalization{b.percent(70) ? groups : c, 1e-3}, {*x, b.floats({c}, 0.5, 1.5), b.floats({c})});
  } else {
    b.add(GRN{0.5}, {*x});
  }
}

void add_local_norm(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 4);
  if (!x) return;
  if (b.percent(50)) {
    LRN op;
    op.alpha = b.one_of({1e-4, 0.1, 0.5});
    op.beta = b.one_of({0.75, 0.5});
    op.size = b.one_of<std::int64_t>({1, 3, 5, 2});
    b.add(op, {*x, b.ints(b.percent(70) ? Ints{1} : Ints{2})});
    return;
  }
  NormalizeL2 op;
  op.eps = 1e-2;
  op.eps_mode = b.percent(50) ? L2EpsMode::add : L2EpsMode::max;
  b.add(op, {*x, b.ints(b.percent(60) ? Ints{1} : random_axes(b, b.rank(*x)))});
}

void add_resize(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto dims = b.dims(*x);
  Interpolate op;
  op.mode = b.one_of({InterpolateMode::nearest, InterpolateMode::nearest, InterpolateMode::linear_onnx,
                      InterpolateMode::linear_onnx, InterpolateMode::linear, InterpolateMode::cubic});
  op.coordinate_transformation_mode = b.one_of(
      {CoordinateMode::half_pixel, CoordinateMode::asymmetric, CoordinateMode::align_corners,
       CoordinateMode::pytorch_half_pixel, CoordinateMode::half_pixel, CoordinateMode::tf_half_pixel_for_nn});
  op.nearest_mode = b.one_of({NearestMode::floor, NearestMode::round_prefer_floor,
                              NearestMode::round_prefer_ceil, NearestMode::ceil, NearestMode::simple});
  op.antialias = b.percent(5);
  Ints axes, sizes;
  std::vector<double> scales;
  const bool twice = b.percent(40);
  for (std::size_t i = 2; i < dims.size(); ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
    sizes.push_back(twice ? 2 * dims[i] : b.between(1, 12));
    scales.push_back(twice ? 2 : b.one_of({0.5, 1.0, 1.5, 2.0, 3.0, 0.7}));
  }
  if (b.percent(40)) {
    op.shape_calculation_mode = ShapeCalculationMode::scales;
    b.add(op,
          {*x, b.constant(from_doubles(ElementType::f32, {static_cast<std::int64_t>(scales.size())}, scales)),
           b.ints(axes)});
  } else {
    b.add(op, {*x, b.ints(sizes), b.ints(axes)});
  }
}

}  // namespace

void add_norm_families(Families& families) {
  families.push_back({"reduction", 8, add_reduction});
  families.push_back({"softmax", 4, add_softmax});
  families.push_back({"batch norm", 4, add_batch_norm});
  families.push_back({"layer norm", 3, add_layer_norm});
  families.push_back({"mean and variance", 3, add_mean_variance});
  families.push_back({"local norm", 2, add_local_norm});
  families.push_back({"resize", 4, add_resize});
}

}  // namespace lamina::testing
