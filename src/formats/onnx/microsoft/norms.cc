/// com.microsoft: normalisations with sums before them, of embeddings, of layers, of groups.
#include "ops/normalization.h"

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/attention.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

ValueId last_mean(Call& c, ValueId x) {
  ReduceMean op;
  op.keep_dims = true;
  return c.add(op, {x, c.ints_constant({-1})});
}

/// 1 / sqrt(mean of x^2 + epsilon) over the last axis, in f32, which stays with size 1.
ValueId inverse_deviation(Call& c, ValueId x, double epsilon) {
  const auto square = last_mean(c, multiply(c, x, x));
  const auto deviation = c.add(Sqrt{}, {add(c, square, c.number_like(epsilon, square))});
  return divide(c, c.number_like(1, deviation), deviation);
}

Values convert_simplified_layer_normalization(Call& c) {
  const auto axis = c.i("axis", -1);
  const auto epsilon = c.f("epsilon", 1e-5f);
  Values out{c.add(RMSNormalization{axis, epsilon}, {c.in(0), c.in(1)})};
  if (!c.wants(1)) return out;
  if (c.axis(axis, c.known_rank(c.in(0))) + 1 != c.known_rank(c.in(0)))
    c.unsupported("the deviation over several axes as an output");
  out.push_back(inverse_deviation(c, c.convert(c.in(0), ElementType::f32), epsilon));
  return out;
}

bool is_product(const Call& c, ValueId v) {
  const auto maker = c.graph().producer(v);
  return maker.valid() && c.graph().node(maker).op.is<MatMul>();
}

/// Input + skip + bias, the bias first to what may be a layer's product: then it becomes that layer's own.
ValueId skipped(Call& c, ValueId x, ValueId skip, ValueId bias) {
  if (!bias.valid()) return add(c, x, skip);
  if (is_product(c, skip) && !is_product(c, x)) std::swap(x, skip);
  return add(c, add(c, x, bias), skip);
}

/// The skip is as the input, of which it may lack the batch.
void check_skip(const Call& c) {
  const auto &x = c.type(c.in(0)).shape, &skip = c.type(c.in(1)).shape;
  if (!x.ranked() || !skip.ranked()) return;
  bool fits = skip.rank() <= x.rank() && skip.rank() + 1 >= x.rank();
  const auto before = fits ? x.rank() - skip.rank() : 0;
  for (std::size_t i = 0; fits && i < skip.rank(); ++i)
    fits = skip[i].fits(x[i + before]) || (i == 0 && before == 0 && x.rank() > 2 && skip[i].is(1));
  if (!fits) c.fail("the skip is {}, the input {}", to_string(skip), to_string(x));
}

/// Normalises input + skip (+ bias); that sum is output 3.
template <bool kSimplified>
Values convert_skip_layer_normalization(Call& c) {
  check_skip(c);
  for (std::size_t i = 2; i < (kSimplified ? 4 : 5); ++i)
    if (c.has(i)) check_vector(c, c.in(i), "a scale or bias", c.in(0));
  const auto sum = skipped(c, c.in(0), c.in(1), c.maybe(kSimplified ? 3 : 4));
  const auto epsilon = c.f("epsilon", 1e-12f);
  Values out(4);
  out[3] = sum;
  if (kSimplified) {
    out[0] = c.add(RMSNormalization{-1, epsilon}, {sum, c.in(2)});
  } else {
    out[0] = c.add(LayerNormalization{-1, epsilon},
                   c.has(3) ? Values{sum, c.in(2), c.in(3)} : Values{sum, c.in(2)});
  }
  if (!c.wants(1) && !c.wants(2)) return out;
  if (kSimplified && c.wants(1)) c.unsupported("the mean as an output");
  auto centred = c.convert(sum, ElementType::f32);
  if (!kSimplified) {
    out[1] = last_mean(c, centred);
    centred = subtract(c, centred, out[1]);
  }
  if (c.wants(2)) out[2] = inverse_deviation(c, centred, epsilon);
  return out;
}

/// The rows of a table [rows, hidden] at ids of any shape.
ValueId rows_at(Call& c, std::size_t table, ValueId ids) {
  check_rank(c, c.in(table), "an embedding", 2);
  if (const auto e = c.known_element(ids); e != ElementType::i32 && e != ElementType::i64)
    c.fail("ids are {}, wanted i32", name_of(e));
  return c.add(Gather{0, OutOfRange::error}, {c.in(table), ids, c.int_constant(0)});
}

/// The number of ones in each row of a mask, i32 [N]; zeros without a mask.
ValueId count_mask(Call& c) {
  if (!c.has(7)) {
    const auto n = c.to_vector(size_of(c, c.in(0), 0));
    return c.filled(c.number(0, ElementType::i32), n);
  }
  const auto mask = c.in(7);
  check_rank(c, mask, "the mask", 2);
  const auto ones = c.convert(c.add(Equal{}, {mask, c.number_like(1, mask)}), ElementType::i32);
  return c.add(ReduceSum{}, {ones, c.ints_constant({1})});
}

/// Ids of words and of segments, the tables of words, positions and segments, scale, bias, mask, positions.
Values convert_embed_layer_normalization(Call& c) {
  check_rank(c, c.in(0), "input_ids", 2);
  auto sum = rows_at(c, 2, c.in(0));
  if (c.has(8)) {
    sum = add(c, sum, rows_at(c, 3, c.in(8)));
  } else {
    check_rank(c, c.in(3), "an embedding", 2);
    const auto length = c.to_vector(size_of(c, c.in(0), 1));
    sum = add(
        c, sum,
        c.add(Slice{}, {c.in(3), c.ints_constant({0}), length, c.ints_constant({1}), c.ints_constant({0})}));
  }
  if (c.has(1) != c.has(4)) c.fail("has only one of segment_ids and segment_embedding");
  if (c.has(1)) sum = add(c, sum, rows_at(c, 4, c.in(1)));
  for (const std::size_t i : {5, 6}) check_vector(c, c.in(i), "a scale or bias", sum);
  const auto y = c.add(LayerNormalization{-1, c.f("epsilon", 1e-12f)}, {sum, c.in(5), c.in(6)});
  return {y, c.wants(1) ? count_mask(c) : ValueId{}, sum};
}

/// y = act(normalised by groups * gamma + beta), for x with the channels in axis 1.
ValueId group_normalize(Call& c, ValueId x) {
  const auto groups = c.i("groups", 0), activation = c.i("activation", 0);
  if (groups <= 0) c.fail("groups is {}, wanted 1 or more", groups);
  if (activation != 0 && activation != 1) c.fail("activation is {}, wanted 0 or 1", activation);
  const auto type = c.known_element(x);
  const auto y = c.add(GroupNormalization{groups, c.f("epsilon", 1e-5f)},
                       {x, c.convert(c.in(1), type), c.convert(c.in(2), type)});
  return activation == 1 ? c.add(Swish{}, {y}) : y;
}

/// x with the channels in axis 1.
ValueId channels_first(Call& c, ValueId x) {
  return read_flag(c, "channels_last", true) ? c.to_channels_first(x, 4) : x;
}

ValueId as_given(Call& c, ValueId x) {
  return read_flag(c, "channels_last", true) ? c.to_channels_last(x, 4) : x;
}

Values convert_group_norm(Call& c) {
  check_rank(c, c.in(0), "the input", 4);
  return {as_given(c, group_normalize(c, channels_first(c, c.in(0))))};
}

/// The sum of input, skip and bias is output 1.
Values convert_skip_group_norm(Call& c) {
  check_rank(c, c.in(0), "the input", 4);
  check_rank(c, c.in(3), "the skip", 4, 2);
  const bool last = read_flag(c, "channels_last", true);
  const Ints pixels = last ? Ints{1, 2} : Ints{2, 3};
  auto sum = add(c, c.in(0), c.known_rank(c.in(3)) == 2 ? c.unsqueeze(c.in(3), pixels) : c.in(3));
  if (c.has(4)) sum = add(c, sum, last ? c.in(4) : c.unsqueeze(c.in(4), {1, 2}));
  return {as_given(c, group_normalize(c, channels_first(c, sum))), sum};
}

}  // namespace

void register_microsoft_norms(ConverterTable& t) {
  t.add(kMicrosoft, "EmbedLayerNormalization", convert_embed_layer_normalization);
  t.add(kMicrosoft, "GroupNorm", convert_group_norm);
  t.add("SimplifiedLayerNormalization",
        convert_simplified_layer_normalization);  // ONNX Runtime keeps it there
  t.add(kMicrosoft, "SkipGroupNorm", convert_skip_group_norm);
  t.add(kMicrosoft, "SkipLayerNormalization", convert_skip_layer_normalization<false>);
  t.add(kMicrosoft, "SkipSimplifiedLayerNormalization", convert_skip_layer_normalization<true>);
}

}  // namespace lamina::onnx
