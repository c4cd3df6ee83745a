/// Convolutions, matrix products, poolings.
#include <cmath>

#include "ops/convolution.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

/// What a convolution and a transposed one have in common, by chance.
void random_window(GraphBuilder& b, Window& w, const Dims& spatial, const Dims& kernel, bool transposed) {
  const auto odd = b.percent(50);
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    w.strides.push_back(b.one_of<std::int64_t>({1, 1, 1, 2, 2, 3}));
    w.dilations.push_back(b.percent(20) ? 2 : 1);
    const auto pad =
        transposed ? b.below(kernel[i]) : b.one_of<std::int64_t>({0, kernel[i] / 2, kernel[i] / 2, 1, 2});
    w.pads_begin.push_back(pad);
    w.pads_end.push_back(odd && b.percent(40) ? b.below(3) : pad);
  }
  if (b.percent(12)) {
    w.auto_pad = b.one_of({AutoPad::same_upper, AutoPad::same_lower, AutoPad::valid});
    w.pads_begin.clear();
    w.pads_end.clear();
  }
}

Dims random_kernel(GraphBuilder& b, std::size_t axes) {
  const auto size = b.one_of<std::int64_t>({1, 1, 2, 3, 3, 3, 5});
  Dims kernel;
  for (std::size_t i = 0; i < axes; ++i) kernel.push_back(b.percent(15) ? b.between(1, 4) : size);
  return kernel;
}

void add_convolution(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto dims = b.dims(*x);
  const auto c = dims[1];
  const Dims spatial(dims.begin() + 2, dims.end());
  Convolution op;
  const auto kind = b.below(100);
  if (kind < 30)
    op.groups = c;
  else if (kind < 50)
    op.groups = c % 3 == 0 ? 3 : (c % 2 == 0 ? 2 : 1);
  auto out = b.percent(40) ? c : b.channels();
  if (op.groups > 1)
    out = op.groups * (op.groups == c ? b.one_of<std::int64_t>({1, 1, 1, 2}) : b.between(1, 4));
  const auto kernel = random_kernel(b, spatial.size());
  random_window(b, op, spatial, kernel, false);
  Dims w{out, c / op.groups};
  w.insert(w.end(), kernel.begin(), kernel.end());
  double fan = 1;
  for (std::size_t i = 1; i < w.size(); ++i) fan *= static_cast<double>(w[i]);
  std::vector<ValueId> inputs{*x,
                              b.percent(3) ? b.input(ElementType::f32, w) : b.weights(w, 2 / std::sqrt(fan))};
  if (b.percent(40)) inputs.push_back(b.percent(95) ? b.floats({out}) : b.input(ElementType::f32, {out}));
  b.add(op, inputs);
}

void add_transposed_convolution(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto dims = b.dims(*x);
  const auto c = dims[1];
  const Dims spatial(dims.begin() + 2, dims.end());
  ConvolutionBackpropData op;
  if (b.percent(30)) op.groups = b.percent(50) ? c : (c % 2 == 0 ? 2 : 1);
  const auto kernel = random_kernel(b, spatial.size());
  random_window(b, op, spatial, kernel, true);
  if (b.percent(25))
    for (auto s : op.strides) op.output_padding.push_back(b.below(s));
  Dims w{c, op.groups == c ? b.between(1, 2) : b.between(1, 5)};
  const auto out = w[1] * op.groups;
  w.insert(w.end(), kernel.begin(), kernel.end());
  std::vector<ValueId> inputs{*x, b.weights(w, 1.5 / std::sqrt(static_cast<double>(c)))};
  if (b.percent(40)) inputs.push_back(b.floats({out}));
  if (b.percent(12)) {  // sizes are asked for
    Ints sizes;
    for (std::size_t i = 0; i < spatial.size(); ++i) sizes.push_back(spatial[i] * op.strides[i] + b.below(2));
    inputs.resize(3);
    inputs.push_back(b.ints(sizes));
    op.auto_pad = b.one_of({AutoPad::same_upper, AutoPad::same_lower});
  }
  b.add(op, inputs);
}

void add_product_with_constant(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 5);
  if (!x) return;
  const auto dims = b.dims(*x);
  MatMul op;
  op.transpose_a = dims.size() >= 2 && b.percent(15);
  op.transpose_b = b.percent(40);
  const auto k = op.transpose_a ? dims[dims.size() - 2] : dims.back();
  const auto n = b.percent(40) && k <= 256 ? k : b.channels();  // a flattened tensor may be long
  Dims w = op.transpose_b ? Dims{n, k} : Dims{k, n};
  if (dims.size() > 2 && b.percent(20))  // weights of their own for each matrix, or ones in front
    w.insert(w.begin(), b.percent(50) ? dims[dims.size() - 3] : 1);
  if (b.percent(5)) w = {k};
  const auto weights = b.weights(w, 1.7 / std::sqrt(static_cast<double>(k)));
  if (b.percent(8)) {  // the constant on the left
    Dims left = op.transpose_a ? Dims{dims.size() >= 2 ? dims[dims.size() - 2] : k, n} : Dims{n, dims.back()};
    if (dims.size() >= 2) left = {n, dims[dims.size() - 2]};
    b.add(MatMul{}, {b.weights(left, 1 / std::sqrt(static_cast<double>(left[1]))), *x});
    return;
  }
  std::vector<ValueId> inputs{*x, weights};
  if (b.percent(30)) inputs.push_back(b.floats(b.percent(80) ? Dims{n} : Dims{1}));
  b.add(op, inputs);
}

void add_product_of_values(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 4);
  if (!x) return;
  auto dims = b.dims(*x);
  const auto k = dims.back();
  MatMul op;
  if (b.percent(30)) {  // with itself
    op.transpose_b = b.percent(50);
    op.transpose_a = !op.transpose_b;
    b.add(op, {*x, *x});
    return;
  }
  const auto fits = [&](ValueId v) {
    if (!b.is_f32(v) || b.rank(v) < 1) return false;
    const auto& d = b.dims(v);
    return d.size() < 2 ? d[0] == k : d[d.size() - 2] == k || d.back() == k;
  };
  auto other = b.pick(fits);
  if (!other || b.percent(40)) {
    dims[dims.size() - 2] = k;
    dims.back() = b.channels();
    if (b.percent(30)) dims.erase(dims.begin(), dims.end() - 2);
    other = b.input(ElementType::f32, dims);
  }
  const auto& d = b.dims(*other);
  op.transpose_b = d.size() >= 2 && d[d.size() - 2] != k;
  b.add(op, {*x, *other});
}

void add_pooling(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto dims = b.dims(*x);
  const auto rounding =
      b.one_of({RoundingType::floor, RoundingType::floor, RoundingType::ceil, RoundingType::ceil_torch});
  Window w;
  Ints kernel;
  for (std::size_t i = 2; i < dims.size(); ++i) {
    kernel.push_back(std::min(b.one_of<std::int64_t>({1, 2, 2, 3, 3, dims[i]}), dims[i] + 1));
    w.strides.push_back(b.between(1, 3));
    w.pads_begin.push_back(b.below(std::min<std::int64_t>(kernel.back(), 3)));
    w.pads_end.push_back(b.percent(70) ? w.pads_begin.back()
                                       : b.below(std::min<std::int64_t>(kernel.back(), 3)));
  }
  if (b.percent(10)) {
    w.auto_pad = b.one_of({AutoPad::same_upper, AutoPad::same_lower, AutoPad::valid});
    w.pads_begin.clear();
    w.pads_end.clear();
  }
  if (b.percent(50)) {
    MaxPool op;
    static_cast<Window&>(op) = w;
    op.kernel = kernel;
    op.rounding_type = rounding;
    if (b.percent(12)) op.dilations = Ints(kernel.size(), 2);
    b.add_many(op, {*x}, b.percent(8) ? 2 : 1);
    return;
  }
  AvgPool op;
  static_cast<Window&>(op) = w;
  op.kernel = kernel;
  op.rounding_type = rounding;
  op.exclude_pad = b.percent(50);
  b.add(op, {*x});
}

void add_adaptive_pooling(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  Ints sizes;
  for (std::size_t i = 2; i < b.rank(*x); ++i) sizes.push_back(b.between(1, 4));
  if (b.percent(60))
    b.add(AdaptiveAvgPool{}, {*x, b.ints(sizes)});
  else
    b.add_many(AdaptiveMaxPool{}, {*x, b.ints(sizes)});
}

}  // namespace

void add_compute_families(Families& families) {
  families.push_back({"convolution", 16, add_convolution});
  families.push_back({"transposed convolution", 4, add_transposed_convolution});
  families.push_back({"product with a constant", 8, add_product_with_constant});
  families.push_back({"product of values", 4, add_product_of_values});
  families.push_back({"pooling", 6, add_pooling});
  families.push_back({"adaptive pooling", 1, add_adaptive_pooling});
}

}  // namespace lamina::testing
