#include "quantise/prepare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/pooling.h"
#include "ops/walk.h"
#include "rewrite/driver.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// Factor and shift of each channel.
struct PerChannel {
  std::vector<double> factor, shift;
};

std::optional<PerChannel> batch_normalisation(const Graph& g, const Node& node) {
  std::vector<std::vector<double>> parts;
  for (std::size_t i = 1; i < 5; ++i) {
    const auto* t = g.constant(node.inputs[i]);
    if (!t || t->element_type() != ElementType::f32) return std::nullopt;
    parts.push_back(to_doubles(*t));
  }
  const auto &gamma = parts[0], &beta = parts[1], &mean = parts[2], &variance = parts[3];
  PerChannel out;
  for (std::size_t c = 0; c < gamma.size(); ++c) {
    if (beta.size() != gamma.size() || mean.size() != gamma.size() || variance.size() != gamma.size())
      return std::nullopt;
    out.factor.push_back(gamma[c] / std::sqrt(variance[c] + node.op.as<BatchNormInference>()->epsilon));
    out.shift.push_back(beta[c] - mean[c] * out.factor.back());
  }
  return out;
}

bool is_convolution(const Node& node) {
  return (node.op.is<Convolution>() || node.op.is<ConvolutionBackpropData>()) && node.bodies.empty();
}

/// The layer with its weights multiplied, and something added to its bias. False: left alone.
bool scale_outputs(Graph& g, NodeId layer, const PerChannel& by) {
  const auto node = g.node(layer);
  const auto* weights = g.constant(node.inputs[1]);
  if (!weights || weights->element_type() != ElementType::f32) return false;
  const auto channels = output_channels(g, node);
  const auto* old_bias = bias_by_channel(g, layer);
  if ((has_input(node, 2) && !old_bias) || channels != by.factor.size()) return false;
  auto bias = bias_values(g, node, channels);
  for (std::size_t c = 0; c < channels; ++c) bias[c] = bias[c] * by.factor[c] + by.shift[c];
  const auto scaled = scaled_weights(g, node, Side::outputs, by.factor, bias);
  const auto rounded =
      from_doubles(ElementType::f32, old_bias ? old_bias->shape() : Dims{std::ssize(bias)}, bias);
  if (!scaled || !all_finite(rounded)) return false;
  auto inputs = node.inputs;
  inputs[1] = g.add_constant(*scaled, g.value(node.inputs[1]).name);
  if (old_bias || std::any_of(bias.begin(), bias.end(), [](double x) { return x != 0; })) {
    inputs.resize(std::max<std::size_t>(inputs.size(), 3));
    inputs[2] = g.add_constant(rounded, g.value(node.outputs[0]).name + "_bias");
  }
  g.set_inputs(layer, std::move(inputs));
  return true;
}

}  // namespace

std::vector<Absorbed> fold_batch_normalisation(Graph& g,
                                               const std::function<bool(const Absorbed&)>& may_absorb) {
  std::vector<Absorbed> out;
  std::map<ValueId, std::string> names;  // of values that have another one now
  for (const auto id : g.order()) {
    const auto node = g.node(id);
    if (!node.op.is<BatchNormInference>()) continue;
    const auto layer = g.producer(node.inputs[0]);
    if (!layer.valid() || !is_convolution(g.node(layer)) || g.readers(node.inputs[0]) != 1) continue;
    const auto made = node.inputs[0], wanted = node.outputs[0];
    const auto renamed = names.find(made);
    Absorbed absorbed{renamed == names.end() ? g.value(made).name : renamed->second, g.value(wanted).name};
    if (!may_absorb(absorbed)) continue;
    const auto by = batch_normalisation(g, node);
    if (!by || !scale_outputs(g, layer, *by)) continue;
    g.replace(wanted, made);
    g.erase(id);
    g.set_value_name(made, absorbed.output);
    names.emplace(made, absorbed.layer_output);
    out.push_back(std::move(absorbed));
  }
  g.erase_unused_constants();
  return out;
}

namespace {

/// The number of axes after the axis of channels, in the layer's result or in a value with the same axes.
std::size_t axes_behind_channels(const Node& layer, std::size_t rank) {
  return layer.op.is<MatMul>() ? 0 : rank - 2;
}

/// A constant that is added to, or subtracted from, the channels of a layer.
struct Term {
  std::size_t input = 0;  ///< of the Add or Subtract
  std::size_t axis = 0;   ///< of the channels, in the constant's shape with ones before it as needed
  Dims dims = {};         ///< this shape
};

/// `from`: the input by which the channels come.
std::optional<Term> term_of(const Graph& g, const Node& layer, const Node& sum, std::size_t from) {
  if (!sum.op.is<Add>() && !(sum.op.is<Subtract>() && from == 0)) return std::nullopt;
  Term out{.input = 1 - from};
  const auto* constant = g.constant(sum.inputs[out.input]);
  const auto& x = g.type(sum.inputs[from]).shape;
  if (!constant || constant->element_type() != ElementType::f32 || !x.ranked() || x.rank() < 2)
    return std::nullopt;
  out.dims = constant->shape();
  const auto wanted = axes_behind_channels(layer, x.rank()) + 1;
  if (out.dims.size() > x.rank()) return std::nullopt;  // the channels would be another axis behind it
  if (out.dims.size() < wanted) out.dims.insert(out.dims.begin(), wanted - out.dims.size(), 1);
  out.axis = out.dims.size() - wanted;
  const auto size = out.dims[out.axis];
  const bool by_channel = size == 1 || size == static_cast<std::int64_t>(output_channels(g, layer));
  return by_channel ? std::optional(std::move(out)) : std::nullopt;
}

/// The constant multiplied by a factor for each channel; invalid where the numbers would not be finite.
Tensor scaled_term(const Tensor& constant, const Term& term, const std::vector<double>& by) {
  const auto numbers = to_floats(constant);
  auto dims = term.dims;
  dims[term.axis] = std::ssize(by);
  const auto outer = static_cast<std::size_t>(volume(dims, 0, term.axis)),
             inner = static_cast<std::size_t>(volume(dims, term.axis + 1, dims.size())),
             own = static_cast<std::size_t>(term.dims[term.axis]);
  std::vector<double> scaled;
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t c = 0; c < by.size(); ++c)
      for (std::size_t i = 0; i < inner; ++i)
        scaled.push_back(by[c] * numbers[(o * own + (own == 1 ? 0 : c)) * inner + i]);
  auto out = from_doubles(ElementType::f32, dims, scaled);
  return all_finite(out) ? out : Tensor{};
}

/// The layer and what follows it without another reader, if channels can be scaled on the way there.
std::optional<LayerPair> pair_from(const Graph& g, NodeId layer, const std::set<NodeId>& layers,
                                   const std::set<NodeId>& fixed) {
  constexpr int kMostBetween = 6;
  LayerPair out{.first = layer, .second = {}};
  auto v = g.node(layer).outputs[0];
  for (int i = 0; i <= kMostBetween; ++i) {
    if (g.readers(v) != 1 || g.value(v).uses.size() != 1) return std::nullopt;
    const auto [reader, input] = g.value(v).uses[0];
    const auto& node = g.node(reader);
    if (!node.bodies.empty()) return std::nullopt;
    out.second = reader;
    if (input == 0 && layers.contains(reader))
      return node.op.is<MatMul>() == g.node(layer).op.is<MatMul>() ? std::optional(out) : std::nullopt;
    const bool is_pooling = (node.op.is<MaxPool>() && node.outputs.size() == 1) || node.op.is<AvgPool>();
    if (!fixed.contains(reader) && term_of(g, g.node(layer), node, input))
      out.sums.push_back(reader);
    else if (!node.op.is<Relu>() && !is_pooling)
      return std::nullopt;
    v = node.outputs[0];
  }
  return std::nullopt;
}

/// False: left alone.
bool scale_sum(Graph& g, NodeId layer, NodeId sum, const std::vector<double>& by) {
  const auto& inputs = g.node(sum).inputs;
  const auto term = term_of(g, g.node(layer), g.node(sum), g.constant(inputs[0]) ? 1 : 0);
  if (!term || output_channels(g, g.node(layer)) != by.size()) return false;
  const auto old = inputs[term->input];
  const auto scaled = scaled_term(g.constant(old)->to_aligned(), *term, by);
  if (!scaled.valid()) return false;
  g.set_input(sum, term->input, g.add_constant(scaled, g.value(old).name));
  return true;
}

/// Scaled by the inverse of what the layer before was scaled by.
bool scale_inputs(Graph& g, NodeId layer, const std::vector<double>& by) {
  const auto node = g.node(layer);
  if (input_channels(g, node) != by.size()) return false;
  std::vector<double> factors;
  for (const double f : by) factors.push_back(1 / f);
  const auto scaled = scaled_weights(g, node, Side::inputs, factors, {});
  if (!scaled) return false;
  g.set_input(layer, 1, g.add_constant(*scaled, g.value(node.inputs[1]).name));
  return true;
}

/// The largest weight of each output channel of the one, and of each input channel of the other.
std::pair<std::vector<double>, std::vector<double>> largest_weights(const Graph& g, NodeId first,
                                                                    NodeId second) {
  const auto largest = [&](NodeId layer, std::vector<double>& of_channels, Side side) {
    const auto& weights = *g.constant(g.node(layer).inputs[1]);
    const auto numbers = to_floats(weights);
    WeightsMatrix(g.node(layer), weights.shape())
        .for_each([&](std::size_t i, std::size_t in, std::size_t out) {
          const auto channel = side == Side::outputs ? out : in;
          if (channel < of_channels.size())
            of_channels[channel] = std::max(of_channels[channel], std::fabs(static_cast<double>(numbers[i])));
        });
  };
  std::vector<double> out(output_channels(g, g.node(first))), in(out.size());
  largest(first, out, Side::outputs);
  largest(second, in, Side::inputs);
  return {std::move(out), std::move(in)};
}

/// The factors with which both have the same range; 1 where a channel has no weights.
std::vector<double> equalising_factors(const Graph& g, NodeId first, NodeId second) {
  constexpr double kLeast = 1e-8, kMostTimes = 1e4;
  const auto [out, in] = largest_weights(g, first, second);
  std::vector<double> factors(out.size(), 1);
  for (std::size_t c = 0; c < out.size(); ++c)
    if (out[c] > kLeast && in[c] > kLeast)
      factors[c] = std::clamp(std::sqrt(in[c] / out[c]), 1 / kMostTimes, kMostTimes);
  return factors;
}

}  // namespace

std::vector<LayerPair> equalisable_pairs(const Graph& g, const std::vector<Layer>& layers,
                                         const std::set<NodeId>& fixed) {
  std::set<NodeId> ids;
  for (const auto& layer : layers)
    if (layer.reason.empty()) ids.insert(layer.node);
  std::vector<LayerPair> out;
  for (const auto& layer : layers)
    if (ids.contains(layer.node))
      if (auto pair = pair_from(g, layer.node, ids, fixed)) out.push_back(std::move(*pair));
  return out;
}

bool scale_between(Graph& g, const LayerPair& pair, const std::vector<double>& factors) {
  std::vector<std::pair<NodeId, std::vector<ValueId>>> before{{pair.first, g.node(pair.first).inputs}};
  for (const auto sum : pair.sums) before.emplace_back(sum, g.node(sum).inputs);
  const PerChannel by{.factor = factors, .shift = std::vector<double>(factors.size())};
  const bool scaled = scale_outputs(g, pair.first, by) &&
                      std::all_of(pair.sums.begin(), pair.sums.end(),
                                  [&](NodeId sum) { return scale_sum(g, pair.first, sum, factors); }) &&
                      scale_inputs(g, pair.second, factors);
  if (!scaled)
    for (auto& [node, inputs] : before) g.set_inputs(node, std::move(inputs));
  return scaled;
}

std::size_t equalise(Graph& g, const std::vector<Layer>& layers, const std::set<NodeId>& fixed) {
  constexpr int kTurns = 20;
  const auto pairs = equalisable_pairs(g, layers, fixed);
  std::set<NodeId> scaled;  // the first ones
  for (int turn = 0; turn < kTurns; ++turn) {
    double most = 1;
    for (const auto& pair : pairs) {
      const auto factors = equalising_factors(g, pair.first, pair.second);
      if (!scale_between(g, pair, factors)) continue;
      scaled.insert(pair.first);
      for (const double f : factors) most = std::max({most, f, 1 / f});
    }
    if (most < 1.01) break;
  }
  g.erase_unused_constants();
  return scaled.size();
}

void fold_constants(Graph& g) {
  Rules rules;
  add_fold_constants(rules);
  RewriteOptions options;
  options.for_file = true;
  Ledger ledger;
  Driver(rules, options, ledger).run(g, RuleSet::normalize);
  g.infer_types();
}

}  // namespace lamina
