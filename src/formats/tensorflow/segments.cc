/// Sums by number of segment, counts, and values put together and taken apart by index.
#include <limits>

#include "formats/tensorflow/call.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "ops/sorting.h"

namespace lamina::tensorflow {
namespace {

/// The sizes of a value's axes from one on.
ValueId sizes_from(Call& c, ValueId v, std::size_t first) {
  return c.part(c.shape_of(v), static_cast<std::int64_t>(first), static_cast<std::int64_t>(c.known_rank(v)));
}

/// [-1] and the sizes of the axes behind those of the indices.
ValueId as_rows(Call& c, ValueId data, std::size_t indexed) {
  if (indexed == 1) return data;
  if (c.known_rank(data) == indexed) return c.reshape(data, Ints{-1});
  return c.add(Reshape{}, {data, c.concat({c.ints_constant({-1}), sizes_from(c, data, indexed)}, 0)});
}

double neutral(SlicesReduction reduction, ElementType type) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const double most = is_float(type) ? kMost : type == ElementType::i64 ? 0x1p62 : INT32_MAX;
  switch (reduction) {
    case SlicesReduction::prod:
      return 1;
    case SlicesReduction::max:
      return is_float(type) ? -kMost : -most;
    case SlicesReduction::min:
      return most;
    default:
      return 0;
  }
}

/// Rows joined by their numbers, `count` [1] of them; negative numbers do not count.
ValueId reduced(Call& c, SlicesReduction reduction, ValueId data, ValueId ids, ValueId count) {
  const auto indexed = c.known_rank(ids);
  if (c.known_rank(data) < indexed) c.fail("the segments have more axes than the data");
  const auto rows = as_rows(c, data, indexed);
  ids = c.convert(c.to_vector(ids), ElementType::i64);
  const auto none = c.add(Less{}, {ids, c.int_constant(0)});
  const auto places = c.unsqueeze(c.add(Select{}, {none, count, ids}), {1});
  auto shape = c.add(Add{}, {count, c.ints_constant({1})});  // one more for those that do not count
  if (c.known_rank(rows) > 1) shape = c.concat({shape, sizes_from(c, rows, 1)}, 0);
  const auto empty = c.filled(c.number(neutral(reduction, c.known_element(data)), c.element(data)), shape);
  const auto all = c.add(ScatterNDUpdate{reduction}, {empty, places, rows});
  return c.add(Slice{}, {all, c.ints_constant({0}), count, c.ints_constant({1}), c.ints_constant({0})});
}

/// Data, ids, their number.
template <SlicesReduction kReduction>
Values convert_unsorted(Call& c) {
  return {reduced(c, kReduction, c.in(0), c.in(1), c.to_vector(c.convert(c.in(2), ElementType::i64)))};
}

/// Ids go up: the last one says how many there are.
ValueId count_of(Call& c, ValueId ids) {
  const auto last = c.add(ReduceMax{}, {c.convert(ids, ElementType::i64), c.ints_constant({0})});
  return c.to_vector(c.add(Add{}, {last, c.int_constant(1)}));
}

ValueId mean(Call& c, ValueId data, ValueId ids) {
  const auto count = count_of(c, ids);
  const auto total = reduced(c, SlicesReduction::sum, data, ids, count);
  const auto ones = c.filled(c.number_like(1, data), c.shape_of(ids));
  auto each = c.add(Maximum{}, {reduced(c, SlicesReduction::sum, ones, ids, count), c.number_like(1, data)});
  for (std::size_t i = 1; i < c.known_rank(data); ++i)
    each = c.unsqueeze(each, {static_cast<std::int64_t>(i)});
  return c.add(Divide{}, {total, each});
}

Values convert_segment_sum(Call& c) {
  return {reduced(c, SlicesReduction::sum, c.in(0), c.in(1), count_of(c, c.in(1)))};
}
Values convert_segment_mean(Call& c) { return {mean(c, c.in(0), c.in(1))}; }

/// Data, indices of its rows, ids.
ValueId chosen_rows(Call& c) { return c.add(Gather{}, {c.in(0), c.in(1), c.int_constant(0)}); }
Values convert_sparse_sum(Call& c) {
  return {reduced(c, SlicesReduction::sum, chosen_rows(c), c.in(2), count_of(c, c.in(2)))};
}
Values convert_sparse_mean(Call& c) { return {mean(c, chosen_rows(c), c.in(2))}; }

/// Numbers, how many of them count, weights: how often each is there, of each row.
Values convert_bincount(Call& c) {
  const auto size = c.convert(c.to_scalar(c.in(1)), ElementType::i64);
  const auto numbers = c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)});
  const auto given = c.unsqueeze(c.convert(c.in(0), ElementType::i64), {-1});
  const auto type = c.type_attribute("T", ElementType::i32);
  const auto axis = c.int_constant(-2);
  auto hits = c.convert(c.add(Equal{}, {given, numbers}), type);
  if (c.flag("binary_output")) return {c.add(ReduceMax{}, {hits, axis})};
  const auto& weights = c.shape(c.in(2));
  if (!weights.known()) c.unsupported("weights whose sizes are not known");
  if (weights.count().size() != 0) hits = c.add(Multiply{}, {hits, c.unsqueeze(c.in(2), {-1})});
  return {c.add(ReduceSum{}, {hits, axis})};
}

/// Indices, shape, values, the value elsewhere.
Values convert_sparse_to_dense(Call& c) {
  auto indices = c.convert(c.in(0), ElementType::i64);
  const auto rank = c.known_rank(indices);
  if (rank == 0) indices = c.reshape(indices, {1, 1});
  if (rank == 1) indices = c.unsqueeze(indices, {1});
  const auto values = c.filled(c.in(2), c.part(c.shape_of(indices), 0, 1));
  return {c.add(ScatterNDUpdate{}, {c.filled(c.in(3), c.in(1)), indices, values})};
}

/// N lists of indices, N values whose rows go there; the last one stays.
Values convert_dynamic_stitch(Call& c) {
  const auto count = c.inputs() / 2;
  if (count == 0 || c.inputs() % 2 != 0) c.fail("has {} inputs, wanted as many indices as data", c.inputs());
  Values places, rows;
  for (std::size_t i = 0; i < count; ++i) {
    const auto indexed = c.known_rank(c.in(i));
    if (c.known_rank(c.in(count + i)) < indexed) c.fail("indices {} have more axes than their data", i);
    places.push_back(c.convert(c.reshape(c.in(i), Ints{-1}), ElementType::i64));
    rows.push_back(indexed == 0 ? c.unsqueeze(c.in(count + i), {0}) : as_rows(c, c.in(count + i), indexed));
  }
  const auto all = c.concat(std::move(places), 0), data = c.concat(std::move(rows), 0);
  if (const auto known = c.known_ints(all)) {
    Ints order;
    for (std::size_t i = 0; i < known->size(); ++i) {
      const auto at = (*known)[i];
      if (at < 0 || at > 2 * std::ssize(*known)) c.unsupported("an index of {} among {}", at, known->size());
      if (at >= std::ssize(order)) order.resize(static_cast<std::size_t>(at) + 1, 0);
      order[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(i);
    }
    return {c.add(Gather{}, {data, c.ints_constant(order), c.int_constant(0)})};
  }
  auto shape = count_of(c, all);
  if (c.known_rank(data) > 1) shape = c.concat({shape, sizes_from(c, data, 1)}, 0);
  return {c.add(ScatterUpdate{}, {c.filled(c.number_like(0, data), shape), all, data, c.int_constant(0)})};
}

/// Data, the number of the part that each row belongs to.
Values convert_dynamic_partition(Call& c) {
  const auto parts = c.i("num_partitions", 0);
  if (parts < 1 || parts > 4096) c.fail("num_partitions is {}, wanted 1 to 4096", parts);
  const auto rows = as_rows(c, c.in(0), c.known_rank(c.in(1)));
  const auto numbers = c.to_vector(c.in(1));
  Values out;
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto here =
        c.add(NonZero{}, {c.add(Equal{}, {numbers, c.number_like(static_cast<double>(i), numbers)})});
    out.push_back(c.add(Gather{}, {rows, c.reshape(here, Ints{-1}), c.int_constant(0)}));
  }
  return out;
}

/// Steps first: inputs [T, N, C], lengths [N]. The decoded labels as a sparse tensor, and what the best path
/// sums up to, negative.
Values convert_ctc(Call& c) {
  const auto lengths = c.in(1);
  const auto by_picture = c.transpose(c.in(0), {1, 0, 2});
  CTCGreedyDecoderSeqLen op;
  op.merge_repeated = c.flag("merge_repeated");
  op.classes_index_type = op.sequence_length_type = ElementType::i64;
  Values inputs{by_picture, c.convert(lengths, ElementType::i32)};
  if (const auto blank = c.i("blank_index", -1); blank >= 0)
    inputs.push_back(c.number(static_cast<double>(blank), ElementType::i32));
  const auto decoded = c.add_all(op, std::move(inputs), 2);
  const auto is_there = c.add(GreaterEqual{}, {decoded[0], c.int_constant(0)});
  const auto places = c.transpose(c.add(NonZero{}, {is_there}), {1, 0});
  const auto longest = c.add(ReduceMax{true}, {decoded[1], c.ints_constant({0})});
  const auto best = c.add(ReduceMax{}, {by_picture, c.ints_constant({2})});
  const auto steps =
      c.add(Range{ElementType::i64},
            {c.int_constant(0), c.to_scalar(c.part(c.shape_of(c.in(0)), 0, 1)), c.int_constant(1)});
  const auto counts = c.add(Less{}, {steps, c.unsqueeze(c.convert(lengths, ElementType::i64), {1})});
  const auto summed = c.add(Select{}, {counts, best, c.number_like(0, best)});
  return {places, c.add(GatherND{}, {decoded[0], places}),
          c.concat({c.part(c.shape_of(by_picture), 0, 1), longest}, 0),
          c.add(Negative{}, {c.add(ReduceSum{true}, {summed, c.ints_constant({1})})})};
}

/// Whether the target is among the k best: as many are better as stay below k.
Values convert_in_top_k(Call& c) {
  const auto k = c.inputs() > 2 ? c.in(2) : c.int_constant(c.i("k", 0));
  const auto at = c.unsqueeze(c.convert(c.in(1), ElementType::i64), {1});
  Gather of_row;
  of_row.batch_dims = 1;
  const auto target = c.add(of_row, {c.in(0), at, c.int_constant(1)});
  const auto better = c.convert(c.add(Greater{}, {c.in(0), target}), ElementType::i64);
  const auto count = c.add(ReduceSum{}, {better, c.ints_constant({1})});
  return {c.add(Less{}, {count, c.convert(k, ElementType::i64)})};
}

/// The loss of each row and its slope.
Values cross_entropy(Call& c, ValueId labels) {
  const auto logarithm = c.add(LogSoftmax{-1}, {c.in(0)});
  const auto each = c.add(Multiply{}, {labels, logarithm});
  return {c.add(Negative{}, {c.add(ReduceSum{}, {each, c.ints_constant({-1})})}),
          c.add(Subtract{}, {c.add(Softmax{-1}, {c.in(0)}), labels})};
}

Values convert_cross_entropy(Call& c) { return cross_entropy(c, c.in(1)); }

Values convert_sparse_cross_entropy(Call& c) {
  const auto classes = c.to_scalar(c.pick(c.shape_of(c.in(0)), 0, 1));
  const auto labels =
      c.add(OneHot{}, {c.in(1), classes, c.number_like(1, c.in(0)), c.number_like(0, c.in(0))});
  return cross_entropy(c, labels);
}

}  // namespace

void register_segments(ConverterTable& t) {
  t.add("Bincount", convert_bincount);
  t.add("CTCGreedyDecoder", convert_ctc);
  t.add("DenseBincount", convert_bincount);
  t.add("DynamicPartition", convert_dynamic_partition);
  t.add("DynamicStitch", convert_dynamic_stitch);
  t.add("InTopK", convert_in_top_k);
  t.add("InTopKV2", convert_in_top_k);
  t.add("ParallelDynamicStitch", convert_dynamic_stitch);
  t.add("SegmentMean", convert_segment_mean);
  t.add("SegmentSum", convert_segment_sum);
  t.add("SoftmaxCrossEntropyWithLogits", convert_cross_entropy);
  t.add("SparseSegmentMean", convert_sparse_mean);
  t.add("SparseSegmentSum", convert_sparse_sum);
  t.add("SparseSoftmaxCrossEntropyWithLogits", convert_sparse_cross_entropy);
  t.add("SparseToDense", convert_sparse_to_dense);
  t.add("UnsortedSegmentMax", convert_unsorted<SlicesReduction::max>);
  t.add("UnsortedSegmentMin", convert_unsorted<SlicesReduction::min>);
  t.add("UnsortedSegmentProd", convert_unsorted<SlicesReduction::prod>);
  t.add("UnsortedSegmentSum", convert_unsorted<SlicesReduction::sum>);
}

}  // namespace lamina::tensorflow
