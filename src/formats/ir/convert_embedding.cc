// Bags of embeddings: rows of a table, added up bag by bag. They become Gather and, where bags differ in
// size, ScatterNDUpdate: one row of zeros per bag, to which the rows are added.
#include <limits>
#include <numeric>

#include "formats/ir/converters.h"
#include "formats/ir/text.h"
#include "ops/eval.h"

namespace lamina::ir {
namespace {

/// Inputs by what they are; absent ones are not valid.
struct Bags {
  ValueId table, indices, default_index, weights;
  std::size_t rank = 0;  ///< of the table
  bool fill = false, mean = false;
};

void require_list(LayerContext& c, ValueId value, std::size_t rank, const char* what) {
  const TensorType& type = c.graph().type(value);
  c.require(type.element == ElementType::undefined || is_integer(type.element),
            "{} have type {}, wanted integers", what, name_of(type.element));
  c.require(!type.shape.ranked() || type.shape.rank() == rank, "{} have shape {}, wanted rank {}", what,
            to_string(type.shape), rank);
}

/// Whether empty bags get a row of the table, not zeros.
bool has_default(LayerContext& c, ValueId index) {
  if (!index.valid()) return false;
  const Tensor* given = c.graph().constant(index);
  if (!given) throw NotSupported{"a default index that is computed"};
  c.require(given->size() == 1 && is_integer(given->element_type()),
            "the default index is {}[{}], wanted one integer", name_of(given->element_type()),
            to_string(given->shape()));
  const auto value = to_ints(*given)[0];
  c.require(value >= -1, "the default index is {}, wanted -1 or more", value);
  return value != -1;
}

Bags bags_of(LayerContext& c, std::size_t index_rank, std::size_t default_at, std::size_t weights_at) {
  Bags b{c.in(0), c.in(1), c.in_or_none(default_at), c.in_or_none(weights_at), c.rank(0)};
  const std::string reduction = lower(c.text("reduction", "sum"));
  c.require(reduction == "sum" || reduction == "mean", "reduction=\"{}\", wanted sum or mean",
            reduction.substr(0, 80));
  b.mean = reduction == "mean";
  b.fill = has_default(c, b.default_index);
  c.require(b.rank >= 1, "the table has rank 0, wanted rows");
  require_list(c, b.indices, index_rank, "indices");
  if (b.weights.valid()) {
    const Shape weights = c.graph().type(b.weights).shape, indices = c.shape(1);
    c.require(!b.mean, "has both weights and reduction=\"mean\"");
    c.require(weights.fits(indices), "weights have shape {}, wanted that of the indices {}",
              to_string(weights), to_string(indices));
  }
  return b;
}

ValueId scalar_of(LayerContext& c, std::int64_t value, const std::string& suffix) {
  return c.constant(Tensor::scalar(value), suffix);
}

/// The value with axes of size 1 appended, as many as a row has.
ValueId along_rows(LayerContext& c, ValueId value, std::size_t own, std::size_t table_rank,
                   const std::string& suffix) {
  if (table_rank == 1) return value;
  Ints axes(table_rank - 1);
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(own));
  return c.add(c.plain_op("Unsqueeze"), {value, c.constant(axes, suffix + "_axes")}, suffix);
}

/// The rows of all indices, times their weights.
ValueId weighted_rows(LayerContext& c, const Bags& b, std::size_t index_rank) {
  const Op gather = c.plain_op("Gather", {{"out_of_range", std::string("error")}});
  const ValueId rows = c.add(gather, {b.table, b.indices, scalar_of(c, 0, "axis")}, "rows");
  if (!b.weights.valid()) return rows;
  return c.add(c.plain_op("Multiply"), {rows, along_rows(c, b.weights, index_rank, b.rank, "weights")},
               "weighted");
}

ValueId as_i64(LayerContext& c, ValueId value, const std::string& suffix) {
  if (c.graph().type(value).element == ElementType::i64) return value;
  return c.add(c.plain_op("Convert", {{"destination_type", ElementType::i64}}), {value}, suffix);
}

ValueId sizes_of(LayerContext& c, ValueId value, const std::string& suffix) {
  return c.add(c.plain_op("ShapeOf", {{"output_type", ElementType::i64}}), {value}, suffix);
}

/// [first, ...) along axis 0.
ValueId from(LayerContext& c, ValueId value, std::int64_t first, const std::string& suffix) {
  return c.add(c.plain_op("Slice"),
               {value, c.constant(Ints{first}, suffix + "_start"),
                c.constant(Ints{std::numeric_limits<std::int64_t>::max()}, suffix + "_stop"),
                c.constant(Ints{1}, suffix + "_step"), c.constant(Ints{0}, suffix + "_axis")},
               suffix);
}

/// Zeros of shape `sizes` with `updates` added at `ids` along axis 0.
ValueId added(LayerContext& c, ValueId sizes, ValueId ids, ValueId updates, ElementType type,
              const std::string& suffix) {
  const ValueId zero = c.constant(from_ints(type, {}, {0}), suffix + "_zero");
  const ValueId zeros = c.add(c.plain_op("Broadcast"), {zero, sizes}, suffix + "_zeros");
  return c.add(c.plain_op("ScatterNDUpdate", {{"reduction", std::string("sum")}}), {zeros, ids, updates},
               suffix);
}

/// Bag i is what has the id i + skipped; what has a smaller one is in none. `count`: how many bags, [1].
void finish_bags(LayerContext& c, const Bags& b, ValueId ids, ValueId count, std::int64_t skipped) {
  const ElementType type = c.graph().type(b.table).element;
  c.require(type != ElementType::undefined, "the table has an unknown element type");
  if (skipped > 0)
    count = c.add(c.plain_op("Add"), {count, c.constant(Ints{skipped}, "skipped")}, "all_bags");
  const ValueId row = from(c, sizes_of(c, b.table, "table_sizes"), 1, "row_sizes");
  const ValueId sizes = c.add(c.plain_op("Concat", {{"axis", std::int64_t{0}}}), {count, row}, "sizes");
  const ValueId places = c.add(c.plain_op("Unsqueeze"), {ids, c.constant(Ints{1}, "places_axis")}, "places");
  const auto kept = [&](ValueId value, const std::string& suffix) {
    return skipped > 0 ? from(c, value, skipped, suffix) : value;
  };
  ValueId result = kept(added(c, sizes, places, weighted_rows(c, b, 1), type, "sums"), "bags");
  if (b.fill || b.mean) {
    const ValueId ones =
        c.add(c.plain_op("Broadcast"), {scalar_of(c, 1, "one"), sizes_of(c, ids, "ids_sizes")}, "ones");
    const ValueId found = kept(added(c, count, places, ones, ElementType::i64, "found"), "bag_sizes");
    const ValueId rows = along_rows(c, found, 1, b.rank, "found_in_rows");
    if (b.mean) {
      const ValueId divisor = c.add(c.plain_op("Maximum"), {rows, scalar_of(c, 1, "least")}, "divisor");
      const ValueId like =
          c.add(c.plain_op("Convert", {{"destination_type", type}}), {divisor}, "divisor_like");
      result = c.add(c.plain_op("Divide"), {result, like}, "means");
    }
    if (b.fill) {
      const ValueId index =
          c.add(c.plain_op("Reshape"), {b.default_index, c.constant(Ints{1}, "one_index")}, "default_index");
      const Bags other{b.table, index, {}, {}, b.rank};
      const ValueId empty = c.add(c.plain_op("Equal"), {rows, scalar_of(c, 0, "none")}, "empty");
      result = c.add(c.plain_op("Select"), {empty, weighted_rows(c, other, 1), result}, "filled");
    }
  }
  c.finish(c.plain_op("Identity"), {result});
}

/// Bags of one size: [bags, n] indices.
void packed(LayerContext& c) {
  c.want_inputs(2, 3);
  const Bags b = bags_of(c, 2, c.inputs(), 2);
  c.finish(c.plain_op(b.mean ? "ReduceMean" : "ReduceSum"),
           {weighted_rows(c, b, 2), c.constant(Ints{1}, "bag_axis")});
}

/// Each bag begins at an offset; what stands before the first one is in none.
void offsets(LayerContext& c) {
  c.want_inputs(3, 5);
  const Bags b = bags_of(c, 1, 3, 4);
  require_list(c, c.in(2), 1, "offsets");
  const ValueId count =
      c.add(c.plain_op("Squeeze"), {sizes_of(c, b.indices, "indices_sizes"), c.constant(Ints{0}, "vector")},
            "index_count");
  const ValueId positions = c.add(c.plain_op("Range", {{"output_type", ElementType::i64}}),
                                  {scalar_of(c, 0, "first"), count, scalar_of(c, 1, "step")}, "positions");
  const ValueId ids = c.add(c.plain_op("Bucketize", {{"with_right_bound", false}}),
                            {positions, as_i64(c, c.in(2), "offsets")}, "ids");
  finish_bags(c, b, ids, sizes_of(c, c.in(2), "bag_count"), 1);
}

/// Each index has the number of its bag.
void segments(LayerContext& c) {
  c.want_inputs(3, 6);
  const Bags b = bags_of(c, 1, 4, 5);
  const ValueId ids = as_i64(c, c.in(2), "ids");
  require_list(c, c.in(2), 1, "segment ids");
  c.require(c.shape(2).fits(c.shape(1)), "segment ids have shape {}, wanted that of the indices {}",
            to_string(c.shape(2)), to_string(c.shape(1)));
  if (c.inputs() < 4) {  // as many as the largest id wants
    const ValueId largest = c.add(c.plain_op("ReduceMax", {{"keep_dims", true}}),
                                  {ids, c.constant(Ints{0}, "ids_axis")}, "largest");
    const ValueId count = c.add(c.plain_op("Add"), {largest, c.constant(Ints{1}, "behind")}, "count");
    return finish_bags(c, b, ids, count, 0);
  }
  const ValueId count = c.add(c.plain_op("Reshape"),
                              {as_i64(c, c.in(3), "segments"), c.constant(Ints{1}, "one_count")}, "count");
  finish_bags(c, b, ids, count, 0);
}

}  // namespace

void register_embedding(ConverterTable& t) {
  t.add("EmbeddingBagPackedSum", packed);
  t.add("EmbeddingBagPacked", packed);
  t.add("EmbeddingBagOffsetsSum", offsets);
  t.add("EmbeddingBagOffsets", offsets);
  t.add("EmbeddingSegmentsSum", segments);
}

}  // namespace lamina::ir
