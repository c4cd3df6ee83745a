/// FlexAttention of ai.onnx.preview: attention whose scores and weights pass through graphs of the model.
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/heads.h"
#include "formats/onnx/importer.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

/// The graph `name` of one input and one output, applied to `v`; without it v itself.
ValueId modified(Call& c, std::string_view name, ValueId v) {
  if (!c.has_attribute(name)) return v;
  const auto* body = c.body(name);
  if (body->inputs.size() != 1 || body->outputs.size() != 1)
    c.fail("{} has {} inputs and {} outputs, wanted one of each", name, body->inputs.size(),
           body->outputs.size());
  const auto y = c.importer().inline_body(c.scope(), *body, {v})[0];
  if (c.element(y) != c.element(v) && c.element(y) != ElementType::undefined)
    c.fail("{} makes {} of {}", name, name_of(c.element(y)), name_of(c.element(v)));
  // What it makes has the shape of the scores, which those who read it need to know.
  if (!c.rank(y)) return c.reshape(y, c.shape_of(v));
  if (c.rank(y) != c.rank(v)) c.fail("{} makes rank {}, wanted {}", name, *c.rank(y), c.known_rank(v));
  return y;
}

/// Queries, keys, values.
Values convert_flex_attention(Call& c) {
  for (std::size_t i = 0; i < 3; ++i) check_rank(c, c.in(i), i == 0 ? "the query" : "an operand", 4);
  const auto type = c.known_element(c.in(0));
  const auto precision =
      c.element_attribute("softmax_precision", type == ElementType::f64 ? type : ElementType::f32);
  if (!is_float(precision)) c.fail("softmax_precision is {}, wanted floats", name_of(precision));
  const HeadGroups groups(c, {c.in(0), c.in(1), c.in(2)});
  const auto one = groups.grouped();
  const auto scale = scale_of_scores(c, c.in(0));
  if (!c.has_attribute("score_mod") && !c.has_attribute("prob_mod") &&
      (precision == ElementType::f32 || precision == type)) {
    const auto y = c.add(ScaledDotProductAttention{}, {one.q, one.k, one.v, ValueId{}, scale});
    return {groups.ungrouped(y, c.in(2), 3)};
  }
  // The graphs see the scores of all heads in one axis.
  auto scores = c.add(MatMul{false, true}, {multiply(c, one.q, scale), one.k});
  scores = modified(c, "score_mod", c.convert(groups.ungrouped(scores, c.in(1), 2), precision));
  auto weights = modified(c, "prob_mod", c.add(Softmax{-1}, {scores}));
  weights = HeadGroups(c, {weights, c.in(1), c.in(2)}).grouped().q;
  const auto y = c.add(MatMul{}, {weights, c.convert(one.v, precision)});
  return {c.convert(groups.ungrouped(y, c.in(2), 3), type)};
}

}  // namespace

void register_flex_attention(ConverterTable& t) {
  t.add("ai.onnx.preview", "FlexAttention", convert_flex_attention);
}

}  // namespace lamina::onnx
