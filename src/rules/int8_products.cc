/// Convolutions and matrix products of quantised operands multiply the integers themselves.
#include <algorithm>
#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "rewrite/driver.h"
#include "rules/int8_operands.h"
#include "rules/quantised_products.h"
#include "rules/rules.h"
#include "rules/stored_weights.h"
#include "rules/weights.h"

namespace lamina {
namespace {

using int8::Factors;
using int8::Source;

struct Integers {
  Source source;
  Factors factors;
};

/// The least and the largest of numbers that are not 0.
std::pair<double, double> sizes_of(const std::vector<double>& numbers) {
  std::pair<double, double> out{1, 1};
  bool any = false;
  for (const auto n : numbers) {
    const auto size = std::fabs(n);
    if (size == 0) continue;
    out = any ? std::pair{std::min(out.first, size), std::max(out.second, size)} : std::pair{size, size};
    if (!std::isfinite(size)) return {size, size};
    any = true;
  }
  return out;
}

/// The scale of the sums is that of the products, whatever f32 makes of its factors.
Verdict scales_fit(const Integers& found) {
  const auto x = sizes_of(found.source.scale), w = sizes_of(found.factors.scale);
  const auto least = static_cast<float>(x.first * w.first), most = static_cast<float>(x.second * w.second);
  if (int8::numbers_are_finite(x.second) && int8::numbers_are_finite(w.second) && std::isnormal(least) &&
      std::isnormal(most))
    return Verdict::yes();
  return Verdict::no(
      "scales of its input (from {}) times scales of its weights (from {}) are too small or too large for "
      "f32",
      x.first, w.first);
}

/// What is added to all elements of the source adds one number to each output channel.
bool one_sum_by_output(const Graph& g, const Node& n) {
  const auto& w = g.type(n.inputs[1]).shape;
  return !n.op.is<MatMul>() || (w.ranked() && w.rank() < 3);
}

/// Number of products of 8-bit and 9-bit integers whose sum stays below 2^31.
constexpr double kMostProducts = 33025;

Verdict sums_fit(const Graph& g, const Node& product) {
  const auto& w = g.type(product.inputs[1]).shape;
  if (!w.ranked()) return Verdict::no("the rank of its weights is not known");
  const auto axis = output_axis(g, product);
  double count = 1;
  if (const auto* op = product.op.as<MatMul>()) {
    const Dim depth = w.rank() < 2 ? w[0] : w[w.rank() - (op->transpose_b ? 1 : 2)];
    if (!depth.known()) return Verdict::no("the number of products in a sum is not known");
    count = static_cast<double>(depth.size());
  } else {
    for (std::size_t i = 0; i < w.rank(); ++i) {
      if (!w[i].known()) return Verdict::no("the number of products in a sum is not known");
      if (i != axis) count *= static_cast<double>(w[i].size());
    }
    if (const auto* back = product.op.as<ConvolutionBackpropData>())
      count /= static_cast<double>(back->groups);
  }
  if (count > kMostProducts)
    return Verdict::no("sums of {:.0f} products of integers may need more than 32 bits", count);
  return Verdict::yes();
}

Found<Integers> operands(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  if (g.type(n.outputs[0]).element != ElementType::f32) return std::nullopt;
  auto factors = int8::factors_of(m, n);
  auto source = int8::source_of(m, n);
  const bool no_source = !source && source.verdict().reason().empty();
  const bool no_factors = !factors && factors.verdict().reason().empty();
  if (no_source && no_factors) {
    for (const auto v : {n.inputs[0], n.inputs[1]})
      if (auto near = int8::no_levels_near(m, v); !near) return near;
    return std::nullopt;
  }
  if (!source) {
    if (!no_source) return source.verdict();
    if (auto near = int8::no_levels_near(m, n.inputs[0]); !near) return near;
    return Verdict::no("its weights are integers, its input {} is not quantised to 8 bits",
                       m.label(n.inputs[0]));
  }
  if (!factors) {
    if (!no_factors) return factors.verdict();
    if (auto near = int8::no_levels_near(m, n.inputs[1]); !near) return near;
    return Verdict::no("its input is quantised, its weights {} are floats", m.label(n.inputs[1]));
  }
  if (n.op.is<ConvolutionBackpropData>() && has_input(n, 3) && !g.constant(n.inputs[3]))
    return Verdict::no("its output's sizes are computed");
  if (epilogue(n)) return Verdict::no("it has an epilogue already");
  if (auto v = sums_fit(g, n); !v) return v;
  if (!g.type(n.outputs[0]).shape.ranked()) return Verdict::no("the rank of its result is not known");
  if (source->offset != 0 && !factors->numbers.valid())
    return Verdict::no("0 is no level of {}, and its weights are computed", m.label(n.inputs[0]));
  if (source->offset != 0 && !one_sum_by_output(g, n))
    return Verdict::no("0 is no level of {}, and its weights are several matrices", m.label(n.inputs[0]));
  Integers found{std::move(source).take(), std::move(factors).take()};
  if (auto v = scales_fit(found); !v) return v;
  return found;
}

/// Numbers by output channel in the shape in which they meet the result.
Tensor by_channel(const Graph& g, const Node& product, const std::vector<double>& numbers) {
  if (numbers.size() == 1) return from_doubles(ElementType::f32, {}, numbers);
  const auto rank = g.type(product.outputs[0]).shape.rank();
  const Dims dims = product.op.is<MatMul>() ? Dims{static_cast<std::int64_t>(numbers.size())}
                                            : along_axis(rank, 1, numbers.size());
  return from_doubles(ElementType::f32, dims, numbers);
}

/// The bias, which may be of another element type, as an operand of Add.
ValueId bias_operand(Rewrite& r, const Node& product) {
  const Graph& g = r.graph();
  auto v = product.inputs[2];
  if (g.type(v).element != ElementType::f32) v = r.add(Convert{ElementType::f32}, {v});
  if (product.op.is<MatMul>()) return v;
  const auto rank = g.type(product.outputs[0]).shape.rank();
  if (const auto* t = g.constant(v))
    return r.constant(t->to_aligned().reshaped(along_axis(rank, 1, t->size())), g.value(v).name);
  Ints pattern(rank, 1);
  pattern[1] = -1;
  return r.add(Reshape{}, {v, r.constant(ints_tensor(pattern))});
}

/// Scales of a depthwise convolution's inputs by output channel.
std::vector<double> by_output(const Graph& g, const Node& n, const std::vector<double>& scale) {
  if (scale.size() == 1) return scale;
  const auto outputs = static_cast<std::size_t>(g.type(n.inputs[1]).shape[0].size());
  std::vector<double> out(outputs);
  for (std::size_t i = 0; i < outputs; ++i) out[i] = scale[i / (outputs / scale.size())];
  return out;
}

/// The sums of weights that an output's taps have, over the input channels: [outputs, 1, taps...], of a
/// transposed convolution [groups, outputs of a group, taps...].
Tensor tap_sums(const Node& n, const Factors& f) {
  const auto& dims = f.numbers.shape();
  const WeightsMatrix weights(n, dims);
  std::size_t taps = 1;
  const bool matrix = n.op.is<MatMul>();
  for (std::size_t i = 2; i < dims.size() && !matrix; ++i) taps *= static_cast<std::size_t>(dims[i]);
  const auto outputs = weights.outputs();
  const auto numbers = to_doubles(f.numbers);
  const auto zero = f.zero_points.valid() ? to_doubles(f.zero_points) : std::vector<double>{0};
  std::vector<double> sums(outputs * taps, 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto o = weights.output(i);
    sums[o * taps + i % taps] += (numbers[i] - zero[o % zero.size()]) * f.scale[o % f.scale.size()];
  }
  Dims out(dims);
  if (matrix) out = {0, 1};
  const auto* back = n.op.as<ConvolutionBackpropData>();
  out[0] = back ? back->groups : static_cast<std::int64_t>(outputs);
  out[1] = static_cast<std::int64_t>(outputs) / out[0];
  return from_doubles(ElementType::f64, out, sums);
}

/// What the source's offset adds to the results: one number for each output channel or, where the border
/// cuts taps off, for each position.
Tensor offsets(const Graph& g, const Node& n, const Integers& found) {
  const auto sums = tap_sums(n, found.factors);
  if (int8::pads(n)) {
    const auto* back = n.op.as<ConvolutionBackpropData>();
    Dims x{1, back ? back->groups : n.op.as<Convolution>()->groups};  // the batch may be unknown
    const auto& shape = g.type(n.inputs[0]).shape;
    for (std::size_t i = 2; i < shape.rank(); ++i) x.push_back(shape[i].size());
    const std::vector<double> all(element_count(x), found.source.offset);
    std::vector<Tensor> operands{from_doubles(ElementType::f64, x, all), sums};
    if (back && has_input(n, 3)) operands.insert(operands.end(), {Tensor(), *g.constant(n.inputs[3])});
    Graph one;
    std::vector<ValueId> inputs;
    for (const auto& t : operands) inputs.push_back(t.valid() ? one.add_constant(t) : ValueId{});
    const Node& conv = one.node(one.producer(one.add(Op(n.op), std::move(inputs))));
    return convert(evaluate_node(conv, operands, {}).at(0), ElementType::f32);
  }
  const auto outputs = static_cast<std::size_t>(sums.shape()[0]);
  const auto values = to_doubles(sums);
  std::vector<double> out(outputs, 0);
  for (std::size_t i = 0; i < values.size(); ++i)
    out[i / (values.size() / outputs)] += values[i] * found.source.offset;
  return by_channel(g, n, out);
}

void multiply_integers(Rewrite& r, const Integers& found) {
  const Graph& g = r.graph();
  const Node n = r.match().root_node();  // the graph changes
  const auto& [source, factors] = found;
  const auto weights =
      factors.value.valid() ? factors.value : r.constant(factors.numbers, g.value(n.inputs[1]).name);
  const auto x_zero = int8::zero_point(r, g.type(source.integers).element, source.zero_point);
  const auto w_zero = factors.zero_points.valid() ? r.constant(factors.zero_points) : ValueId{};
  std::vector<ValueId> inputs{source.integers, weights, {}};
  if (n.op.is<ConvolutionBackpropData>()) inputs.push_back(has_input(n, 3) ? n.inputs[3] : ValueId{});
  inputs.insert(inputs.end(), {x_zero, w_zero});
  while (!inputs.back().valid()) inputs.pop_back();
  auto y = r.add(Convert{ElementType::f32}, {r.add(Op(n.op), std::move(inputs))});
  const auto scale = int8::times(by_output(g, n, source.scale), factors.scale);
  y = r.add(Multiply{}, {y, r.constant(by_channel(g, n, scale))});
  if (has_input(n, 2)) y = r.add(Add{}, {y, bias_operand(r, n)});
  if (source.offset != 0) y = r.add(Add{}, {y, r.constant(offsets(g, n, found))});
  int8::absorb(r, source.levels);
  for (const auto id : factors.nodes) r.absorb(id);
  r.replace(y);
}

/// A constant of integers becomes these weights, by steps that are folded where they do not stay integers.
bool are_stored(const Graph& g, ValueId weights) {
  constexpr std::size_t kMostSteps = 8;
  return search_up(g, weights, kMostSteps, [&](const Node& n, ValueId) -> std::optional<bool> {
    if (unpacks(g, n)) return true;
    if (n.op.is<Multiply>() || n.op.is<Subtract>() || n.op.is<Convert>() || moves_elements(n))
      return std::nullopt;
    return false;
  });
}

std::string float_source(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  if (!are_stored(g, n.inputs[1]) || has_quantised_source(g, n)) return {};
  return fmt::format("its weights are stored as integers, its input {} is not quantised",
                     m.label(n.inputs[0]));
}

}  // namespace

void add_int8_products(Rules& rules) {
  const auto product = is<Convolution, ConvolutionBackpropData, MatMul>(any(), any());
  rules.push_back(rule("int8-product",
                       "Convolutions and matrix products of quantised operands multiply their integers",
                       RuleSet::integers, product)
                      .when(operands)
                      .make(multiply_integers)
                      .only_with(&RewriteOptions::integers));
  rules.push_back(rule("int8-weights",
                       "Records which integer weights become floats because their products read floats",
                       RuleSet::as_read, product)
                      .refuse(float_source)
                      .only_with(&RewriteOptions::integers));
}

}  // namespace lamina
