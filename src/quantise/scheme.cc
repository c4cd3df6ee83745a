#include "quantise/scheme.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "rules/weights.h"

namespace lamina {
namespace {

constexpr const char* kNotFinite = "what it reads has infinities or NaN";

/// Values that schemes may ask for: whichever operand of a sum is the stored one.
std::set<ValueId> asked_values(const Graph& g, const QuantisedPlaces& places) {
  auto out = places.deciding;
  for (const auto& use : places.uses) {
    const auto& node = g.node(use.node);
    if (node.op.is<Add>()) out.insert(node.inputs.begin(), node.inputs.end());
  }
  return out;
}

/// Means by index of an axis.
struct ChannelSums {
  std::vector<double> sums;
  double count = 0;

  void add(const Tensor& t, std::size_t axis) {
    if (axis >= t.rank()) return;
    sums.resize(static_cast<std::size_t>(t.shape()[axis]));
    const auto numbers = t.data<float>();
    for_each_on_axis(t.shape(), axis, [&](std::size_t i, std::size_t c) { sums[c] += numbers[i]; });
    if (!sums.empty()) count += static_cast<double>(numbers.size()) / static_cast<double>(sums.size());
  }
  std::vector<double> means() const {
    auto out = sums;
    for (auto& x : out) x /= std::max(count, 1.0);
    return out;
  }
};

Histogram of_group(const QuantisedPlaces& places, const Statistics& statistics, std::size_t group) {
  Histogram out;
  for (const auto& [value, g] : places.groups)
    if (g == group && places.deciding.contains(value))
      if (const auto it = statistics.histograms.find(value); it != statistics.histograms.end())
        out.add(it->second);
  return out;
}

double extent(const Histogram& h) { return std::max<double>(h.max(), 0) - std::min<double>(h.min(), 0); }

/// Where one scale for all would leave a part of a Concat that a layer reads by itself too few levels.
bool part_ways(const Graph& g, const QuantisedPlaces& places, const Statistics& statistics,
               std::set<NodeId>& apart) {
  constexpr double kMostTimes = 4;
  bool any = false;
  for (const auto& use : places.uses) {
    const auto& node = g.node(use.node);
    const auto v = node.inputs[use.input];
    if (!node.op.is<Concat>() || !places.deciding.contains(v)) continue;
    const auto own = statistics.histograms.find(v);
    if (own == statistics.histograms.end()) continue;
    const auto all = of_group(places, statistics, places.groups.at(v));
    if (extent(all) > kMostTimes * extent(own->second)) any |= apart.insert(use.node).second;
  }
  return any;
}

/// What the sums are off on average, by output channel: the inputs' means times what the weights have lost.
std::vector<double> mean_error(const Graph& g, NodeId layer, const QuantisedWeights& q,
                               const std::vector<double>& means) {
  const auto weights = g.constant(g.node(layer).inputs[1])->to_aligned();
  const auto lost = q.dequantised();
  const auto exact = weights.data<float>(), rounded = lost.data<float>();
  const WeightsMatrix matrix(g.node(layer), weights.shape());
  std::vector<double> out(matrix.outputs());
  matrix.for_each([&](std::size_t i, std::size_t in, std::size_t channel) {
    if (in < means.size()) out[channel] += (static_cast<double>(rounded[i]) - exact[i]) * means[in];
  });
  return out;
}

/// The bias without what the sums are off; nothing where there is none to change.
Tensor corrected_bias(const Graph& g, const Layer& layer, const QuantisedWeights& q,
                      const std::vector<double>& means, const SchemeOptions& o) {
  const auto& node = g.node(layer.node);
  const auto off = mean_error(g, layer.node, q, means);
  if (!has_input(node, 2)) {
    if (node.op.is<MatMul>() && o.no_new_bias_of_products) return {};
    std::vector<float> bias;
    for (const double x : off) bias.push_back(static_cast<float>(-x));
    return Tensor::of({std::ssize(bias)}, bias);
  }
  const auto* bias = bias_by_channel(g, layer.node);
  if (!bias) return {};
  auto numbers = to_floats(*bias);
  for (std::size_t c = 0; c < off.size(); ++c) numbers[c] = static_cast<float>(numbers[c] - off[c]);
  return Tensor::of(bias->shape(), numbers);
}

/// Smallest scales with which the bias fits 32 bits in units of the products.
std::vector<double> least_scales(const Graph& g, const Layer& layer, const Quantiser& input) {
  const auto& node = g.node(layer.node);
  const auto* bias = bias_by_channel(g, layer.node);
  const auto scales = static_cast<std::size_t>(g.constant(node.inputs[1])->shape()[layer.axis]);
  if (!bias || bias->size() != scales) return {};  // groups of a transposed convolution share them
  std::vector<double> out;
  for (const float b : to_floats(*bias))
    out.push_back(std::fabs(static_cast<double>(b)) / input.scale / std::ldexp(1.0, 30));
  return out;
}

void require_numbers(const Graph& g, const Statistics& statistics, std::vector<Layer>& layers) {
  for (auto& layer : layers) {
    if (!layer.reason.empty()) continue;
    const auto it = statistics.histograms.find(g.node(layer.node).inputs[0]);
    if (it == statistics.histograms.end() || it->second.empty())
      layer.reason = "no sample has numbers for it";
    else if (it->second.not_finite())
      layer.reason = kNotFinite;
  }
}

/// Sums and averages of numbers that no level stands for.
bool leave_infinities(const Graph& g, const Statistics& statistics, std::set<NodeId>& apart, Scheme& out) {
  bool any = false;
  for (const auto& use : out.places.uses) {
    const auto& node = g.node(use.node);
    if (!node.op.is<Add>() && !node.op.is<AvgPool>()) continue;
    const auto it = statistics.histograms.find(node.inputs[use.input]);
    if (it == statistics.histograms.end() || !it->second.not_finite()) continue;
    if (!apart.insert(use.node).second) continue;
    out.others_in_f32.push_back(fmt::format("{} ({}): {}", g.label(use.node), node.op.name(), kNotFinite));
    any = true;
  }
  return any;
}

}  // namespace

Statistics collect_statistics(const Model& model, const Graph& g, const std::vector<Layer>& layers,
                              const SchemeOptions& o, const Samples& samples, const Running& running) {
  const auto asked = asked_values(g, place(g, layers, {}, o.choice.exclude_types));
  const std::vector<ValueId> values(asked.begin(), asked.end());
  std::map<ValueId, std::set<std::size_t>> axes;
  for (const auto& layer : layers)
    if (layer.reason.empty()) axes[g.node(layer.node).inputs[0]].insert(input_axis(g, layer.node));
  Statistics out;
  std::map<std::pair<ValueId, std::size_t>, ChannelSums> sums;
  observe({model, g, values}, samples, running, "calibrating",
          [&](std::size_t, std::size_t i, const Tensor& t) {
            const auto aligned = t.to_aligned();
            out.histograms[values[i]].add(aligned.data<float>());
            if (const auto it = axes.find(values[i]); it != axes.end())
              for (const auto axis : it->second) sums[{values[i], axis}].add(aligned, axis);
          });
  for (const auto& [of, s] : sums) out.channel_means[of] = s.means();
  return out;
}

Scheme make_scheme(const Graph& g, std::vector<Layer> layers, const Statistics& statistics,
                   const SchemeOptions& o) {
  Scheme out;
  require_numbers(g, statistics, layers);
  std::set<NodeId> apart;
  do out.places = place(g, layers, apart, o.choice.exclude_types);
  while (part_ways(g, out.places, statistics, apart) || leave_infinities(g, statistics, apart, out));
  std::vector<Histogram> histograms(out.places.group_count);
  for (const auto v : out.places.deciding)
    if (const auto it = statistics.histograms.find(v); it != statistics.histograms.end())
      histograms[out.places.groups.at(v)].add(it->second);
  for (const auto& h : histograms) out.quantisers.push_back(chosen_quantiser(h, o.ranges));
  for (const auto& layer : layers) {
    if (!layer.reason.empty()) continue;
    const auto& node = g.node(layer.node);
    const auto x = node.inputs[0];
    auto q = quantise_weights(*g.constant(node.inputs[1]), layer.axis, o.weights,
                              least_scales(g, layer, out.of(x)));
    const auto means = statistics.channel_means.find({x, input_axis(g, layer.node)});
    if (o.correct_bias && means != statistics.channel_means.end())
      if (auto bias = corrected_bias(g, layer, q, means->second, o); bias.valid())
        out.biases.emplace(layer.node, std::move(bias));
    out.weights.emplace(layer.node, std::move(q));
  }
  out.layers = std::move(layers);
  return out;
}

Graph quantised_graph(const Graph& graph, const Scheme& scheme) {
  Graph g = graph;
  const auto& places = scheme.places;
  std::map<ValueId, ValueId> quantised;
  for (const auto& [value, group] : places.groups) {
    if (places.carried.contains(value)) continue;
    const auto& q = scheme.quantisers[group];
    const auto& name = graph.value(value).name;
    const Dims dims(graph.type(value).shape.ranked() ? graph.type(value).shape.rank() : 0, 1);
    const auto bound = [&](double x, const char* what) {
      return g.add_constant(Tensor::of(dims, std::vector<float>{static_cast<float>(x)}), name + what);
    };
    const auto low = bound(q.low(), "_low"), high = bound(q.high(), "_high");
    quantised[value] = g.add(FakeQuantize{256}, {value, low, high, low, high}, name + "_quantised");
  }
  for (const auto& use : places.uses)
    if (const auto it = quantised.find(graph.node(use.node).inputs[use.input]); it != quantised.end())
      g.set_input(use.node, use.input, it->second);
  for (const auto& [layer, weights] : scheme.weights) {
    const auto& name = graph.value(graph.node(layer).inputs[1]).name;
    const auto wide =
        g.add(Convert{ElementType::f32}, {g.add_constant(weights.levels, name + "_levels")}, name + "_f32");
    const auto scales = g.add_constant(Tensor::of(weights.scale_dims(), weights.scales), name + "_scale");
    auto inputs = g.node(layer).inputs;
    inputs[1] = g.add(Multiply{}, {wide, scales}, name + "_dequantised");
    if (const auto bias = scheme.biases.find(layer); bias != scheme.biases.end()) {
      inputs.resize(std::max<std::size_t>(inputs.size(), 3));
      inputs[2] = g.add_constant(bias->second, name + "_bias");
    }
    g.set_inputs(layer, std::move(inputs));
  }
  g.erase_unused_constants();
  return g;
}

}  // namespace lamina
