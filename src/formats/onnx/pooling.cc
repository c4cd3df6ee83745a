/// Poolings by windows and global ones.
#include "ops/pooling.h"

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/window.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

Ints wanted_kernel(const Call& c) {
  auto kernel = read_kernel(c);
  if (kernel.empty()) c.fail("has no kernel_shape");
  return kernel;
}

/// Windows that would start in the end padding are left out.
RoundingType rounding(const Call& c) {
  return c.flag("ceil_mode") ? RoundingType::ceil_torch : RoundingType::floor;
}

Values convert_max_pool(Call& c) {
  MaxPool op;
  op.kernel = wanted_kernel(c);
  read_window(c, op, op.kernel.size());
  op.rounding_type = rounding(c);
  op.storage_order = c.i("storage_order", 0);
  return c.add_all(op, {c.in(0)}, c.wants(1) ? 2 : 1);
}

AvgPool average(const Call& c) {
  AvgPool op;
  op.kernel = wanted_kernel(c);
  read_window(c, op, op.kernel.size());
  op.rounding_type = rounding(c);
  op.exclude_pad = !c.flag("count_include_pad");
  return op;
}

Values convert_average_pool(Call& c) { return {c.add(average(c), {c.in(0)})}; }

ValueId power(Call& c, ValueId x, double p) {
  return p == 2 ? multiply(c, x, x) : c.add(Power{}, {c.add(Abs{}, {x}), c.number_like(p, x)});
}

ValueId root(Call& c, ValueId x, double p) {
  return p == 2 ? c.add(Sqrt{}, {x}) : c.add(Power{}, {x, c.number_like(1 / p, x)});
}

/// The sum over a window is its mean times its size, since the padding counts.
Values convert_lp_pool(Call& c) {
  if (c.flag("ceil_mode")) c.unsupported("ceil_mode is not supported");
  const auto p = static_cast<double>(c.i("p", 2));
  if (p <= 0) c.fail("p is {}, wanted 1 or more", p);
  auto op = average(c);
  op.exclude_pad = false;
  double size = 1;
  for (auto k : op.kernel) size *= static_cast<double>(k);
  const auto mean = c.add(op, {power(c, c.in(0), p)});
  return {root(c, multiply(c, mean, c.number_like(size, mean)), p)};
}

template <class O>
Values global(Call& c) {
  O op;
  op.keep_dims = true;
  return {c.add(op, {c.in(0), c.axes_from(c.in(0), 2)})};
}

Values convert_global_lp_pool(Call& c) {
  const auto p = static_cast<double>(c.i("p", 2));
  if (p == 1) return global<ReduceL1>(c);
  if (p == 2) return global<ReduceL2>(c);
  if (p <= 0) c.fail("p is {}, wanted 1 or more", p);
  ReduceSum sum;
  sum.keep_dims = true;
  return {root(c, c.add(sum, {power(c, c.in(0), p), c.axes_from(c.in(0), 2)}), p)};
}

/// Writes each element to its place in zeros of the size before pooling.
/// Indices count in what was pooled; a larger output has zeros behind it.
ValueId padded_behind(Call& c, ValueId y, const Dims& sizes, const Ints& wanted) {
  bool fits = wanted.size() == sizes.size();
  Ints behind;
  for (std::size_t i = 0; fits && i < sizes.size(); ++i) {
    behind.push_back(wanted[i] - sizes[i]);
    fits = behind[i] >= 0;
  }
  if (!fits) c.fail("output_shape is {}, wanted at least {}", to_string(wanted), to_string(sizes));
  return c.add(Pad{}, {y, c.ints_constant(Ints(sizes.size(), 0)), c.ints_constant(behind)});
}

Values convert_max_unpool(Call& c) {
  const auto x = c.in(0), indices = c.in(1);
  const auto& shape = c.type(x).shape;
  const auto kernel = wanted_kernel(c);
  Window window;
  read_window(c, window, kernel.size());
  if (!shape.known()) c.unsupported("an input of unknown shape is not supported");
  if (shape.rank() != kernel.size() + 2)
    c.fail("input has rank {}, kernel_shape {} values", shape.rank(), kernel.size());
  auto sizes = shape.sizes();
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    Dim out = Dim(sizes[i + 2] - 1) * Dim(window.strides.empty() ? 1 : window.strides[i]) + Dim(kernel[i]);
    if (!window.pads_begin.empty()) out = out - Dim(window.pads_begin[i]) - Dim(window.pads_end[i]);
    if (!out.known() || out.size() <= 0) c.fail("gives an empty result on axis {}", i + 2);
    sizes[i + 2] = out.size();
  }
  const auto count = static_cast<std::int64_t>(element_count(sizes));
  const auto zeros = c.filled(c.number_like(0, x), c.ints_constant({count}));
  const auto flat = c.add(ScatterElementsUpdate{},
                          {zeros, c.reshape(indices, Ints{-1}), c.reshape(x, Ints{-1}), c.int_constant(0)});
  const auto y = c.reshape(flat, sizes);
  return {c.has(2) ? padded_behind(c, y, sizes, c.wanted_ints(c.in(2), "an output_shape")) : y};
}

}  // namespace

ValueId global_mean(Call& c, ValueId x) {
  ReduceMean op;
  op.keep_dims = true;
  return c.add(op, {x, c.axes_from(x, 2)});
}

void register_pooling(ConverterTable& t) {
  t.add("AveragePool", convert_average_pool);
  t.add("GlobalAveragePool", global<ReduceMean>);
  t.add("GlobalLpPool", convert_global_lp_pool);
  t.add("GlobalMaxPool", global<ReduceMax>);
  t.add("LpPool", convert_lp_pool);
  t.add("MaxPool", convert_max_pool);
  t.add("MaxUnpool", convert_max_unpool);
}

}  // namespace lamina::onnx
