/// Matrix products on the cores of product.h. A constant right operand is packed once; a variable one is read
/// as it lies, or packed on the fly where it lies transposed or its rows end within a vector.
#include "kernels/native/offers.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/native/gemm/bias.h"
#include "kernels/native/gemm/matrices.h"
#include "kernels/native/gemm/product.h"
#include "ops/matmul.h"

namespace lamina {
namespace {

using gemm::MatrixShape;
using gemm::Product;

/// Everything that running needs; made once, shared by threads.
struct Matrices {
  explicit Matrices(const Machine& machine) : main(machine, 0, 0, 1), tail(main) {}

  MatrixShape shape;
  Product main, tail;  ///< tail: the last columns, fewer than a vector, of a right operand read in place
  bool has_tail = false;
  enum class Right { packed, in_place, pack } right = Right::packed;
  bool pack_left = false;
  Tensor weights, bias;  ///< constants, where they are
  // Scratch, in floats; sums that lie apart behind it.
  std::int64_t left_at = 0, left_row = 0, right_at = 0, tail_at = 0, bias_at = 0, scratch = 0;
  bool copy_bias = false;
  std::int64_t bias_size = 0;
};

Product product_of(const Machine& machine, const MatrixShape& s, std::int64_t columns, std::int64_t a_row,
                   bool b_in_place, gemm::Order order, const Epilogue& epilogue) {
  auto p = gemm::plain_product(machine, s.rows, s.depth, columns, a_row, epilogue, order);
  if (b_in_place && !s.transpose_b) p.dots = false;
  const auto a_matrix = s.rows * a_row, b_matrix = b_in_place ? s.depth * s.columns : p.packed_floats();
  auto c_rows = s.rows;
  for (const auto& axis : s.batch) c_rows *= axis.size;
  for (const auto& axis : s.batch) {
    c_rows /= axis.size;
    p.batches.add(axis.size, {axis.a * a_matrix, axis.b * b_matrix, c_rows});
  }
  p.partition(threads_here());
  return p;
}

WorkPartition packing(const Machine& machine, std::int64_t matrices, std::int64_t floats) {
  return partitioned_here(matrices, move_cost(machine, 8.0 * static_cast<double>(matrices * floats)).us());
}

/// Transposed left matrices as rows.
void pack_left(const Matrices& m, const float* from, float* to) {
  const auto& s = m.shape;
  parallel_for(packing(*m.main.machine, s.a_count, s.rows * s.depth), [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i)
      gemm::tiles().pack_transposed(from + i * s.rows * s.depth, s.rows, s.rows, s.depth,
                                    to + i * s.rows * m.left_row, m.left_row);
  });
}

/// Right matrices, or columns [first, ...) of them, as panels.
void pack_right(const MatrixShape& s, const Product& p, std::int64_t first, const float* from, float* to) {
  const std::int64_t row = s.transpose_b ? 1 : s.columns, column = s.transpose_b ? s.depth : 1;
  parallel_for(packing(*p.machine, s.b_count, s.depth * p.panels.columns), [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i)
      p.pack(0, s.depth, from + i * s.depth * s.columns + first * column, row, column,
             to + i * p.packed_floats());
  });
}

class MatMulStep final : public Step {
 public:
  explicit MatMulStep(const Matrices& m) : m_(m) {}

  void bind(const RunArgs& args) override {
    args_ = args;
    auto* scratch = static_cast<float*>(args.scratch);
    gemm::Operands o{};
    o.a = m_.pack_left ? scratch + m_.left_at : static_cast<const float*>(args.in[0]);
    o.c = args.out[0];
    const auto& epilogue = m_.main.epilogue;
    o.add = epilogue.add_at(args, 0);
    o.inputs = args.in;
    o.apart = reinterpret_cast<std::byte*>(scratch + m_.scratch);
    main_ = tail_ = o;
    switch (m_.right) {
      case Matrices::Right::packed:
        main_.b = m_.weights.data<float>().data();
        if (m_.main.order == gemm::Order::lists) main_.b_row = m_.shape.depth;
        break;
      case Matrices::Right::pack:
        main_.b = scratch + m_.right_at;
        break;
      case Matrices::Right::in_place:
        main_.b = static_cast<const float*>(args.in[1]);
        main_.b_row = m_.shape.transpose_b ? m_.shape.depth : m_.shape.columns;
        if (!m_.has_tail) break;
        tail_.b = scratch + m_.tail_at;
        tail_.c = epilogue.out.at<void>(o.c, 0, m_.main.panels.columns);
        tail_.add = epilogue.add_at(args, 0, m_.main.panels.columns);
        tail_.first = m_.main.panels.columns;
        break;
    }
    if (m_.bias.valid()) main_.bias = m_.bias.data<float>().data();
    if (m_.copy_bias) {
      main_.bias = scratch + m_.bias_at;
      tail_.bias = scratch + m_.bias_at + m_.main.panels.columns;
    }
  }

  void run() override {
    auto* scratch = static_cast<float*>(args_.scratch);
    if (m_.copy_bias) {
      const auto* from = static_cast<const float*>(args_.in[2]);
      for (std::int64_t j = 0; j < m_.shape.columns; ++j)
        scratch[m_.bias_at + j] = from[m_.bias_size == 1 ? 0 : j];
    }
    if (m_.pack_left) pack_left(m_, static_cast<const float*>(args_.in[0]), scratch + m_.left_at);
    if (m_.right == Matrices::Right::pack)
      pack_right(m_.shape, m_.main, 0, static_cast<const float*>(args_.in[1]), scratch + m_.right_at);
    if (m_.has_tail)
      pack_right(m_.shape, m_.tail, m_.main.panels.columns, static_cast<const float*>(args_.in[1]),
                 scratch + m_.tail_at);
    gemm::run(m_.main, main_);
    if (m_.has_tail) gemm::run(m_.tail, tail_);
  }

 private:
  const Matrices& m_;
  RunArgs args_{};
  gemm::Operands main_{}, tail_{};
};

class MatMulExecutable final : public Executable {
 public:
  explicit MatMulExecutable(Matrices m) : m_(std::move(m)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<MatMulStep>(m_); }

 private:
  Matrices m_;
};

/// Is the bias something that one list of columns can say?
bool per_column(const NodeView& v, std::int64_t columns) {
  if (!v.has(2)) return true;
  const auto dims = v.dims(2);
  const auto size = static_cast<std::int64_t>(element_count(dims));
  return size == 1 || (size == columns && dims.back() == columns);
}

/// How matrices of B are read: as they lie, which saves a pass, or packed. One row reads B once, and lists of
/// k are the fastest to read.
struct Reading {
  Matrices::Right right;
  gemm::Order order;
};

/// Sums of short lists spend their time on adding up lanes.
bool are_short(const Product& plain) { return plain.panels.depth < 4 * plain.panels.lanes; }

/// How a constant right operand is read.
Reading constant_reading(const Product& plain, const MatrixShape& s) {
  const bool lists = s.rows == 1 && !plain.dots && !are_short(plain);
  return {Matrices::Right::packed, lists ? gemm::Order::lists : gemm::Order::panels};
}

/// How a right operand with adjacent column elements is read: with many rows a transposition pays.
Reading transposed_reading(const Product& plain, const MatrixShape& s) {
  constexpr std::int64_t kFewRows = 16, kFewRowsOfShortLists = 2;
  if (s.rows <= (are_short(plain) ? kFewRowsOfShortLists : kFewRows))
    return {Matrices::Right::in_place, gemm::Order::lists};
  return {plain.dots ? Matrices::Right::in_place : Matrices::Right::pack, gemm::Order::panels};
}

/// Rows of B are far apart in memory, which counts when many rows of A read them again and again.
Reading row_reading(const Machine& machine, const MatrixShape& s) {
  constexpr std::int64_t kFewRows = 32, kSomeRows = 128, kManyRows = 256;
  // Rows that are a multiple of so many floats apart share few sets of L1.
  constexpr std::int64_t kAlias = 512;
  const auto lanes = gemm::lanes_of(machine.isa());
  // With AVX-512 tiles of more rows are faster where what has just been computed still is in L2.
  constexpr std::int64_t kLeastRowsOfTiles = 4;
  const bool near =
      static_cast<std::size_t>(s.b_count * s.depth * s.columns) <= machine.l2 / sizeof(float) / 2;
  const bool tiles = lanes == 16 && s.rows >= kLeastRowsOfTiles && near && s.columns % lanes == 0;
  if (s.rows == 1 || (s.rows <= gemm::kMostLineRows && s.columns >= lanes && !tiles))
    return {Matrices::Right::in_place, gemm::Order::lines};
  const auto small = static_cast<std::int64_t>(machine.l2 / sizeof(float) / 16);
  const bool many = s.columns % lanes == 0 && s.rows <= kManyRows && s.depth * s.columns <= small;
  if (s.columns >= lanes &&
      (s.rows <= kFewRows || ((s.rows <= kSomeRows || many) && s.columns % kAlias != 0)))
    return {Matrices::Right::in_place, gemm::Order::panels};
  return {Matrices::Right::pack, gemm::Order::panels};
}

Reading reading_of(const NodeView& v, const MatrixShape& s) {
  const Product plain(v.machine(), s.depth, s.columns, s.depth);
  if (v.constant(1)) return constant_reading(plain, s);
  return s.transpose_b ? transposed_reading(plain, s) : row_reading(v.machine(), s);
}

Matrices matrices_of(const NodeView& v, const Epilogue& given) {
  Matrices m(v.machine());
  m.shape = gemm::matrix_shape(v);
  const auto& s = m.shape;
  Epilogue epilogue = given;
  epilogue.set_rows(Layout::plain, s.columns);
  const auto take = [&](std::int64_t floats) {
    const auto at = m.scratch;
    m.scratch += round_up(floats, 16);
    return at;
  };
  m.pack_left = s.transpose_a && s.depth > 1;
  m.left_row = m.pack_left ? round_up(s.depth, 16) : s.depth;
  if (m.pack_left) m.left_at = take(s.a_count * s.rows * m.left_row);
  const auto [right, order] = reading_of(v, s);
  m.right = right;
  const auto lanes = gemm::lanes_of(v.machine().isa());
  const bool in_place = m.right == Matrices::Right::in_place;
  const auto tail = in_place && !s.transpose_b && order == gemm::Order::panels ? s.columns % lanes : 0;
  m.main = product_of(v.machine(), s, s.columns - tail, m.left_row, in_place, order, epilogue);
  if (m.right == Matrices::Right::pack) m.right_at = take(s.b_count * m.main.packed_floats());
  if (tail != 0) {
    m.has_tail = true;
    m.tail = product_of(v.machine(), s, tail, m.left_row, false, gemm::Order::panels, epilogue);
    m.tail_at = take(s.b_count * m.tail.packed_floats());
  }
  if (!v.has(2)) return m;
  if (v.constant(2) && !m.has_tail) {
    m.bias = gemm::bias_of(v);
  } else {
    m.copy_bias = true;
    m.bias_size = static_cast<std::int64_t>(element_count(v.dims(2)));
    m.bias_at = take(s.columns + 3 * lanes);
  }
  return m;
}

/// The products run one after the other.
std::size_t apart_bytes(const Matrices& m) {
  const auto of = [](const Product& p) { return p.scratch_bytes(); };
  return static_cast<std::size_t>(std::max(of(m.main), m.has_tail ? of(m.tail) : 0));
}

/// What packing B row by row costs beside moving it.
Cost pack_cost(const Matrices& m) {
  const auto& s = m.shape;
  if (m.right != Matrices::Right::pack && !m.has_tail) return {};
  const std::int64_t width = 2 * m.main.panels.lanes, panels = m.has_tail ? 1 : ceil_div(s.columns, width);
  return cost_of(*m.main.machine, Family::product_pack, static_cast<double>(s.b_count * s.depth * panels), 0,
                 0);
}

/// The first rows of a product wait for constant B, which other layers have driven out of L2 since the last
/// run: our products prefetch too late (oneDNN's do not). Products of few rows are estimated by their bytes
/// anyway.
Cost cold_weights_cost(const Matrices& m) {
  const auto& s = m.shape;
  if (m.right != Matrices::Right::packed || m.main.points() <= m.main.shape.rows[1]) return {};
  const auto bytes =
      static_cast<double>(sizeof(float)) * static_cast<double>(s.b_count * s.depth * s.columns);
  return cost_of(*m.main.machine, Family::far_weights, 0, bytes, 0);
}

Tensor packed_weights(const Tensor& source, const Matrices& m, WeightStore& store) {
  const auto& s = m.shape;
  return store.packed(source,
                      fmt::format("native_gemm {} {} {}", m.main.panels.lanes,
                                  m.main.order == gemm::Order::lists ? "lists"
                                  : m.main.dots                      ? "dots"
                                                                     : "panels",
                                  s.transpose_b),
                      {ElementType::f32, s.b_count * m.main.packed_floats()}, [&](const Tensor& clean) {
                        Tensor out(ElementType::f32, {s.b_count * m.main.packed_floats()});
                        const std::int64_t row = s.transpose_b ? 1 : s.columns,
                                           column = s.transpose_b ? s.depth : 1;
                        for (std::int64_t i = 0; i < s.b_count; ++i)
                          m.main.pack_constant(
                              clean.raw() + sizeof(float) * static_cast<std::size_t>(i * s.depth * s.columns),
                              row, column, out.data<float>().data() + i * m.main.packed_floats());
                        return out;
                      });
}

}  // namespace

void offer_native_matmul(const NodeView& v, Answers& answers) {
  if (!v.all(ElementType::f32)) return answers.refuse("native", "element types other than f32");
  if (v.has(3) || v.has(4)) return answers.refuse("native", "zero points");
  if (element_count(v.dims(0)) == 0 || element_count(v.dims(1)) == 0)
    return answers.refuse("native", "empty tensors");
  const MatrixShape s = gemm::matrix_shape(v);
  if (!per_column(v, s.columns))
    return answers.refuse("native", "bias {} is not one value per column", to_string(v.dims(2)));
  std::string why;
  const auto epilogue = Epilogue::of(v, Layout::plain, why);
  if (!epilogue) return answers.refuse("native", "{}", why);
  Matrices m = matrices_of(v, *epilogue);
  Offer o;
  o.label = fmt::format("native_gemm_{}_f32", name_of(v.machine().isa()));
  epilogue->add_to(o, v);
  o.scratch = static_cast<std::size_t>(m.scratch) * sizeof(float) + apart_bytes(m);
  o.cost += m.main.cost() + (m.has_tail ? m.tail.cost() : Cost()) +
            move_cost(v.machine(), 4.0 * static_cast<double>(m.scratch), 0) + pack_cost(m) +
            cold_weights_cost(m);
  if (m.right == Matrices::Right::packed) {
    o.consumed.push_back(1);
    o.packed = {1};
  }
  if (v.has(2) && !m.copy_bias) o.consumed.push_back(2);
  const Tensor weights = v.constant(1) ? *v.constant(1) : Tensor();
  o.make = [m = std::move(m), weights](MakeContext& context) mutable -> std::unique_ptr<Executable> {
    m.main.epilogue.lay(context);
    if (m.has_tail) m.tail.epilogue.lay(context);
    if (weights.valid()) m.weights = packed_weights(weights, m, context.weights);
    m.bias = gemm::padded_bias(m.bias, 1, m.shape.columns, m.main.panels.padded_columns(), context.weights);
    return std::make_unique<MatMulExecutable>(std::move(m));
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
