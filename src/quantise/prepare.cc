#include "quantise/prepare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/pooling.h"
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

/// What follows the layer without another reader, if channels can be scaled on the way there.
NodeId next_layer(const Graph& g, NodeId layer, const std::set<NodeId>& layers) {
  constexpr int kMostBetween = 4;
  auto v = g.node(layer).outputs[0];
  for (int i = 0; i <= kMostBetween; ++i) {
    if (g.readers(v) != 1 || g.value(v).uses.size() != 1) return {};
    const auto [reader, input] = g.value(v).uses[0];
    const auto& node = g.node(reader);
    if (input != 0 || !node.bodies.empty()) return {};
    if (layers.contains(reader))
      return node.op.is<MatMul>() == g.node(layer).op.is<MatMul>() ? reader : NodeId{};
    const bool is_pooling = (node.op.is<MaxPool>() && node.outputs.size() == 1) || node.op.is<AvgPool>();
    if (!node.op.is<Relu>() && !is_pooling) return {};
    v = node.outputs[0];
  }
  return {};
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

std::vector<LayerPair> equalisable_pairs(const Graph& g, const std::vector<Layer>& layers) {
  std::set<NodeId> ids;
  for (const auto& layer : layers)
    if (layer.reason.empty()) ids.insert(layer.node);
  std::vector<LayerPair> out;
  for (const auto& layer : layers)
    if (const auto next = ids.contains(layer.node) ? next_layer(g, layer.node, ids) : NodeId{}; next.valid())
      out.push_back({layer.node, next});
  return out;
}

bool scale_between(Graph& g, const LayerPair& pair, const std::vector<double>& factors) {
  const auto before = g.node(pair.first).inputs;
  if (!scale_outputs(g, pair.first, {.factor = factors, .shift = std::vector<double>(factors.size())}))
    return false;
  if (scale_inputs(g, pair.second, factors)) return true;
  g.set_inputs(pair.first, before);
  return false;
}

std::size_t equalise(Graph& g, const std::vector<Layer>& layers) {
  constexpr int kTurns = 20;
  const auto pairs = equalisable_pairs(g, layers);
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
