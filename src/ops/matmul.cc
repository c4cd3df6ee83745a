#include "ops/matmul.h"

#include "base/parallel.h"
#include "graph/op_model.h"
#include "ops/operators.h"
#include "ops/product.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// Shape of an operand as a matrix: batch dims, rows, columns. Rank 1 becomes a row (left) or a column
/// (right).
std::vector<Dim> as_matrix(const Shape& shape, bool transpose, bool left) {
  auto dims = shape.dims();
  if (dims.size() == 1) {
    dims.insert(left ? dims.begin() : dims.end(), Dim(1));
  } else if (transpose) {
    std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
  }
  return dims;
}

ElementType product_element(const InferContext& c, ElementType sums) {
  require_number(c, 0, "left operand");
  require_number(c, 1, "right operand");
  const auto a = c.element(0), b = c.element(1);
  if (a == ElementType::undefined || b == ElementType::undefined) return ElementType::undefined;
  if (is_float(a) || is_float(b)) {
    require_same_element(c, 0, 1, "right operand");
    return sums_element(c, a, sums);
  }
  c.require(sums == ElementType::undefined, "sums of {}, wanted those of floats", name_of(a));
  if (bits_of(a) <= 16 && bits_of(b) <= 16) return ElementType::i32;
  require_same_element(c, 0, 1, "right operand");
  return a;
}

Shape batch_of(const std::vector<Dim>& matrix) {
  return Shape(std::vector<Dim>(matrix.begin(), matrix.end() - 2));
}

/// Zero points: one, one per row (column), or broadcasting with 1 along k.
void check_zero_point(const InferContext& c, std::size_t i, const std::vector<Dim>& matrix, bool left) {
  if (!c.has(i)) return;
  const std::string_view name = left ? "zero point of the left operand" : "zero point of the right operand";
  require_integer(c, i, name);
  c.require(c.element(0) == ElementType::undefined || is_integer(c.element(0)),
            "{} operands have a zero point, wanted integers", name_of(c.element(0)));
  require_same_element(c, left ? 0 : 1, i, name);
  const auto& s = c.shape(i);
  if (!s.ranked() || one_element(s)) return;
  const std::size_t rank = matrix.size();
  if (s.rank() == 1) return require_shape(c, i, Shape{left ? matrix[rank - 2] : matrix[rank - 1]}, name);
  c.require(s.rank() > 0, "{} has shape {}, wanted one element", name, to_string(s));
  auto wanted = matrix;
  wanted[left ? rank - 1 : rank - 2] = 1;
  require_broadcast(c, i, Shape(std::move(wanted)), name);
}

/// What one operand's zero points are at each of its rows (columns), matrix after matrix.
template <class S>
std::vector<S> zero_points(const EvalContext& c, std::size_t i, const Dims& matrix, bool left) {
  if (!c.has(i)) return {};
  auto to = matrix;
  to[to.size() - (left ? 1 : 2)] = 1;
  Dims from = c.dims(i);
  if (c.in(i).size() == 1) from.clear();
  if (from.size() == 1 && left) from.push_back(1);
  const auto values = broadcast_values(c.doubles(i), from, to);
  return std::vector<S>(values.begin(), values.end());
}

struct Problem {
  Dims a, b;  // as matrices, untransposed
  std::int64_t batch, rows, cols, depth;
  std::vector<std::int64_t> a_matrix, b_matrix;  // which matrix of a and b each product takes
};

Problem problem(const MatMul& op, const EvalContext& c) {
  Problem p;
  const auto matrix = [](const Dims& dims, bool transpose, bool left) {
    const auto m = as_matrix(Shape::of(dims), transpose, left);
    return Shape(m).sizes();
  };
  p.a = matrix(c.dims(0), op.transpose_a, true);
  p.b = matrix(c.dims(1), op.transpose_b, false);
  p.rows = p.a[p.a.size() - 2];
  p.depth = p.a.back();
  p.cols = p.b.back();
  const auto leading = [](const Dims& matrix) { return Dims(matrix.begin(), matrix.end() - 2); };
  const auto batch = broadcast(Shape::of(leading(p.a)), Shape::of(leading(p.b)));
  const auto dims = batch.value().sizes();
  p.batch = volume(dims, 0, dims.size());
  p.a_matrix = broadcast_offsets(leading(p.a), dims);
  p.b_matrix = broadcast_offsets(leading(p.b), dims);
  return p;
}

constexpr std::int64_t kProductGrain = 200'000;  // products that are worth a thread

/// Loops over a block of a matrix in the order in which it lies in memory.
template <class S, class T>
void fill(const S* matrix, std::int64_t row_stride, std::int64_t col_stride, std::int64_t first,
          std::int64_t last, std::int64_t k0, std::int64_t k1, const S* zero, const Strips<T>& strips) {
  const auto element = [&](std::int64_t i, std::int64_t k) {
    strips.at(k - k0, i - first) =
        static_cast<T>(matrix[i * row_stride + k * col_stride]) - (zero ? static_cast<T>(zero[i]) : T(0));
  };
  if (col_stride == 1) {
    for (std::int64_t i = first; i < last; ++i)
      for (std::int64_t k = k0; k < k1; ++k) element(i, k);
  } else {
    for (std::int64_t k = k0; k < k1; ++k)
      for (std::int64_t i = first; i < last; ++i) element(i, k);
  }
}

template <class S>
std::vector<Sum<S>> multiply(const MatMul& op, const EvalContext& c, const Problem& p) {
  using T = Sum<S>;
  const Elements<S> a(c, 0), b(c, 1);
  const auto a_zero = zero_points<S>(c, 3, p.a, true), b_zero = zero_points<S>(c, 4, p.b, false);
  const bool a_columns = op.transpose_a && c.dims(0).size() > 1,
             b_columns = op.transpose_b && c.dims(1).size() > 1;
  const Pieces rows(p.rows, kTileRows), cols(p.cols, kTileCols);
  std::vector<T> y(static_cast<std::size_t>(p.batch * p.rows * p.cols));
  const std::int64_t work = std::max<std::int64_t>(1, rows.size * cols.size * p.depth);
  parallel_for(
      p.batch * rows.number * cols.number, kProductGrain / work, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t n = task % cols.number, m = task / cols.number % rows.number,
                             batch = task / (cols.number * rows.number);
          const std::int64_t ia = p.a_matrix[static_cast<std::size_t>(batch)],
                             ib = p.b_matrix[static_cast<std::size_t>(batch)];
          const std::int64_t m0 = rows.begin(m), m1 = rows.end(m), n0 = cols.begin(n), n1 = cols.end(n);
          const auto sums = tile_product<T>(
              m1 - m0, n1 - n0, p.depth,
              [&](std::int64_t k0, std::int64_t k1, const Strips<T>& strips) {
                fill(a.data() + ia * p.rows * p.depth, a_columns ? 1 : p.depth, a_columns ? p.rows : 1, m0,
                     m1, k0, k1, a_zero.empty() ? nullptr : a_zero.data() + ia * p.rows, strips);
              },
              [&](std::int64_t k0, std::int64_t k1, const Strips<T>& strips) {
                fill(b.data() + ib * p.depth * p.cols, b_columns ? p.depth : 1, b_columns ? 1 : p.cols, n0,
                     n1, k0, k1, b_zero.empty() ? nullptr : b_zero.data() + ib * p.cols, strips);
              });
          T* to = y.data() + batch * p.rows * p.cols;
          for (std::int64_t i = m0; i < m1; ++i)
            for (std::int64_t j = n0; j < n1; ++j) to[i * p.cols + j] = sums.at(i - m0, j - n0);
        }
      });
  return y;
}

template <class S>
void evaluate_as(const MatMul& op, EvalContext& c) {
  const auto p = problem(op, c);
  auto y = multiply<S>(op, c, p);
  if constexpr (std::is_same_v<Sum<S>, double>) {
    if (c.has(2)) {
      const auto bias = broadcast_values(c.doubles(2), c.dims(2), c.out_dims());
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i];
    }
    if (is_float(c.out_element(0))) return c.store(0, y);
    return c.store(0, Ints(y.begin(), y.end()));
  } else {
    Ints values(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) values[i] = static_cast<std::int64_t>(y[i]);
    if (c.has(2)) {
      const auto bias = convert(c.in(2), ElementType::i64);
      const auto from = bias.data<std::int64_t>();
      const auto index = broadcast_offsets(c.dims(2), c.out_dims());
      for (std::size_t i = 0; i < y.size(); ++i)
        values[i] = static_cast<std::int64_t>(
            y[i] + static_cast<std::uint64_t>(from[static_cast<std::size_t>(index[i])]));
    }
    c.store(0, values);
  }
}

}  // namespace

void MatMul::infer(InferContext& c) const {
  const auto element = product_element(c, sums);
  const auto &a = c.shape(0), &b = c.shape(1);
  for (std::size_t i = 0; i < 2; ++i)
    c.require(!c.shape(i).ranked() || c.shape(i).rank() > 0, "operand {} is a scalar, wanted rank 1 or more",
              i);
  if (!a.ranked() || !b.ranked()) return c.set(0, element, Shape());
  const auto left = as_matrix(a, transpose_a, true), right = as_matrix(b, transpose_b, false);
  c.require(left.back().fits(right[right.size() - 2]),
            "operands have shapes {} and {}{}{}: {} columns and {} rows, wanted equal", to_string(a),
            to_string(b), transpose_a ? ", the first transposed" : "",
            transpose_b ? ", the second transposed" : "", to_string(left.back()),
            to_string(right[right.size() - 2]));
  const auto batch = broadcast(batch_of(left), batch_of(right));
  c.require(batch.has_value(), "operands have shapes {} and {}, whose leading dims do not broadcast",
            to_string(a), to_string(b));
  auto out = batch->dims();
  if (a.rank() > 1) out.push_back(left[left.size() - 2]);
  if (b.rank() > 1) out.push_back(right.back());
  Shape shape(std::move(out));
  if (c.has(2)) {
    require_number(c, 2, "bias");
    require_broadcast(c, 2, shape, "bias");
  }
  check_zero_point(c, 3, left, true);
  check_zero_point(c, 4, right, false);
  c.set(0, element, std::move(shape));
}

void MatMul::evaluate(EvalContext& c) const {
  const auto a = c.in(0).element_type(), b = c.in(1).element_type();
  if (a == ElementType::f64) return evaluate_as<double>(*this, c);
  // Integers of up to 16 bits are exact in f32, and sums of their products in f64.
  if (is_float(a) || (bits_of(a) <= 16 && bits_of(b) <= 16)) return evaluate_as<float>(*this, c);
  evaluate_as<std::int64_t>(*this, c);
}

void register_matmul(Registry& r) {
  r.add<MatMul>();
  r.add<Determinant>();
}

}  // namespace lamina
