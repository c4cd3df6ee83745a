/// All integer types with values over their whole range: arithmetic, conversions, order, reductions, windows.
#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "ops/reduction.h"
#include "ops/sorting.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

/// An integer value of the graph, or a new input.
ValueId integer(GraphBuilder& b, std::size_t low_rank = 0, std::size_t high_rank = 6) {
  const auto old = b.pick([&](ValueId v) {
    return is_integer(b.element(v)) && bits_of(b.element(v)) >= 8 && b.rank(v) >= low_rank &&
           b.rank(v) <= high_rank;
  });
  if (old && b.percent(85)) return *old;
  Dims dims{b.batch(), b.channels()};
  while (dims.size() < std::max<std::size_t>(low_rank, 3)) dims.push_back(b.extent());
  return b.wide_input(b.one_of(integer_types()), dims);
}

/// Integers of x's type that broadcast to it: any, small ones or one number.
ValueId operand(GraphBuilder& b, ValueId x) {
  const auto dims = b.percent(30) ? Dims{} : b.broadcastable(b.dims(x));
  const auto type = b.element(x);
  switch (b.below(5)) {
    case 0:
      return b.constant(seeded_tensor(type, dims, static_cast<std::uint64_t>(b.below(1000))));
    case 1:
      return b.wide_input(type, dims);
    case 2: {
      const auto same = b.pick([&](ValueId v) { return b.element(v) == type && b.dims(v) == b.dims(x); });
      return same.value_or(x);
    }
    default:
      return b.wide_constant(type, dims);
  }
}

void add_unary(GraphBuilder& b) {
  static const std::vector<Op> all{Abs{},  Negative{}, Sign{},  Ceiling{}, Floor{}, BitwiseNot{},
                                   Relu{}, Round{},    Clamp{}, Abs{},     Relu{},  BitwiseNot{}};
  const auto x = integer(b);
  if (b.percent(25)) {
    const auto low = b.one_of<double>({0, -3, -128, -1e9, -INFINITY, 5});
    b.add(Clamp{low, b.one_of<double>({6, 127, 255, 65535, 1e10, 0x1p63, INFINITY})}, {x});
    return;
  }
  b.add(b.one_of(all), {x});
}

void add_binary(GraphBuilder& b) {
  static const std::vector<Op> all{
      Add{},     Subtract{}, Multiply{},   Maximum{},   Minimum{},    Divide{true},        Divide{false},
      Mod{},     FloorMod{}, BitwiseAnd{}, BitwiseOr{}, BitwiseXor{}, SquaredDifference{}, Maximum{},
      Minimum{}, Mod{},      Divide{}};
  const auto x = integer(b);
  const auto other = operand(b, x);
  const bool swapped = b.percent(30);
  b.add(b.one_of(all), {swapped ? other : x, swapped ? x : other});
}

void add_shift(GraphBuilder& b) {
  const auto x = integer(b);
  const auto type = b.element(x);
  const auto dims = b.percent(50) ? Dims{} : b.broadcastable(b.dims(x));
  Ints counts(element_count(dims));
  for (auto& c : counts) c = b.below(bits_of(type));
  b.add(b.one_of<Op>({BitwiseLeftShift{}, BitwiseRightShift{}}),
        {x, b.constant(from_ints(type, dims, counts))});
}

void add_power(GraphBuilder& b) {
  const auto x = integer(b);
  b.add(Power{}, {x, b.constant(from_ints(b.element(x), {}, {b.below(5)}))});
}

void add_comparison(GraphBuilder& b) {
  const auto x = integer(b);
  const auto other = operand(b, x);
  const auto which =
      b.add(b.one_of<Op>({Less{}, LessEqual{}, Greater{}, GreaterEqual{}, Equal{}, NotEqual{}}), {x, other});
  if (!which || b.percent(40)) return;
  const auto third = operand(b, x);
  b.add(Select{}, {*which, x, third});
}

/// Every pair of types; floats that are too large for others only scaled down at once.
void add_conversion(GraphBuilder& b) {
  const auto x = integer(b);
  const auto kind = b.below(10);
  if (kind < 6) {
    b.add(Convert{b.one_of(integer_types())}, {x});
  } else if (kind == 6) {
    b.add(Convert{ElementType::boolean}, {x});
  } else if (kind == 7) {  // four bits and back
    const auto packed = b.add(Convert{b.one_of({ElementType::i4, ElementType::u4})}, {x});
    if (packed) b.add(Convert{b.one_of(integer_types())}, {*packed});
  } else {
    const auto type = b.one_of({ElementType::f32, ElementType::f32, ElementType::f64});
    const auto scale = from_doubles(type, {}, {std::ldexp(1.0, 3 - bits_of(b.element(x)))});
    const auto large = b.add_unbounded(Convert{type}, {x});
    const auto y = large ? b.add(Multiply{}, {*large, b.constant(scale)}) : large;
    if (y && type != ElementType::f32) b.add(Convert{ElementType::f32}, {*y});
  }
}

/// Floats of any size, the infinities too, become integers.
void add_conversion_of_floats(GraphBuilder& b) {
  const auto type = b.one_of({ElementType::f32, ElementType::f32, ElementType::f64});
  const Dims dims{b.batch(), b.channels(), b.extent()};
  const auto x = b.percent(70) ? b.wide_input(type, dims) : b.wide_constant(type, dims);
  b.add(Convert{b.percent(85) ? b.one_of(integer_types()) : ElementType::boolean}, {x});
}

template <class T>
Op reduction(bool keep_dims) {
  T op;
  op.keep_dims = keep_dims;
  return op;
}

void add_reduction(GraphBuilder& b) {
  const auto x = integer(b, 1);
  const bool keep = b.percent(50);
  const auto op =
      b.one_of<Op>({reduction<ReduceMean>(keep), reduction<ReduceSum>(keep), reduction<ReduceMax>(keep),
                    reduction<ReduceMin>(keep), reduction<ReduceProd>(keep), reduction<ReduceL1>(keep),
                    reduction<ReduceMax>(keep), reduction<ReduceMin>(keep)});
  Ints axes;
  for (std::size_t i = 0; i < b.rank(x); ++i)
    if (b.percent(40)) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) axes.push_back(b.percent(50) ? -1 : 0);
  b.add(op, {x, b.ints(axes)});
}

void add_order(GraphBuilder& b) {
  const auto x = integer(b, 1);
  TopK op;
  op.axis = b.below(static_cast<std::int64_t>(b.rank(x)));
  op.mode = b.one_of({TopKMode::max, TopKMode::min});
  op.sort = b.one_of({TopKSort::value, TopKSort::value, TopKSort::index});
  op.index_element_type = b.one_of({ElementType::i32, ElementType::i64});
  const auto size = b.dims(x)[static_cast<std::size_t>(op.axis)];
  b.add_many(op, {x, b.ints({b.percent(40) ? 1 : b.between(1, size)}, true)}, 2);
}

void add_running_sum(GraphBuilder& b) {
  const auto x = integer(b, 1);
  const auto axis = b.below(static_cast<std::int64_t>(b.rank(x)));
  b.add(CumSum{b.percent(30), b.percent(30)}, {x, b.ints({axis}, true)});
}

void add_scatter(GraphBuilder& b) {
  const auto x = integer(b, 1, 4);
  auto dims = b.dims(x);
  const auto axis = b.below(static_cast<std::int64_t>(dims.size()));
  const auto size = dims[static_cast<std::size_t>(axis)];
  dims[static_cast<std::size_t>(axis)] = b.between(1, 3);
  Ints indices(element_count(dims));
  for (auto& i : indices) i = b.between(-size, size - 1);
  ScatterElementsUpdate op;
  op.reduction = b.one_of({ElementsReduction::sum, ElementsReduction::prod, ElementsReduction::min,
                           ElementsReduction::max, ElementsReduction::max, ElementsReduction::mean});
  op.use_init_val = b.percent(70);
  b.add(op, {x, b.constant(Tensor::of<std::int64_t>(dims, indices)), b.wide_constant(b.element(x), dims),
             b.ints({axis}, true)});
}

void add_pooling(GraphBuilder& b) {
  const auto x = integer(b, 3, 5);
  const auto axes = b.rank(x) - 2;
  if (b.percent(20)) {
    Ints sizes;
    for (std::size_t i = 0; i < axes; ++i) sizes.push_back(b.between(1, 4));
    if (b.percent(50))
      b.add_many(AdaptiveMaxPool{}, {x, b.ints(sizes)});
    else
      b.add(AdaptiveAvgPool{}, {x, b.ints(sizes)});
    return;
  }
  Window w;
  const Ints kernel(axes, b.between(1, 3));
  w.strides = Ints(axes, b.between(1, 2));
  w.pads_begin = w.pads_end = Ints(axes, b.below(kernel[0]));
  if (b.percent(60)) {
    MaxPool op;
    static_cast<Window&>(op) = w;
    op.kernel = kernel;
    b.add_many(op, {x}, b.percent(20) ? 2 : 1);
    return;
  }
  AvgPool op;
  static_cast<Window&>(op) = w;
  op.kernel = kernel;
  op.exclude_pad = b.percent(50);
  b.add(op, {x});
}

void add_product(GraphBuilder& b) {
  const auto x = integer(b, 2, 4);
  const auto k = b.dims(x).back();
  const Dims w{k, b.channels()};
  const auto type = b.element(x);
  const auto other = b.percent(60) ? b.wide_constant(type, w) : b.wide_input(type, w);
  b.add(MatMul{}, {x, other});
}

void add_search(GraphBuilder& b) {
  const auto x = integer(b);
  const auto type = b.element(x);
  auto limits = to_ints(seeded_tensor(type, {4}, static_cast<std::uint64_t>(b.below(100))));
  std::sort(limits.begin(), limits.end());
  Bucketize op;
  op.with_right_bound = b.percent(50);
  b.add(op, {x, b.constant(from_ints(type, {4}, limits))});
}

}  // namespace

const std::vector<ElementType>& integer_types() {
  static const std::vector<ElementType> all{ElementType::i8,  ElementType::u8,  ElementType::i16,
                                            ElementType::u16, ElementType::i32, ElementType::u32,
                                            ElementType::i64, ElementType::u64};
  return all;
}

void add_integer_families(Families& families) {
  families.push_back({"integer unary", 3, add_unary});
  families.push_back({"integer binary", 8, add_binary});
  families.push_back({"integer shift", 2, add_shift});
  families.push_back({"integer power", 1, add_power});
  families.push_back({"integer comparison", 3, add_comparison});
  families.push_back({"integer conversion", 5, add_conversion});
  families.push_back({"conversion of wide floats", 2, add_conversion_of_floats});
  families.push_back({"integer reduction", 3, add_reduction});
  families.push_back({"integer order", 2, add_order});
  families.push_back({"integer running sum", 1, add_running_sum});
  families.push_back({"integer scatter", 1, add_scatter});
  families.push_back({"integer pooling", 2, add_pooling});
  families.push_back({"integer product", 2, add_product});
  families.push_back({"integer search", 1, add_search});
}

}  // namespace lamina::testing
