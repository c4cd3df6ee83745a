/// Chains of quantised layers: what is between a Dequantize and the next Quantize, as exporters write it.
#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

constexpr int kTries = 4;  // of scales: a value next to a jump is not taken

Tensor integers(GraphBuilder& b, ElementType type, const Dims& dims) {
  Ints values(element_count(dims));
  for (auto& v : values) v = is_signed(type) ? b.between(-128, 127) : b.between(0, 255);
  return from_ints(type, dims, values);
}

ValueId single(GraphBuilder& b, ElementType type, std::int64_t number) {
  return b.constant(from_ints(type, b.percent(70) ? Dims{} : Dims{1}, {number}));
}

/// Scale and zero point that fit the value's range, of few levels.
struct Grid {
  ElementType type;
  ValueId scale, zero;  ///< the second invalid: none
};

Grid grid_of(GraphBuilder& b, ValueId x) {
  Grid grid{b.one_of({ElementType::u8, ElementType::u8, ElementType::i8}), {}, {}};
  const double levels = b.real(15, 60), largest = std::max(b.largest(x), 0.1);
  grid.scale = b.constant(from_doubles(ElementType::f32, {}, {largest / levels}));
  if (grid.type == ElementType::u8 ? b.lowest(x) < 0 : b.percent(30))
    grid.zero = single(b, grid.type, grid.type == ElementType::u8 ? b.between(64, 191) : b.between(-60, 60));
  return grid;
}

Made quantised(GraphBuilder& b, ValueId x, Grid& grid) {
  for (int i = 0; i < kTries; ++i) {
    grid = grid_of(b, x);
    Quantize op;
    op.destination_type = grid.type;
    std::vector<ValueId> inputs{x, grid.scale};
    if (grid.zero.valid()) inputs.push_back(grid.zero);
    if (const auto y = b.add(op, std::move(inputs))) return y;
  }
  return std::nullopt;
}

Made dequantised(GraphBuilder& b, ValueId q, const Grid& grid) {
  std::vector<ValueId> inputs{q, grid.scale};
  if (grid.zero.valid()) inputs.push_back(grid.zero);
  return b.add(Dequantize{}, std::move(inputs));
}

/// What may stand between a Quantize and its Dequantize, or behind both.
Made moved(GraphBuilder& b, ValueId x) {
  const auto rank = b.rank(x);
  switch (b.below(6)) {
    case 0: {
      if (rank < 3 || rank > 5) return x;
      MaxPool op;
      op.kernel = Ints(rank - 2, 2);
      op.strides = Ints(rank - 2, b.between(1, 2));
      op.pads_begin = Ints(rank - 2, 0);
      op.pads_end = Ints(rank - 2, 1);
      return b.add(op, {x});
    }
    case 1: {
      Ints order;
      for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
      return b.add(Transpose{}, {x, b.ints(order)});
    }
    case 2:
      return rank < 2 ? x : b.add(Reshape{}, {x, b.ints({b.dims(x)[0], -1})});
    case 3:
      return b.add(Relu{}, {x});
    default:
      return x;
  }
}

/// A Quantize-Dequantize pair, or the FakeQuantize that stands for one.
Made rounded(GraphBuilder& b, ValueId x) {
  if (b.percent(25)) {
    for (int i = 0; i < kTries; ++i) {
      FakeQuantize op;
      op.levels = b.one_of<std::int64_t>({255, 256, 256, 16});
      const double step = std::max(b.largest(x), 0.1) / b.real(20, 100),
                   below = b.lowest(x) < 0 ? op.levels / 2 : 0;
      const auto low = b.number(static_cast<float>(-below * step)),
                 high = b.number(static_cast<float>((static_cast<double>(op.levels - 1) - below) * step));
      if (const auto y = b.add(op, {x, low, high, low, high})) return y;
    }
    return std::nullopt;
  }
  Grid grid;
  auto y = quantised(b, x, grid);
  if (y && b.percent(40)) y = moved(b, *y);
  if (y) y = dequantised(b, *y, grid);
  return y && b.percent(25) ? moved(b, *y) : y;
}

/// Weights of 8 bits with a scale for each output, as ONNX and as IR write them.
Made weights(GraphBuilder& b, const Dims& dims, std::size_t outputs) {
  const auto type = b.one_of({ElementType::i8, ElementType::i8, ElementType::u8});
  const auto numbers = b.constant(integers(b, type, dims));
  const bool each = b.percent(60);
  const auto count = each ? dims[outputs] : 1;
  const double products = static_cast<double>(element_count(dims)) / static_cast<double>(dims[outputs]);
  std::vector<double> scales(static_cast<std::size_t>(count));
  for (auto& s : scales) s = b.real(0.3, 1) / (90 * std::sqrt(products));
  Dims along(dims.size(), 1);
  along[outputs] = count;
  if (b.percent(30)) {
    auto w = b.add(Convert{ElementType::f32}, {numbers});
    if (w && (type == ElementType::u8 || b.percent(30))) {
      std::vector<double> zeros(scales.size());
      for (auto& z : zeros)
        z = static_cast<double>(
            b.between(type == ElementType::u8 ? 100 : -20, type == ElementType::u8 ? 140 : 20));
      w = b.add(Subtract{}, {*w, b.constant(from_doubles(ElementType::f32, along, zeros))});
    }
    return w ? b.add(Multiply{}, {*w, b.constant(from_doubles(ElementType::f32, along, scales))}) : w;
  }
  Dequantize op;
  op.axis = static_cast<std::int64_t>(outputs);
  const Dims own = each ? Dims{count} : Dims{};
  std::vector<ValueId> inputs{numbers, b.constant(from_doubles(ElementType::f32, own, scales))};
  if (type == ElementType::u8) {
    Ints zeros(scales.size());
    for (auto& z : zeros) z = b.between(100, 140);
    inputs.push_back(b.constant(from_ints(type, own, zeros)));
  }
  return b.add(op, std::move(inputs));
}

Made convolution(GraphBuilder& b, ValueId x) {
  const auto rank = b.rank(x);
  const auto inputs = b.dims(x)[1], size = b.one_of<std::int64_t>({1, 1, 3});
  Convolution op;
  op.groups = b.percent(25) ? inputs : 1;
  const auto outputs = op.groups > 1 ? inputs * b.between(1, 2) : b.percent(40) ? inputs : b.channels();
  Dims w{outputs, inputs / op.groups};
  for (std::size_t i = 2; i < rank; ++i) w.push_back(size);
  op.pads_begin = op.pads_end = Ints(rank - 2, size / 2);
  if (b.percent(20)) op.strides = Ints(rank - 2, 2);
  const auto made = weights(b, w, 0);
  if (!made) return made;
  std::vector<ValueId> all{x, *made};
  if (b.percent(50)) all.push_back(b.floats({outputs}, -0.5, 0.5));
  return b.add(op, std::move(all));
}

Made matrix_product(GraphBuilder& b, ValueId x) {
  const auto depth = b.dims(x).back(), columns = b.channels();
  MatMul op;
  op.transpose_b = b.percent(50);
  const auto w =
      weights(b, op.transpose_b ? Dims{columns, depth} : Dims{depth, columns}, op.transpose_b ? 0 : 1);
  if (!w) return w;
  auto y = b.add(op, {x, *w});
  if (y && b.percent(50)) y = b.add(Add{}, {*y, b.floats({columns}, -0.5, 0.5)});
  return y;
}

Made activated(GraphBuilder& b, ValueId x) {
  switch (b.below(7)) {
    case 0:
    case 1:
      return b.add(Relu{}, {x});
    case 2:
      return b.add(Clamp{0, b.real(0.3, 2)}, {x});
    case 3:
      return b.add(HSwish{}, {x});
    case 4:
      return b.add(PRelu{}, {x, b.number(0.1)});
    case 5:
      return b.add(Multiply{}, {x, b.number(b.real(0.5, 2))});
    default:
      return x;
  }
}

/// Layer after layer, sums with what came before, values that others read.
void add_quantised_layers(GraphBuilder& b) {
  auto x = b.pick_f32(2, 5);
  if (!x) return;
  Made y = rounded(b, *x);
  std::vector<ValueId> before;
  for (auto n = b.between(1, 3); y && n-- > 0;) {
    const auto rank = b.rank(*y);
    if (!b.is_f32(*y) || rank < 2) return;
    before.push_back(*y);
    auto z = rank >= 3 && b.percent(80) ? convolution(b, *y) : matrix_product(b, *y);
    if (z && b.percent(70)) z = activated(b, *z);
    if (z && b.percent(40)) {
      const auto& dims = b.dims(*z);
      const auto same =
          std::find_if(before.begin(), before.end(), [&](ValueId v) { return b.dims(v) == dims; });
      Made r = b.percent(30) ? rounded(b, *z) : z;  // or a sum of what was not rounded
      if (r && same != before.end())
        z = b.add(Add{}, b.percent(50) ? std::vector{*r, *same} : std::vector{*same, *r});
      if (z && b.percent(50)) z = activated(b, *z);
    }
    y = z ? rounded(b, *z) : z;
  }
}

/// Branches with scales of their own are joined, and perhaps rounded again.
void add_joined_grids(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 4);
  if (!x) return;
  const auto first = rounded(b, *x);
  if (!first || b.rank(*first) < 3 || !b.is_f32(*first)) return;
  auto second = convolution(b, *first);
  if (second) second = rounded(b, *second);
  if (!second || b.rank(*second) != b.rank(*first)) return;
  auto y = b.add(Concat{1}, {*first, *second});
  if (y && b.percent(60)) y = rounded(b, *y);
  if (y && b.rank(*y) >= 3) convolution(b, *y);
}

/// The source's own range decides its scale at run time; sums of integers are scaled afterwards.
void add_dynamic_quantisation(GraphBuilder& b) {
  const auto rows = b.between(1, 4), depth = b.between(1, 9), columns = b.channels();
  const auto x = b.input(ElementType::f32, {rows, depth});
  const auto made = b.add_many(DynamicQuantize{}, {x}, 3);
  if (made.size() != 3) return;
  const auto w = b.constant(integers(b, ElementType::i8, {depth, columns}));
  const auto sums = b.add(MatMul{}, {made[0], w, ValueId{}, made[2]});
  auto y = sums ? b.add(Convert{ElementType::f32}, {*sums}) : sums;
  const auto scale = b.add(Multiply{}, {made[1], b.floats({columns}, 0.001, 0.01)});
  if (y && scale) y = b.add(Multiply{}, {*y, *scale});
  if (y && b.percent(50)) y = b.add(Add{}, {*y, b.floats({columns}, -1, 1)});
  if (y) activated(b, *y);
}

}  // namespace

void add_layers(Families& families) {
  families.push_back({"quantised layers", 6, add_quantised_layers});
  families.push_back({"joined grids", 2, add_joined_grids});
  families.push_back({"dynamic quantisation", 1, add_dynamic_quantisation});
}

}  // namespace lamina::testing
