// Products with weights, scales, and normalisations.
#include <cmath>
#include <numeric>

#include "formats/ir/legacy/lowering.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/normalization.h"

namespace lamina::ir::legacy {
namespace {

/// Axis 1, or the only one.
std::int64_t channels(Lowering& c) {
  const Shape& x = c.shape(0);
  c.require(x.ranked() && x.rank() >= 1, "input 0 has the shape {}, wanted at least one axis", to_string(x));
  const Dim size = x[x.rank() > 1 ? 1 : 0];
  c.require(size.known(), "input 0 has the shape {}, wanted known channels", to_string(x));
  return size.size();
}

/// All axes from the second on become one. Three-dimensional results keep theirs.
void fully_connected(Lowering& c) {
  c.want_inputs(1, 3);
  const Shape x = c.shape(0);
  c.require(x.ranked() && x.rank() >= 2, "input 0 has the shape {}, wanted [N, ...]", to_string(x));
  const auto outputs = c.integer("out-size");
  c.require(outputs >= 1 && outputs <= 1 << 30, "out-size is {}, wanted at least 1", outputs);
  const bool by_rows = x.rank() == 3 && c.declared().rank() == 3 && c.declared()[2].is(outputs);
  Dim columns = x[by_rows ? 2 : 1];
  for (std::size_t i = 2; i < x.rank() && !by_rows; ++i) columns = columns * x[i];
  c.require(columns.known(), "input 0 has the shape {}, wanted known sizes", to_string(x));
  ValueId rows = c.real(0);
  if (!by_rows && x.rank() > 2) rows = c.reshaped(rows, {0, -1}, "rows");
  const Dims wanted = {outputs, columns.size()};
  ValueId weights = c.inputs() > 1 ? c.real(1) : c.blob("weights", wanted);
  if (c.inputs() > 1 && c.sizes(1) != wanted)
    weights = c.reshaped(weights, Ints(wanted.begin(), wanted.end()), "weights");
  MatMul op;
  op.transpose_b = true;
  if (c.inputs() > 2) return c.finish(op, {rows, weights, c.reshaped(c.real(2), {outputs}, "biases")});
  if (c.has_blob("biases")) return c.finish(op, {rows, weights, c.blob("biases", {outputs})});
  c.finish(op, {rows, weights});
}

void gemm(Lowering& c) {
  c.want_inputs(2, 3);
  MatMul op;
  op.transpose_a = c.boolean("transpose_a", false);
  op.transpose_b = c.boolean("transpose_b", false);
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  const bool adds = c.inputs() == 3 && beta != 0;
  const ValueId a = c.real(0), b = c.real(1);
  if (alpha == 1 && !adds) return c.finish(op, {a, b});
  ValueId y = c.add(op, {a, b}, "product");
  if (alpha != 1) {
    const ValueId factor = c.number_like(alpha, y, "alpha");
    if (!adds) return c.finish(Multiply{}, {y, factor});
    y = c.add(Multiply{}, {y, factor}, "scaled");
  }
  ValueId addend = c.real(2);
  if (beta != 1) addend = c.add(Multiply{}, {addend, c.number_like(beta, addend, "beta")}, "scaled_addend");
  c.finish(Add{}, {y, addend});
}

void scale_shift(Lowering& c) {
  c.want_inputs(1, 1);
  const auto count = channels(c);
  ScaleShift op;
  op.axis = c.rank(0) > 1 ? 1 : 0;
  const ValueId scale = c.has_blob("weights") ? c.per_channel("weights", count) : c.reals({1.0f}, "weights");
  if (!c.has_blob("biases")) return c.finish(op, {c.real(0), scale});
  c.finish(op, {c.real(0), scale, c.per_channel("biases", count)});
}

/// The variance is in the weights, the mean in the biases.
void batch_normalization(Lowering& c) {
  c.want_inputs(1, 1);
  const auto count = channels(c);
  c.require(c.rank(0) > 1, "input 0 has the shape {}, wanted [N, C, ...]", to_string(c.shape(0)));
  BatchNormInference op;
  op.epsilon = c.number("epsilon");
  c.require(op.epsilon >= 0, "epsilon is negative");
  const Dims each = {count};
  const auto filled = [&](float value, const char* name) {
    c.require((c.reading().constants_budget -= count) >= 0, "constants of {} channels", count);
    return c.reals(std::vector<float>(static_cast<std::size_t>(count), value), name);
  };
  const ValueId gamma = filled(1, "gamma"), beta = filled(0, "beta");
  c.finish(op, {c.real(0), gamma, beta, c.blob("biases", each), c.blob("weights", each)});
}

/// The axes from `first` on.
ValueId axes_from(Lowering& c, std::int64_t first) {
  const auto rank = static_cast<std::int64_t>(c.rank(0));
  c.require(rank > first, "input 0 has the shape {}, wanted rank {} at least", to_string(c.shape(0)),
            first + 1);
  Ints axes(static_cast<std::size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return c.constant(axes, "axes");
}

void local_response(Lowering& c) {
  c.want_inputs(1, 1);
  LRN op;
  op.alpha = c.number("alpha");
  op.beta = c.number("beta");
  op.bias = c.number("k", 1);
  op.size = c.has("local-size") ? c.integer("local-size") : c.integer("local_size");
  c.require(op.size >= 1, "local-size is {}, wanted at least 1", op.size);
  const std::string region = c.word("region");
  c.require(region == "across" || region == "same", "region=\"{}\", wanted across or same",
            region.substr(0, 80));
  c.finish(op, {c.real(0), region == "across" ? c.constant(Ints{1}, "axes") : axes_from(c, 2)});
}

void normalize(Lowering& c) {
  c.want_inputs(1, 1);
  const auto count = channels(c);
  NormalizeL2 op;
  op.eps = c.number("eps");
  c.require(op.eps >= 0, "eps is negative");
  const ValueId axes = c.boolean("across_spatial", false) ? axes_from(c, 1) : c.constant(Ints{1}, "axes");
  c.require(c.rank(0) > 1, "input 0 has the shape {}, wanted [N, C, ...]", to_string(c.shape(0)));
  if (!c.has_blob("weights")) return c.finish(op, {c.real(0), axes});
  ValueId scale =
      c.boolean("channel_shared", false) ? c.blob("weights", {1}) : c.per_channel("weights", count);
  Ints pattern(c.rank(0) - 1, 1);
  pattern[0] = -1;
  scale = c.reshaped(scale, pattern, "scale");
  c.finish(Multiply{}, {c.add(op, {c.real(0), axes}, "normalized"), scale});
}

void mean_variance(Lowering& c) {
  c.want_inputs(1, 1);
  MVN op;
  op.normalize_variance = c.boolean("normalize_variance", true);
  op.eps = c.number("eps", 1e-9);
  c.require(op.eps >= 0, "eps is negative");
  c.finish(op, {c.real(0), axes_from(c, c.boolean("across_channels", false) ? 1 : 2)});
}

void grn(Lowering& c) {
  c.want_inputs(1, 1);
  GRN op;
  op.bias = c.number("bias");
  c.finish(op, {c.real(0)});
}

}  // namespace

void register_linear(LoweringTable& t) {
  t.add("FullyConnected", fully_connected);
  t.add("InnerProduct", fully_connected);
  t.add("Gemm", gemm);
  t.add("ScaleShift", scale_shift);
  t.add("BatchNormalization", batch_normalization);
  t.add("Norm", local_response);
  t.add("LRN", local_response);
  t.add("Normalize", normalize);
  t.add("MVN", mean_variance);
  t.add("GRN", grn);
}

}  // namespace lamina::ir::legacy
