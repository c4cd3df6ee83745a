/// softmax(q * k^T * scale + mask) * v, a block of rows at a time: the scores of a block stay in the cache,
/// those of all heads are never written. Keys (times the scale) and values are packed once per run, or read
/// in place where few queries read them: then packing would take longer than the products.
#include "kernels/native/offers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/gemm/product.h"
#include "kernels/native/move/positions.h"
#include "kernels/native/softmax/loops.h"
#include "ops/attention.h"

namespace lamina {
namespace {

/// Scores of `rows` queries, and what they make of the values.
struct Block {
  std::int64_t rows;
  gemm::Product scores, result;
};

/// The mask as floats to add: rows of `columns`, one for each row of scores or for many of them.
struct Mask {
  enum class Kind : std::uint8_t { none, floats, spread, boolean } kind = Kind::none;
  std::int64_t rows = 0, width = 0;  ///< as it comes; spread: one value per row, or one in all
  Dims strides;                      ///< rows from one matrix of scores to the next, by axis of the batch
  std::int64_t step = 0;             ///< rows from one query to the next: 0 or 1
};

struct Heads {
  std::int64_t rows = 0, columns = 0, size = 0, width = 0;
  Positions<4> batch;  ///< which matrix of queries, of keys and of values; the row of the mask for query 0
  std::int64_t k_count = 1, v_count = 1;
  bool causal = false, has_scale = false;
  bool in_place = false;  ///< keys and values are read in place; queries are scaled
  const SoftmaxTable* softmax = nullptr;
  std::vector<Block> blocks;  ///< one for most rows, perhaps one for those left over
  Parts parts;                ///< blocks of a batch
  Mask mask;
  WorkPartition k_packing, v_packing, all;
  // Scratch, in floats.
  std::int64_t q_at = 0, q_row = 0, k_at = 0, k_row = 0, v_at = 0, v_row = 0, mask_at = 0, scores_at = 0,
               scores_row = 0, scratch = 0;

  std::int64_t tasks() const { return batch.count() * parts.number; }
};

Dims leading(const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); }

/// A product that runs where it is called.
gemm::Product product(const Machine& machine, std::int64_t rows, std::int64_t depth, std::int64_t columns,
                      gemm::Order order) {
  auto p = gemm::plain_product(machine, rows, depth, columns, depth,
                               Epilogue({ElementType::f32, Layout::plain, columns}), order);
  p.partition(1);
  return p;
}

/// `rank`: of the batch.
Mask mask_of(const NodeView& v, std::size_t rank, std::int64_t columns) {
  Mask m;
  if (!v.has(3)) return m;
  Dims dims = v.dims(3);
  while (dims.size() < 2) dims.insert(dims.begin(), 1);
  m.width = dims.back();
  m.rows = static_cast<std::int64_t>(element_count(dims)) / std::max<std::int64_t>(1, m.width);
  m.kind = v.element(3) == ElementType::boolean ? Mask::Kind::boolean
           : m.width == columns                 ? Mask::Kind::floats
                                                : Mask::Kind::spread;
  dims.pop_back();
  m.step = dims.back() == 1 ? 0 : 1;
  m.strides = broadcast_strides(dims, rank + 1);
  m.strides.pop_back();
  return m;
}

Cost packing_cost(const Machine& machine, std::int64_t floats) {
  return cost_of(machine, Family::attention_pack, 0, 4 * static_cast<double>(floats), 0);
}

/// Cost of everything but packing.
Cost blocks_cost(const Machine& machine, const Heads& c) {
  const auto scores =
      static_cast<double>(c.batch.count()) * static_cast<double>(c.rows) * static_cast<double>(c.columns);
  Cost products;
  for (const std::size_t i : {0, 1}) {
    const auto times = static_cast<double>(i == 0 ? c.parts.number - 1 : 1);
    for (const auto* product : {&c.blocks[i].scores, &c.blocks[i].result})
      products += product->cost(Family::native_gemm, 0) * times;
  }
  // The products count the bytes of each matrix, but not that all matrices together do not stay in L2.
  const double in_place =
      c.in_place ? 4.0 * static_cast<double>((c.k_count * c.size + c.v_count * c.width) * c.columns) : 0;
  return calls_of(machine, Family::native_gemm, 1) +
         cost_of(machine, Family::far_weights, 0, beyond_l2(machine, in_place), 0) +
         products * static_cast<double>(c.batch.count()) +
         cost_of(machine, Family::attention_softmax, scores);
}

/// Rows of a block: their scores stay in the cache, and there are blocks for all threads.
std::int64_t rows_of_block(const Machine& machine, const Heads& c) {
  const std::int64_t least = 2 * gemm::tile_shape(gemm::lanes_of(machine.isa())).rows[2];
  // In floats; the panels that are read beside them are in L2, too.
  const auto scores = static_cast<std::int64_t>(machine.l2 / sizeof(float) / 16);
  const auto most = std::max(least, scores / c.columns), rows = c.batch.count() * c.rows;
  const double work = static_cast<double>(rows * c.columns) * static_cast<double>(c.size + c.width);
  const auto wanted = units_wanted(cost_of(machine, Family::native_gemm, work).us(), threads_here());
  return std::clamp(ceil_div(rows, wanted), least, most);
}

/// Whether so few queries read each matrix of keys or values that packing it does not pay. Keys are read as
/// lists: sums of short lists spend their time on adding up lanes.
bool reads_in_place(const Machine& machine, const Heads& c) {
  constexpr std::int64_t kFewQueries = 12, kFewOfShortKeys = 2;
  const auto readers = ceil_div(c.batch.count() * c.rows, std::min(c.k_count, c.v_count));
  return readers <= (c.size < 4 * gemm::lanes_of(machine.isa()) ? kFewOfShortKeys : kFewQueries);
}

Heads code_of(const NodeView& v) {
  Heads c;
  const auto q = v.dims(0), k = v.dims(1), values = v.dims(2);
  const Dims batch = leading(v.out_dims());
  c.rows = q[q.size() - 2], c.columns = k[k.size() - 2], c.size = q.back(), c.width = values.back();
  c.causal = v.op<ScaledDotProductAttention>()->causal;
  c.has_scale = v.has(4);
  c.softmax = &softmax_table(v.machine().isa());
  c.k_count = static_cast<std::int64_t>(element_count(leading(k)));
  c.v_count = static_cast<std::int64_t>(element_count(leading(values)));
  const auto rank = batch.size();
  if (!c.causal) c.mask = mask_of(v, rank, c.columns);
  c.mask.strides.resize(rank, 0);
  const auto q_strides = broadcast_strides(leading(q), rank), k_strides = broadcast_strides(leading(k), rank),
             v_strides = broadcast_strides(leading(values), rank);
  for (std::size_t i = 0; i < rank; ++i)
    c.batch.add(batch[i], {q_strides[i], k_strides[i], v_strides[i], c.mask.strides[i]});

  c.in_place = reads_in_place(v.machine(), c);
  c.parts = even_parts(c.rows, rows_of_block(v.machine(), c));
  const auto rest = c.rows - (c.parts.number - 1) * c.parts.size;
  for (const auto rows : {c.parts.size, rest}) {
    using gemm::Order;
    Block b{rows, product(v.machine(), rows, c.size, c.columns, c.in_place ? Order::lists : Order::panels),
            product(v.machine(), rows, c.columns, c.width, c.in_place ? Order::lines : Order::panels)};
    b.scores.epilogue.added.step = c.mask.step * c.columns;
    c.blocks.push_back(std::move(b));
  }

  c.q_row = c.in_place ? round_up(c.rows * c.size, 16) : 0;
  c.k_row = c.in_place ? 0 : round_up(c.blocks[0].scores.packed_floats(), 16);
  c.v_row = c.in_place ? 0 : round_up(c.blocks[0].result.packed_floats(), 16);
  c.k_packing = partitioned_here(c.k_count, packing_cost(v.machine(), c.k_count * c.k_row).us());
  c.v_packing = partitioned_here(c.v_count, packing_cost(v.machine(), c.v_count * c.v_row).us());
  c.all = partitioned_here(c.tasks(), blocks_cost(v.machine(), c).us());
  const auto take = [&](std::int64_t floats) {
    const auto at = c.scratch;
    c.scratch += round_up(floats, 16);
    return at;
  };
  c.q_at = take(c.all.slots * c.q_row);
  c.k_at = take(c.k_count * c.k_row);
  c.v_at = take(c.v_count * c.v_row);
  if (c.mask.kind == Mask::Kind::boolean || c.mask.kind == Mask::Kind::spread)
    c.mask_at = take(c.mask.rows * c.columns);
  c.scores_row = round_up(c.parts.size * c.columns, 16);
  c.scores_at = take(c.all.slots * c.scores_row);
  return c;
}

class AttentionRun {
 public:
  AttentionRun(const Heads& code, const RunArgs& args)
      : c_(code),
        args_(args),
        scratch_(static_cast<float*>(args.scratch)),
        q_(static_cast<const float*>(args.in[0])),
        k_(static_cast<const float*>(args.in[1])),
        v_(static_cast<const float*>(args.in[2])),
        scale_(code.has_scale ? *static_cast<const float*>(args.in[4])
                              : 1 / std::sqrt(static_cast<float>(code.size))),
        out_(static_cast<float*>(args.out[0])) {}

  void operator()() {
    if (!c_.in_place) pack();
    prepare_mask();
    parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      for (auto task = begin; task < end; ++task) run_block(slot, task);
    });
  }

 private:
  void pack() {
    parallel_for(c_.k_packing, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        float* to = scratch_ + c_.k_at + i * c_.k_row;
        c_.blocks[0].scores.pack(0, c_.size, k_ + i * c_.columns * c_.size, 1, c_.size, to);
        for (std::int64_t j = 0, n = c_.blocks[0].scores.packed_floats(); j < n; ++j) to[j] *= scale_;
      }
    });
    parallel_for(c_.v_packing, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i)
        c_.blocks[0].result.pack(0, c_.columns, v_ + i * c_.columns * c_.width, c_.width, 1,
                                 scratch_ + c_.v_at + i * c_.v_row);
    });
  }

  /// Booleans and masks of fewer values become rows of floats.
  void prepare_mask() {
    const Mask& m = c_.mask;
    if (m.kind == Mask::Kind::none) return;
    mask_ = static_cast<const float*>(args_.in[3]);
    if (m.kind == Mask::Kind::floats) return;
    float* to = scratch_ + c_.mask_at;
    const auto* bytes = static_cast<const std::uint8_t*>(args_.in[3]);
    const std::int64_t step = m.width == c_.columns ? 1 : 0;
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t j = 0; j < c_.columns; ++j) {
        const auto at = r * m.width + j * step;
        to[r * c_.columns + j] = m.kind == Mask::Kind::spread ? mask_[at]
                                 : bytes[at] != 0             ? 0
                                                              : -std::numeric_limits<float>::infinity();
      }
    mask_ = to;
  }

  void run_block(std::int64_t slot, std::int64_t task) const {
    const auto batch = task / c_.parts.number;
    const auto [q, k, v, mask] = c_.batch[batch];
    const auto index = task % c_.parts.number, first = index * c_.parts.size;
    const Block& block = c_.blocks[index + 1 == c_.parts.number ? 1 : 0];
    float* scores = scratch_ + c_.scores_at + slot * c_.scores_row;
    gemm::Operands o{};
    o.a = q_ + (q * c_.rows + first) * c_.size;
    o.b = scratch_ + c_.k_at + k * c_.k_row;
    if (c_.in_place) {
      o.a = scaled_queries(slot, q);
      o.b = k_ + k * c_.columns * c_.size;
      o.b_row = c_.size;
    }
    o.c = scores;
    if (mask_) o.add = mask_ + (mask + first * c_.mask.step) * c_.columns;
    gemm::run(block.scores, o);
    if (c_.causal)
      for (std::int64_t r = 0; r < block.rows; ++r)
        if (const auto seen = first + r + 1; seen < c_.columns)
          std::fill(scores + r * c_.columns + seen, scores + (r + 1) * c_.columns,
                    -std::numeric_limits<float>::infinity());
    softmax(scores, block.rows);
    o = {};
    o.a = scores;
    o.b = scratch_ + c_.v_at + v * c_.v_row;
    if (c_.in_place) {
      o.b = v_ + v * c_.columns * c_.width;
      o.b_row = c_.width;
    }
    o.c = out_ + (batch * c_.rows + first) * c_.width;
    gemm::run(block.result, o);
  }

  /// All queries of a matrix, times the scale.
  const float* scaled_queries(std::int64_t slot, std::int64_t matrix) const {
    const auto count = c_.rows * c_.size;
    const float* from = q_ + matrix * count;
    float* to = scratch_ + c_.q_at + slot * c_.q_row;
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * scale_;
    return to;
  }

  void softmax(float* scores, std::int64_t rows) const {
    const auto& table = *c_.softmax;
    SoftmaxJob job;
    job.in = job.out = scores;
    job.size = c_.columns;
    job.inner = 1;
    (c_.columns <= table.short_line ? table.short_lines : table.lines)(job, 0, rows);
  }

  const Heads& c_;
  const RunArgs& args_;
  float* scratch_;
  const float *q_, *k_, *v_;
  const float scale_;
  float* out_;
  const float* mask_ = nullptr;
};

}  // namespace

void offer_native_attention(const NodeView& v, Answers& answers) {
  for (std::size_t i = 0; i < v.inputs(); ++i)
    if (v.has(i) && v.element(i) != ElementType::f32 && !(i == 3 && v.element(i) == ElementType::boolean))
      return answers.refuse("native", "attention with an input of {}", name_of(v.element(i)));
  for (std::size_t i = 0; i < 3; ++i)
    if (element_count(v.dims(i)) == 0) return answers.refuse("native", "attention without elements");
  const auto code = std::make_shared<const Heads>(code_of(v));
  Offer o(v, fmt::format("native_attention_{}_f32", name_of(v.machine().isa())), Layout::plain);
  o.scratch = static_cast<std::size_t>(code->scratch) * sizeof(float);
  o.cost = blocks_cost(v.machine(), *code) +
           packing_cost(v.machine(), code->k_count * code->k_row + code->v_count * code->v_row);
  o.make = [code](MakeContext&) {
    return executable([code](const RunArgs& args) { AttentionRun(*code, args)(); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
