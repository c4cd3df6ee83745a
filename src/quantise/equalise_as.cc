#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/eval.h"
#include "quantise/constants.h"
#include "quantise/counterparts.h"
#include "quantise/layer_queries.h"
#include "quantise/prepare.h"
#include "quantise/prepared_f32.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// One output channel's weights in the f32 layer and in the quantised one.
struct ChannelOfBoth {
  double f32 = 0, quantised = 0, product = 0;  // sums of squares, and of products

  double cosine() const {
    if (f32 > 0 && quantised > 0) return product / std::sqrt(f32 * quantised);
    return f32 == quantised ? 1 : 0;
  }
  /// What the quantised weights are multiplied by, if they are the same ones.
  std::optional<double> factor() const {
    constexpr double kAlike = 0.9;
    if (f32 > 0 && cosine() > kAlike) return product / f32;
    return std::nullopt;
  }
};

/// Weights of a layer in both graphs, in the same layout.
class WeightsOfBoth {
 public:
  WeightsOfBoth(const Graph& f, NodeId layer, std::vector<double> quantised)
      : layout_(f.node(layer), f.constant(f.node(layer).inputs[1])->shape()),
        f32_(to_doubles(f.constant(f.node(layer).inputs[1])->to_aligned())),
        quantised_(std::move(quantised)) {}

  /// By output channel, with each input channel of f32 divided by its number of these, if there are any.
  std::vector<ChannelOfBoth> by_output(const std::vector<double>& inputs_by = {}) const {
    std::vector<ChannelOfBoth> out(layout_.outputs());
    layout_.for_each([&](std::size_t i, std::size_t in, std::size_t channel) {
      const double a = in < inputs_by.size() ? f32_[i] / inputs_by[in] : f32_[i], b = quantised_[i];
      auto& sums = out.at(channel);
      sums.f32 += a * a, sums.quantised += b * b, sums.product += a * b;
    });
    return out;
  }

 private:
  WeightsMatrix layout_;
  std::vector<double> f32_, quantised_;
};

double mean_cosine(const std::vector<ChannelOfBoth>& channels) {
  double sum = 0;
  for (const auto& c : channels) sum += c.cosine();
  return channels.empty() ? 0 : sum / static_cast<double>(channels.size());
}

/// 1 where the channel's weights are not the same.
std::vector<double> factors_of(const std::vector<ChannelOfBoth>& channels) {
  std::vector<double> out;
  for (const auto& c : channels) out.push_back(c.factor().value_or(1));
  return out;
}

double mean_logarithm(const std::vector<double>& factors) {
  double sum = 0;
  for (const double f : factors) sum += std::fabs(std::log(f));
  return factors.empty() ? 0 : sum / static_cast<double>(factors.size());
}

/// The layer of the quantised graph that stands for this one.
NodeId quantised_layer(const Graph& f, const Graph& q, const Counterparts& counterparts, NodeId layer) {
  constexpr int kMostBetween = 8;
  auto v = f.node(layer).outputs[0];
  for (int i = 0; i < kMostBetween && !counterparts.find(v); ++i) {
    if (f.readers(v) != 1 || f.value(v).uses.size() != 1) return {};
    const auto next = f.value(v).uses[0].node;
    if (is_layer(f, next)) return {};
    v = f.node(next).outputs[0];
  }
  const auto* c = counterparts.find(v);
  if (!c) return {};
  auto at = c->computed.valid() ? c->computed : c->rounded[0];
  for (int i = 0; i < kMostBetween; ++i) {
    const auto maker = q.producer(at);
    if (!maker.valid()) return {};
    if (is_layer(q, maker)) return maker;
    at = computed_input(q, q.node(maker));
    if (!at.valid()) return {};
  }
  return {};
}

std::optional<WeightsOfBoth> weights_of_both(const Graph& f, const Graph& q, const Counterparts& counterparts,
                                             NodeId layer) {
  const auto match = quantised_layer(f, q, counterparts, layer);
  if (!match.valid()) return std::nullopt;
  const Node &own = f.node(layer), &other = q.node(match);
  if (own.op.name() != other.op.name() || other.inputs.size() < 2 ||
      q.type(other.inputs[1]).shape != f.type(own.inputs[1]).shape)
    return std::nullopt;
  auto numbers = constant_numbers(q, other.inputs[1]);
  if (!numbers || numbers->size() != f.constant(own.inputs[1])->size()) return std::nullopt;
  return WeightsOfBoth(f, layer, std::move(*numbers));
}

/// What the weights of both graphs say of the scale of channels between two layers.
class ScalesOfBoth {
 public:
  ScalesOfBoth(const Graph& f32, const Graph& quantised, const Counterparts& counterparts,
               const std::vector<LayerPair>& pairs)
      : f_(f32), q_(quantised), counterparts_(counterparts), pairs_(pairs) {}

  /// What the quantised graph's channels between the two are multiplied by; empty where they are the same.
  std::vector<double> factors(const LayerPair& pair) const {
    constexpr double kOther = 0.01;
    const auto first = weights_of_both(f_, q_, counterparts_, pair.first);
    if (!first) return {};
    auto out = factors_of(first->by_output());
    const bool same = std::all_of(out.begin(), out.end(), [](double x) { return std::fabs(x - 1) < kOther; });
    if (same || !confirms(pair.second, out)) return {};
    return out;
  }

 private:
  /// Whether the weights of the layer that reads the channels say, too, that these were multiplied. Those of
  /// the layer before differ for other reasons as well: large weights are clipped, small ones have few
  /// levels.
  bool confirms(NodeId second, const std::vector<double>& factors) const {
    constexpr double kLess = 0.8, kMuchLess = 0.5, kSame = 1e-9;
    const auto weights = weights_of_both(f_, q_, counterparts_, second);
    if (!weights) return false;
    const auto now = weights->by_output(), then = weights->by_output(factors);
    const double before = mean_cosine(now), after = mean_cosine(then);
    if (1 - after < kLess * (1 - before)) return true;
    if (std::fabs(after - before) > kSame) return false;
    // Each output reads one channel (depthwise), and may have a factor of its own for the layer behind it.
    const auto own = factors_of(then);
    if (mean_logarithm(own) < kMuchLess * mean_logarithm(factors_of(now))) return true;
    const auto next = std::find_if(pairs_.begin(), pairs_.end(),
                                   [&](const LayerPair& pair) { return pair.first == second; });
    return next != pairs_.end() && confirms(next->second, own);
  }

  const Graph &f_, &q_;
  const Counterparts& counterparts_;
  const std::vector<LayerPair>& pairs_;
};

/// The layer that alone reads the first one's channels, whatever is done to these on the way.
NodeId reader_of_channels(const Graph& g, NodeId first, const std::set<NodeId>& layers) {
  constexpr int kMostBetween = 8;
  auto v = g.node(first).outputs[0];
  for (int i = 0; i <= kMostBetween; ++i) {
    if (g.readers(v) != 1 || g.value(v).uses.size() != 1) return {};
    const auto [reader, input] = g.value(v).uses[0];
    const auto& node = g.node(reader);
    if (layers.contains(reader)) {
      const bool same = input == 0 && input_channels(g, node) == output_channels(g, g.node(first));
      return same ? reader : NodeId{};
    }
    const bool alone = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId x) {
      return !x.valid() || x == v || constant_nodes(g, x).has_value();
    });
    if (!alone || !node.bodies.empty() || node.outputs.size() != 1) return {};
    v = node.outputs[0];
  }
  return {};
}

}  // namespace

std::size_t equalise_as(Graph& f32, const Graph& quantised) {
  constexpr int kTurns = 20;  // layers whose values have other names are found once those before are scaled
  const auto pairs = equalisable_pairs(f32, layers_of(f32, {}));
  std::set<NodeId> scaled;  // the first ones
  for (int turn = 0; turn < kTurns && !pairs.empty(); ++turn) {
    const auto counterparts = find_counterparts(quantised, f32);
    const ScalesOfBoth scales(f32, quantised, counterparts, pairs);
    bool changed = false;
    for (const auto& pair : pairs)
      if (const auto factors = scales.factors(pair); !factors.empty() && scale_between(f32, pair, factors))
        changed = true, scaled.insert(pair.first);
    if (!changed) break;
  }
  f32.erase_unused_constants();
  return scaled.size();
}

std::vector<LayerPair> pairs_of_other_scale(const Graph& f32, const Graph& quantised,
                                            const Counterparts& counterparts) {
  std::set<NodeId> layers;
  for (const auto& layer : layers_of(f32, {}))
    if (layer.reason.empty()) layers.insert(layer.node);
  std::vector<LayerPair> pairs, out;
  for (const auto id : f32.order())
    if (layers.contains(id))
      if (const auto next = reader_of_channels(f32, id, layers); next.valid())
        pairs.push_back({.first = id, .second = next});
  const ScalesOfBoth scales(f32, quantised, counterparts, pairs);
  for (const auto& pair : pairs)
    if (!scales.factors(pair).empty()) out.push_back(pair);
  return out;
}

}  // namespace lamina
