/// Weights stored in few bits or rounded by a FakeQuantize, moved before they are used, with arithmetic
/// behind what uses them.
#include <algorithm>
#include <numeric>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

/// One number for all, or one for each index of the axis.
Dims along(GraphBuilder& b, const Dims& dims, std::size_t axis) {
  if (b.percent(30)) return {};
  Dims out(dims.size(), 1);
  out[axis] = dims[axis];
  return out;
}

Tensor numbers(GraphBuilder& b, ElementType type, const Dims& dims) {
  const auto [low, high] = integer_range<std::int64_t>(type);
  Ints values(element_count(dims));
  for (auto& v : values) v = b.between(low, high);
  return from_ints(type, dims, values);
}

Made rounded(GraphBuilder& b, const Dims& dims, std::size_t axis) {
  const auto bounds = along(b, dims, axis);
  const auto low = b.floats(bounds, -1.5, -0.25), high = b.floats(bounds, b.percent(20) ? -0.2 : 0.25, 1.5);
  const auto levels = b.one_of<std::int64_t>({2, 3, 16, 255, 256, 256, 65536});
  const bool others = b.percent(20);
  return b.add(FakeQuantize{levels}, {b.floats(dims), low, high, others ? b.floats(bounds, 0.5, 1) : low,
                                      others ? b.floats(bounds, -1, 0.25) : high});
}

Made centred_and_scaled(GraphBuilder& b, const Dims& dims, std::size_t axis) {
  const auto type = b.one_of({ElementType::i8, ElementType::u8, ElementType::u4, ElementType::i4});
  auto y = b.add(Convert{ElementType::f32}, {b.constant(numbers(b, type, dims))});
  if (y && b.percent(50)) {
    const auto zero = b.constant(numbers(b, type, along(b, dims, axis)));
    const auto wide = b.percent(50) ? b.add(Convert{ElementType::f32}, {zero}) : b.floats({}, -3, 3);
    if (wide) y = b.add(Subtract{}, {*y, *wide});
  }
  if (y && b.percent(90)) y = b.add(Multiply{}, {*y, b.floats(along(b, dims, axis), 0.001, 0.02)});
  if (y && b.percent(20)) y = b.add(Multiply{}, {*y, b.floats(along(b, dims, axis), 0.5, 2)});
  return y;
}

Made dequantised(GraphBuilder& b, const Dims& dims, std::size_t axis) {
  const auto type = b.one_of({ElementType::i8, ElementType::u8, ElementType::u4});
  Dequantize op;
  op.axis = static_cast<std::int64_t>(axis);
  Dims scales{dims[axis]};
  if (b.percent(30)) {
    op.block_size = b.between(1, dims[axis]);
    scales = dims;
    scales[axis] = (dims[axis] + op.block_size - 1) / op.block_size;
  }
  std::vector<ValueId> inputs{b.constant(numbers(b, type, dims)), b.floats(scales, 0.001, 0.02)};
  if (b.percent(50)) inputs.push_back(b.constant(numbers(b, type, scales)));
  return b.add(op, std::move(inputs));
}

Made stored(GraphBuilder& b, const Dims& dims, std::size_t axis) {
  switch (b.below(3)) {
    case 0:
      return rounded(b, dims, axis);
    case 1:
      return centred_and_scaled(b, dims, axis);
    default:
      return dequantised(b, dims, axis);
  }
}

/// Stored weights of that shape, some of them in another order or shape before; `axis`: of the outputs.
Made weights(GraphBuilder& b, const Dims& dims, std::size_t axis) {
  if (b.percent(40)) return stored(b, dims, axis);
  if (b.percent(50)) {  // outputs and groups apart
    Dims parts = dims;
    const auto groups = dims[axis] % 2 == 0 ? 2 : 1;
    parts[axis] /= groups;
    parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(axis), groups);
    const auto y = stored(b, parts, axis + static_cast<std::size_t>(b.below(2)));
    return y ? b.add(Reshape{}, {*y, b.ints(Ints(dims))}) : y;
  }
  Ints order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[static_cast<std::size_t>(b.below(static_cast<std::int64_t>(i) + 1))]);
  Dims before(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) before[static_cast<std::size_t>(order[i])] = dims[i];
  const auto y = stored(b, before, static_cast<std::size_t>(order[axis]));
  return y ? b.add(Transpose{}, {*y, b.ints(order)}) : y;
}

Made convolution(GraphBuilder& b, ValueId x) {
  const auto channels = b.dims(x)[1];
  const std::int64_t groups = channels % 2 == 0 && b.percent(30) ? 2 : 1,
                     size = b.one_of<std::int64_t>({1, 3});
  const Dims dims{b.channels() * groups, channels / groups, size, size};
  const auto w = weights(b, dims, 0);
  Convolution op;
  op.groups = groups;
  op.pads_begin = op.pads_end = {size / 2, size / 2};
  return w ? b.add(op, {x, *w}) : w;
}

Made product(GraphBuilder& b, ValueId x) {
  MatMul op;
  op.transpose_b = b.percent(50);
  const auto k = b.dims(x).back(), n = b.channels();
  const auto w = weights(b, op.transpose_b ? Dims{n, k} : Dims{k, n}, op.transpose_b ? 0 : 1);
  return w ? b.add(op, {x, *w}) : w;
}

void add_stored_weights(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 4);
  if (!x) return;
  const bool convolves = b.rank(*x) == 4 && b.percent(70);
  auto y = convolves ? convolution(b, *x) : product(b, *x);
  const auto behind = [&](double low, double high) {
    const std::size_t axis = convolves ? 1 : b.rank(*y) - 1;
    return b.floats(along(b, b.dims(*y), axis), low, high);
  };
  if (y && b.percent(60)) y = b.add(Multiply{}, {*y, behind(0.5, 2)});
  if (y && b.percent(40)) y = b.add(Add{}, {*y, behind(-1, 1)});
}

}  // namespace

void add_stored_families(Families& families) {
  families.push_back({"stored weights", 6, add_stored_weights});
}

}  // namespace lamina::testing
