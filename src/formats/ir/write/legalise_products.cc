// Convolutions, matrix products and attention: lamina's have a bias, groups, zero points, and integers whose
// sums are exact.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/ir/write/legalise.h"
#include "ops/attention.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "ops/sorting.h"

namespace lamina::ir {
namespace {

/// Small integers are multiplied in floating point, where their sums are whole numbers, too.
bool is_small_integer(ElementType type) { return is_integer(type) && bits_of(type) <= 16; }

/// The type that holds their sums: f32 for products of bytes, f64 for wider ones.
ElementType type_of_sums(Legalisation& c) {
  const bool wide = bits_of(c.element(c.in(0))) > 8 || bits_of(c.element(c.in(1))) > 8;
  return wide ? ElementType::f64 : ElementType::f32;
}

/// An operand less its zero point, which has been brought into the right shape.
ValueId centred(Legalisation& c, ValueId operand, ValueId zero_point, const std::string& name) {
  const ElementType type = type_of_sums(c);
  const ValueId wide = c.converted(operand, type, name);
  if (!zero_point.valid()) return wide;
  const ValueId zero = c.converted(zero_point, type, name + "_zero_point");
  return c.add(Subtract{}, {wide, zero}, name + "_centred");
}

/// Converts sums by way of i64: numbers too large for i32 wrap, as lamina's sums do.
ValueId as_integers(Legalisation& c, ValueId sums) {
  const ValueId whole = c.add(Round{}, {sums}, "whole");
  if (c.element(sums) == ElementType::f32) return c.converted(whole, ElementType::i32, "sums");
  return c.converted(c.converted(whole, ElementType::i64, "wide_sums"), ElementType::i32, "sums");
}

/// The bias, of as many elements as there are channels, behind a convolution.
ValueId with_bias(Legalisation& c, ValueId y, std::size_t rank) {
  if (!c.has(2)) return y;
  const ValueId bias = c.along(c.in(2), 1, rank, "bias");
  return c.add(Add{}, {y, c.converted(bias, c.element(y), "bias_like")}, "biased");
}

/// One zero point, or one per index of the first axis.
ValueId first_axis(Legalisation& c, ValueId zero_point, std::size_t rank, const std::string& name) {
  if (!zero_point.valid() || c.rank(zero_point) == 0) return zero_point;
  return c.along(zero_point, 0, rank, name);
}

bool wants_wide_operands(Legalisation& c, ElementType sums) {
  return sums == ElementType::f32 && c.element(c.in(0)) != ElementType::f32;
}

std::vector<ValueId> convolution(Legalisation& c) {
  const auto& op = c.op<Convolution>();
  const bool whole = is_small_integer(c.element(c.in(0))), wide = wants_wide_operands(c, op.sums);
  if (!c.has(2) && !c.has(3) && !c.has(4) && !whole && !wide) return {};
  const std::size_t rank = c.rank(c.in(1));
  ValueId x = c.in(0), weights = c.in(1);
  if (whole) {
    x = centred(c, x, c.has(3) ? c.scalar(c.in(3), "x_zero") : ValueId(), "x");
    weights = centred(c, weights, first_axis(c, c.in(4), rank, "w_zero"), "w");
  } else if (wide) {
    x = c.converted(x, ElementType::f32, "x_f32");
    weights = c.converted(weights, ElementType::f32, "w_f32");
  }
  Convolution plain = op;
  plain.sums = ElementType::undefined;
  ValueId y = c.add(plain, {x, weights}, "products");
  if (whole) y = as_integers(c, y);
  return {with_bias(c, y, rank)};
}

/// One zero point, or one per output of [I, O / groups, ...], as it meets these weights.
ValueId transposed_zero_point(Legalisation& c, std::int64_t groups, std::size_t rank) {
  const ValueId zero = c.in(5);
  if (!zero.valid() || c.rank(zero) == 0) return zero;
  if (groups == 1 || c.shape(zero)[0].is(1)) return c.along(zero, 1, rank, "w_zero");
  const auto* numbers = c.constant(zero);
  const auto& w = c.shape(c.in(1));
  if (!numbers || !w[0].known() || !w[1].known()) c.refuse("zero points by group that are computed");
  const auto inputs = w[0].size(), outputs = w[1].size();
  const auto given = to_ints(*numbers);
  Ints of_each;
  for (std::int64_t i = 0; i < inputs; ++i)
    for (std::int64_t o = 0; o < outputs; ++o)
      of_each.push_back(given[static_cast<std::size_t>(i / (inputs / groups) * outputs + o)]);
  Dims dims(rank, 1);
  dims[0] = inputs, dims[1] = outputs;
  return c.add_constant(from_ints(numbers->element_type(), dims, of_each), "w_zero");
}

std::vector<ValueId> transposed_convolution(Legalisation& c) {
  const auto& op = c.op<ConvolutionBackpropData>();
  const bool whole = is_small_integer(c.element(c.in(0))), wide = wants_wide_operands(c, op.sums);
  if (!c.has(2) && !whole && !wide) return {};
  const std::size_t rank = c.rank(c.in(1));
  ValueId x = c.in(0), weights = c.in(1);
  if (whole) {
    x = centred(c, x, c.has(4) ? c.scalar(c.in(4), "x_zero") : ValueId(), "x");
    weights = centred(c, weights, transposed_zero_point(c, op.groups, rank), "w");
  } else if (wide) {
    x = c.converted(x, ElementType::f32, "x_f32");
    weights = c.converted(weights, ElementType::f32, "w_f32");
  }
  ConvolutionBackpropData plain = op;
  plain.sums = ElementType::undefined;
  std::vector<ValueId> inputs = {x, weights};
  if (c.has(3)) inputs.insert(inputs.end(), {ValueId(), c.in(3)});
  ValueId y = c.add(plain, inputs, "products");
  if (whole) y = as_integers(c, y);
  return {with_bias(c, y, rank)};
}

/// Bits [from, from + count) of a packed tensor.
Tensor bits_of_group(const Tensor& bits, Dims dims, std::size_t from, std::size_t count) {
  Tensor out(ElementType::u1, std::move(dims));
  const auto* in = reinterpret_cast<const std::uint8_t*>(bits.raw());
  auto* to = reinterpret_cast<std::uint8_t*>(out.raw());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = from + i;
    if ((in[at / 8] >> (at % 8)) & 1U) to[i / 8] = static_cast<std::uint8_t>(to[i / 8] | (1U << (i % 8)));
  }
  return out;
}

/// OpenVINO's has no groups: one convolution for each of them.
std::vector<ValueId> binary_convolution(Legalisation& c) {
  const auto& op = c.op<BinaryConvolution>();
  if (op.groups == 1) return {};
  if (!c.constant(c.in(1))) c.refuse("groups of weights that are computed");
  const Tensor weights = *c.constant(c.in(1));
  Dims dims = weights.shape();
  dims[0] /= op.groups;
  const std::size_t count = element_count(dims);
  const auto parts = c.add_many(Split{op.groups}, {c.in(0), c.integer(1, "channels")},
                                static_cast<int>(op.groups), "groups");
  BinaryConvolution one = op;
  one.groups = 1;
  std::vector<ValueId> results;
  for (std::size_t g = 0; g < parts.size(); ++g) {
    const ValueId of_group =
        c.add_constant(bits_of_group(weights, dims, g * count, count), fmt::format("weights{}", g));
    results.push_back(c.add(one, {parts[g], of_group}, fmt::format("group{}", g)));
  }
  return {c.add(Concat{1}, results, "joined")};
}

/// The last two axes exchanged.
ValueId transposed(Legalisation& c, ValueId value, const std::string& name) {
  const std::size_t rank = c.rank(value);
  if (rank < 2) return value;
  Ints order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[rank - 1], order[rank - 2]);
  return c.add(Transpose{}, {value, c.ints(order, name + "_order")}, name + "_transposed");
}

/// An operand of a product of integers, not transposed any more. Zero points of rank 1 belong to rows of a
/// and to columns of b.
ValueId factor(Legalisation& c, std::size_t i, bool transpose, const std::string& name) {
  ValueId operand = transpose ? transposed(c, c.in(i), name) : c.in(i);
  ValueId zero = c.in(i + 3);
  if (zero.valid() && i == 0 && c.rank(zero) == 1 && !c.shape(zero)[0].is(1) && c.rank(operand) > 1)
    zero = c.reshaped(zero, {-1, 1}, name + "_rows");
  return centred(c, operand, zero, name);
}

std::vector<ValueId> matrix_product(Legalisation& c) {
  const auto& op = c.op<MatMul>();
  const bool whole = is_small_integer(c.element(c.in(0))), wide = wants_wide_operands(c, op.sums);
  if (!c.has(2) && !c.has(3) && !c.has(4) && !whole && !wide) return {};
  if ((c.has(3) || c.has(4)) && !whole) c.refuse("zero points of {}", name_of(c.element(c.in(0))));
  ValueId y;
  if (whole) {
    y = c.add(MatMul{}, {factor(c, 0, op.transpose_a, "a"), factor(c, 1, op.transpose_b, "b")}, "products");
    y = as_integers(c, y);
  } else {
    const auto operand = [&](std::size_t i, const char* name) {
      return wide ? c.converted(c.in(i), ElementType::f32, name) : c.in(i);
    };
    y = c.add(MatMul{op.transpose_a, op.transpose_b}, {operand(0, "a_f32"), operand(1, "b_f32")}, "products");
  }
  if (!c.has(2)) return {y};
  return {c.add(Add{}, {y, c.converted(c.in(2), c.element(y), "bias_like")}, "biased")};
}

/// True where a row may see a column: columns up to the row's own index.
ValueId causal_mask(Legalisation& c) {
  const auto count = [&](ValueId of, const std::string& name) {
    const ValueId size = c.size_of(of, -2, name + "_count");
    return c.add(Range{ElementType::i64}, {c.integer(0, name + "_first"), size, c.integer(1, name + "_step")},
                 name);
  };
  const ValueId rows = c.reshaped(count(c.in(0), "rows"), {-1, 1}, "rows_down");
  return c.add(LessEqual{}, {count(c.in(1), "columns"), rows}, "causal");
}

/// What is added to the scores; invalid: nothing.
ValueId added_mask(Legalisation& c, ElementType type, bool causal) {
  ValueId mask = causal ? causal_mask(c) : c.in(3);
  if (!mask.valid() || c.element(mask) != ElementType::boolean) return mask;
  const ValueId none = c.number(0, type, "seen");
  const ValueId least = c.number(-std::numeric_limits<double>::infinity(), type, "unseen");
  return c.add(Select{}, {mask, none, least}, "mask");
}

ValueId attention_scale(Legalisation& c, ElementType type) {
  if (c.has(4)) return c.converted(c.scalar(c.in(4), "scale"), type, "scale_like");
  const Shape& query = c.shape(c.in(0));
  if (query.ranked() && query.rank() > 0 && query[query.rank() - 1].known())
    return c.number(1 / std::sqrt(static_cast<double>(query[query.rank() - 1].size())), type, "scale");
  const ValueId size = c.converted(c.size_of(c.in(0), -1, "width"), type, "width_like");
  return c.add(Power{}, {size, c.number(-0.5, type, "minus_half")}, "scale");
}

/// Attention is an operator from opset13 on; its scale comes after a mask.
std::vector<ValueId> attention(Legalisation& c) {
  const auto& op = c.op<ScaledDotProductAttention>();
  const ElementType type = c.element(c.in(0));
  if (c.version() > 10) {
    if (!c.has(4) || c.has(3)) return {};
    const ValueId no_mask = c.number(0, type, "no_mask");
    return {c.add(op, {c.in(0), c.in(1), c.in(2), no_mask, c.scalar(c.in(4), "scale")}, "attention")};
  }
  const ValueId query = c.add(Multiply{}, {c.in(0), attention_scale(c, type)}, "query");
  ValueId scores = c.add(MatMul{false, true}, {query, c.in(1)}, "scores");
  if (const ValueId mask = added_mask(c, type, op.causal); mask.valid())
    scores = c.add(Add{}, {scores, mask}, "masked");
  const ValueId weights = c.add(Softmax{-1}, {scores}, "weights");
  return {c.add(MatMul{}, {weights, c.in(2)}, "attention")};
}

/// A piece of a matrix [..., m, n] along its last two axes.
ValueId block(Legalisation& c, ValueId matrix, std::pair<std::int64_t, std::int64_t> rows,
              std::pair<std::int64_t, std::int64_t> columns, const std::string& name) {
  return c.add(Slice{},
               {matrix, c.ints({rows.first, columns.first}, name + "_from"),
                c.ints({rows.second, columns.second}, name + "_to"), c.ints({1, 1}, name + "_steps"),
                c.ints({-2, -1}, name + "_axes")},
               name);
}

/// One step of elimination: the row with the largest first element comes to the top.
struct Elimination {
  ValueId rest;    ///< the matrix without its first row and column
  ValueId factor;  ///< of the determinant, [..., 1, 1]
};
Elimination eliminate(Legalisation& c, ValueId matrix, std::int64_t n, const std::string& name) {
  constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();
  const ElementType type = c.element(matrix);
  const ValueId zero = c.number(0, type, name + "_zero"), one = c.number(1, type, name + "_one");
  const ValueId first =
      c.add(Abs{}, {block(c, matrix, {0, kEnd}, {0, 1}, name + "_column")}, name + "_sizes");
  TopK largest;
  largest.axis = -2;
  largest.stable = true;
  const ValueId place = c.add_many(largest, {first, c.integer(1, name + "_k")}, 2, name + "_largest")[1];
  Ints counted(static_cast<std::size_t>(n));
  std::iota(counted.begin(), counted.end(), 0);
  const ValueId rows = c.converted(c.reshaped(c.ints(counted, name + "_count"), {n, 1}, name + "_rows"),
                                   c.element(place), name + "_rows_like");
  const ValueId chosen = c.add(Equal{}, {rows, place}, name + "_chosen");  // [..., n, 1]
  const ValueId picks = c.add(Select{}, {chosen, one, zero}, name + "_picks");
  const ValueId pivot_row = c.add(MatMul{true, false}, {picks, matrix}, name + "_pivot_row");
  const ValueId top_row = block(c, matrix, {0, 1}, {0, kEnd}, name + "_top_row");
  const ValueId exchanged = c.add(Select{}, {chosen, top_row, matrix}, name + "_exchanged");
  const ValueId pivot = block(c, pivot_row, {0, 1}, {0, 1}, name + "_pivot");
  const ValueId none = c.add(Equal{}, {pivot, zero}, name + "_singular");
  const ValueId divisor = c.add(Select{}, {none, one, pivot}, name + "_divisor");
  const ValueId scale =
      c.add(Divide{}, {block(c, exchanged, {1, kEnd}, {0, 1}, name + "_below"), divisor}, name + "_scale");
  const ValueId taken =
      c.add(Multiply{}, {scale, block(c, pivot_row, {0, 1}, {1, kEnd}, name + "_right")}, name + "_taken");
  const ValueId rest =
      c.add(Subtract{}, {block(c, exchanged, {1, kEnd}, {1, kEnd}, name + "_inner"), taken}, name + "_rest");
  const ValueId stays =
      c.add(Equal{}, {place, c.number(0, c.element(place), name + "_first")}, name + "_stays");
  const ValueId sign = c.add(Select{}, {stays, one, c.number(-1, type, name + "_minus_one")}, name + "_sign");
  return {rest, c.add(Multiply{}, {pivot, sign}, name + "_factor")};
}

std::vector<ValueId> determinant(Legalisation& c) {
  constexpr std::int64_t kLargest = 64;
  const Shape shape = c.shape(c.in(0));
  const bool known = shape.ranked() && shape.rank() >= 2 && shape[shape.rank() - 1].known();
  const std::int64_t n = known ? shape[shape.rank() - 1].size() : 0;
  if (n < 1 || n > kLargest) c.refuse("determinants of matrices {}", to_string(shape));
  ValueId matrix = c.in(0), product;
  for (std::int64_t k = n; k > 1; --k) {
    const std::string name = fmt::format("step{}", n - k);
    const auto [rest, factor] = eliminate(c, matrix, k, name);
    product = product.valid() ? c.add(Multiply{}, {product, factor}, name) : factor;
    matrix = rest;
  }
  product = product.valid() ? c.add(Multiply{}, {product, matrix}, "last") : matrix;
  return {c.add(Squeeze{}, {product, c.ints({-2, -1}, "axes")}, "determinant")};
}

}  // namespace

void register_products(LegalisationTable& t) {
  t.add("Convolution", convolution);
  t.add("ConvolutionBackpropData", transposed_convolution);
  t.add("BinaryConvolution", binary_convolution);
  t.add("MatMul", matrix_product);
  t.add("ScaledDotProductAttention", attention);
  t.add("Determinant", determinant);
}

}  // namespace lamina::ir
