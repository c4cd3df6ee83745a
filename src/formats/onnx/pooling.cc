/// Poolings by windows and global ones.
#include "ops/pooling.h"

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/window.h"
#include "ops/check_sizes.h"
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

constexpr std::int64_t kMostPixels = 1 << 30;

/// The shape before pooling, i64 [rank].
ValueId unpooled_shape(Call& c, ValueId x) {
  const auto kernel = wanted_kernel(c);
  Window window;
  read_window(c, window, kernel.size());
  const auto axes = kernel.size() + 2;
  if (const auto rank = c.rank(x); rank && *rank != axes)
    c.fail("input has rank {}, kernel_shape {} values", *rank, kernel.size());
  Ints strides(axes, 1), more(axes, 0);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    auto& stride = strides[i + 2];
    if (!window.strides.empty()) stride = window.strides[i];
    const bool padded = !window.pads_begin.empty();
    const auto begin = padded ? window.pads_begin[i] : 0, end = padded ? window.pads_end[i] : 0;
    for (auto number : {kernel[i], stride, begin, end})
      if (std::abs(number) > kMostPixels) c.fail("a window of {} elements on axis {}", number, i + 2);
    more[i + 2] = kernel[i] - stride - begin - end;
  }
  const auto sizes = add(c, multiply(c, c.shape_of(x), c.ints_constant(strides)), c.ints_constant(more));
  if (const auto known = c.known_ints(sizes))
    for (std::size_t i = 2; i < known->size(); ++i)
      if ((*known)[i] <= 0) c.fail("gives an empty result on axis {}", i);
  return folded(c, sizes);
}

/// The shape of what a MaxPool pooled, where the indices are its second result.
std::optional<ValueId> pooled_shape(Call& c, ValueId indices) {
  const auto maker = c.graph().producer(indices);
  if (!maker.valid() || !c.graph().node(maker).op.is<MaxPool>()) return std::nullopt;
  return c.shape_of(c.graph().node(maker).inputs[0]);
}

/// Zeros behind, up to output_shape. Numbers below 0 would crop, which is an error.
ValueId padded_behind(Call& c, ValueId y, ValueId sizes) {
  const auto wanted = c.convert(c.in(2), ElementType::i64);
  const auto all = c.known_ints(wanted), known = c.known_ints(sizes);
  if (all && known) {
    bool fits = all->size() == known->size();
    for (std::size_t i = 0; fits && i < all->size(); ++i) fits = (*all)[i] >= (*known)[i];
    if (!fits) c.fail("output_shape is {}, wanted at least {}", to_string(*all), to_string(*known));
  }
  const auto checked =
      all && known ? wanted
                   : c.add_all(CheckSizes{SizesRule::at_least, "output_shape"}, {wanted, sizes}, 2)[0];
  const auto behind = folded(c, subtract(c, checked, sizes));
  return c.add(Pad{}, {y, c.filled(c.int_constant(0), c.shape_of(sizes)), behind});
}

/// Writes each element to its place in zeros of the size before pooling. Where windows overlap, several
/// elements may have the same place: the last one in the order of the indices (row-major) stays, as in ONNX's
/// own reference, and as ScatterElementsUpdate has it. With output_shape, indices of a
/// MaxPool of the model are counted in what it pooled, which windows do not tell where they left a border
/// out. Other indices are counted in the size that the windows tell, as ONNX's own reference does it (ONNX
/// Runtime counts them in output_shape).
Values convert_max_unpool(Call& c) {
  const auto x = c.in(0), indices = c.in(1);
  auto sizes = unpooled_shape(c, x);
  if (c.has(2)) sizes = folded(c, pooled_shape(c, indices).value_or(sizes));
  ReduceProd product;
  product.keep_dims = true;
  const auto count = folded(c, c.add(product, {sizes, c.ints_constant({0})}));
  const auto zeros = c.filled(c.number_like(0, x), count);
  const auto flat = c.add(ScatterElementsUpdate{},
                          {zeros, c.reshape(indices, Ints{-1}), c.reshape(x, Ints{-1}), c.int_constant(0)});
  const auto y = c.reshape(flat, sizes);
  return {c.has(2) ? padded_behind(c, y, sizes) : y};
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
