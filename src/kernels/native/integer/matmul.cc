/// Matrix products of u8 and i8. Left matrices are read where they lie when a word of theirs is a word of the
/// product, else a copy; right ones are packed, once when they are constant.
#include "kernels/native/offers.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/native/gemm/matrices.h"
#include "kernels/native/integer/matching.h"
#include "kernels/native/integer/source.h"
#include "kernels/native/integer/weights.h"
#include "ops/matmul.h"

namespace lamina {
namespace {

using gemm::MatrixShape;
using gemm::Product;
using integers::Operands;
using integers::SourceCopy;
using integers::WeightPlaces;

struct IntegerMatrices {
  IntegerMatrices(const Machine& machine, const Operands& what, const MatrixShape& s)
      : operands(what),
        shape(s),
        product(machine, what.arithmetic, what.rate(), what.words(s.depth), s.columns) {}

  Operands operands;
  MatrixShape shape;
  Product product;
  WeightPlaces places;  ///< of a right matrix
  WorkPartition packing;
  bool copies = true;
  SourceCopy copy;
  Tensor weights,
      sums;      ///< packed; `sums`: of weights, or times the source's zero point, for each right matrix
  Tensor order;  ///< of matched quads
  // Scratch, in bytes; sums that lie apart behind it.
  std::size_t copy_at = 0, start_at = 0, weights_at = 0, scratch = 0;

  std::int64_t padded() const { return product.panels.padded_columns(); }
  std::int64_t start_count() const { return operands.compensated() ? shape.b_count * padded() : 0; }
  std::int64_t packed_bytes() const { return product.packed_floats() * product.units().cell; }
};

IntegerMatrices matrices_of(const Machine& machine, const MatrixShape& s, const Operands& o,
                            const Epilogue& given, bool constant, std::int64_t threads) {
  IntegerMatrices m(machine, o, s);
  m.places.channels = s.depth;
  m.places.channel = s.transpose_b ? 1 : s.columns;
  m.places.column = s.transpose_b ? s.depth : 1;
  const bool across = s.transpose_a && s.depth > 1;
  m.copies = !o.quads() || o.signed_source || across || (!o.matched() && s.depth % o.units().in_word() != 0);
  const auto take = [&](std::int64_t bytes) {
    const auto at = m.scratch;
    m.scratch += static_cast<std::size_t>(round_up(bytes, std::int64_t{64}));
    return at;
  };
  if (m.copies) {
    auto& copy = m.copy;
    copy.how = integers::copy_of(o);
    copy.images = s.a_count;
    copy.channels = s.depth;
    copy.in[2] = copy.out[2] = s.rows;
    copy.point = across ? 1 : s.depth;
    copy.channel = across ? s.rows : 1;
    copy.line = copy.plane = copy.image = s.rows * s.depth;
    copy.plan_partition(machine);
    m.copy_at = take(copy.bytes());
  }
  auto& p = m.product;
  p.epilogue = given;
  p.epilogue.set_rows(Layout::plain, s.columns);
  gemm::Region region;
  region.width = s.rows;
  region.a_step = s.depth;
  p.add_region(region, {{0, 0, p.panels.depth}});
  p.bias_b = m.padded();
  auto c_rows = s.rows;
  for (const auto& axis : s.batch) c_rows *= axis.size;
  for (const auto& axis : s.batch) {
    c_rows /= axis.size;
    p.batches.add(axis.size, {axis.a * s.rows * s.depth, axis.b * p.packed_floats(), c_rows});
  }
  p.partition(threads);
  m.packing = integers::packing_of(p);
  if (o.zero_at_run || !constant) m.start_at = take(m.start_count() * 4);
  if (!constant) m.weights_at = take(s.b_count * m.packed_bytes());
  return m;
}

void pack_matrices(const IntegerMatrices& m, const void* from, std::byte* to) {
  const auto& s = m.shape;
  for (std::int64_t i = 0; i < s.b_count; ++i)
    integers::pack_weights(
        m.product, m.operands, m.places, m.packing,
        static_cast<const std::byte*>(from) + i * s.depth * s.columns * m.operands.weight_bytes(),
        to + i * m.packed_bytes());
}

void sum_matrices(const IntegerMatrices& m, const void* from, std::int32_t* to) {
  const auto& s = m.shape;
  for (std::int64_t i = 0; i < s.b_count; ++i)
    integers::sums_of_taps(m.product, m.operands, m.places,
                           static_cast<const std::byte*>(from) + i * s.depth * s.columns,
                           to + i * m.padded());
}

void pack(IntegerMatrices& m, const Tensor& source, WeightStore& store) {
  const auto& o = m.operands;
  const auto key = fmt::format("native_integer_gemm {} {} {} {} {}", m.product.panels.lanes, o.key(),
                               m.shape.transpose_b, m.shape.depth, m.shape.columns);
  const PackedSize bytes(ElementType::u8, m.shape.b_count * m.packed_bytes());
  m.weights = store.moved(source, key, bytes, [&](const Tensor& w) {
    Tensor out(ElementType::u8, {m.shape.b_count * m.packed_bytes()});
    pack_matrices(m, w.to_aligned().raw(), reinterpret_cast<std::byte*>(out.data<std::uint8_t>().data()));
    return out;
  });
  if (m.start_count() == 0) return;
  const auto shift = o.zero_at_run ? 0 : o.shifted(o.source_zero);
  const PackedSize sums(ElementType::i32, m.start_count());
  m.sums = store.moved(source, fmt::format("{} sums {}", key, shift), sums, [&](const Tensor& w) {
    Tensor out(ElementType::i32, {m.start_count()});
    auto* list = out.data<std::int32_t>().data();
    std::fill_n(list, m.start_count(), 0);
    sum_matrices(m, w.to_aligned().raw(), list);
    if (!o.zero_at_run) integers::compensate(list, m.start_count(), shift, list);
    return out;
  });
}

void run(const IntegerMatrices& m, const RunArgs& args) {
  auto* scratch = static_cast<std::byte*>(args.scratch);
  const auto zero = m.operands.zero(m.operands.zero_at_run ? args.in[3] : nullptr);
  gemm::Operands o{};
  o.a = args.in[0];
  if (m.copies) {
    m.copy.run(args.in[0], zero, scratch + m.copy_at);
    o.a = scratch + m.copy_at;
  }
  if (m.weights.valid()) {
    o.b = m.weights.raw();
  } else {
    pack_matrices(m, args.in[1], scratch + m.weights_at);
    o.b = scratch + m.weights_at;
  }
  if (m.start_count() > 0) {
    auto* start = reinterpret_cast<std::int32_t*>(scratch + m.start_at);
    o.bias = start;
    if (!m.weights.valid()) {
      sum_matrices(m, args.in[1], start);
      integers::compensate(start, m.start_count(), m.operands.shifted(zero), start);
    } else if (m.operands.zero_at_run) {
      integers::compensate(m.sums.data<std::int32_t>().data(), m.start_count(), m.operands.shifted(zero),
                           start);
    } else {
      o.bias = m.sums.raw();
    }
  }
  o.add = m.product.epilogue.added_at(args, 0);
  o.c = args.out[0];
  o.inputs = args.in;
  o.apart = scratch + m.scratch;
  gemm::run(m.product, o);
}

/// What packing right matrices at each run costs.
Cost matrix_packing_cost(const NodeView& v) {
  if (v.constant(1)) return {};
  return cost_of(v.machine(), Family::transpose, 0, 4 * static_cast<double>(element_count(v.dims(1))));
}

}  // namespace

void offer_integer_matmul(const NodeView& v, Answers& answers) {
  if (is_float(v.element(0))) return;
  const auto refuse = [&](const std::string& why) { answers.refuse("native_int8", "{}", why); };
  if (element_count(v.dims(0)) == 0 || element_count(v.dims(1)) == 0) return refuse("empty tensors");
  std::string why;
  const auto shape = gemm::matrix_shape(v);
  const auto possible = integers::operands_of(v, shape.columns, why);
  if (possible.empty()) return refuse(why);
  if (possible[0].weight_zeros.size() > 1 && v.dims(4).back() != shape.columns)
    return refuse("zero points of weights that are not those of columns");
  const auto epilogue = Epilogue::of(v, Layout::plain, why);
  if (!epilogue) return refuse(why);
  const auto matched = shape.b_count == 1 && integers::has_windows(shape.depth)
                           ? integers::matched_quads(v, possible[0])
                           : std::nullopt;
  auto all = possible;
  if (matched) all.push_back(*matched);
  Offer o;
  o.label = fmt::format("native_gemm_{}", possible[0].label(v.machine()));
  epilogue->add_to(o, v);
  const auto threads = threads_here();
  for (const auto& operands : all) {
    const auto m = matrices_of(v.machine(), shape, operands, *epilogue, v.constant(1) != nullptr, threads);
    if (&operands == &all[0])
      o.cost += m.product.cost(operands.rate()) + matrix_packing_cost(v) +
                (m.copies ? m.copy.cost(v.machine()) : Cost());
    const auto apart = m.product.scratch_bytes();
    o.scratch = std::max(o.scratch, m.scratch + static_cast<std::size_t>(apart));
  }
  if (v.constant(1)) {
    o.consumed.push_back(1);
    o.packed = {1};
  }
  if (v.has(3) && !possible[0].zero_at_run) o.consumed.push_back(3);
  if (v.has(4)) o.consumed.push_back(4);
  const Tensor weights = v.constant(1) ? *v.constant(1) : Tensor();
  o.make = [&machine = v.machine(), shape, possible, matched, behind = *epilogue, threads,
            weights](MakeContext& context) -> std::unique_ptr<Executable> {
    auto laid = behind;
    laid.lay(context);
    const auto per_column = shape.transpose_b && shape.b_count == 1 ? shape.depth : 0;
    const auto what = integers::operands_for(possible, weights, per_column, context.weights);
    auto made = integers::fastest(what, matched, weights, context.weights, [&](const Operands& o) {
      return matrices_of(machine, shape, o, laid, weights.valid(), threads);
    });
    if (weights.valid()) pack(made, weights, context.weights);
    return executable([m = std::move(made)](const RunArgs& args) { run(m, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
