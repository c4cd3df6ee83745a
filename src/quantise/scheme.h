#pragma once
/// How a graph is quantised, and the graph that computes what the quantised model will.
#include <map>
#include <set>

#include "quantise/observe.h"
#include "quantise/places.h"
#include "quantise/ranges.h"
#include "quantise/weights.h"

namespace lamina {

struct SchemeOptions {
  RangeOptions ranges = {};
  WeightOptions weights = {};
  LayerChoice choice = {};
  bool correct_bias = true;
  /// The file format has no product with a bias: MatMul without one gets none.
  bool no_new_bias_of_products = false;
  std::set<NodeId> fixed = {};  ///< nodes, not layers, whose constants the file cannot change
};

/// What was seen of the f32 model's values.
struct Statistics {
  std::map<ValueId, Histogram> histograms;
  /// Means of the values that layers read, along the axis of their input channels.
  std::map<std::pair<ValueId, std::size_t>, std::vector<double>> channel_means;
};

/// Collects statistics of all values that a scheme for these layers, or for some of them, may need.
Statistics collect_statistics(const Model& model, const Graph& graph, const std::vector<Layer>& layers,
                              const SchemeOptions& options, const Samples& samples, const Running& running);

struct Scheme {
  std::vector<Layer> layers;
  QuantisedPlaces places;
  std::vector<Quantiser> quantisers;           ///< by group
  std::map<NodeId, QuantisedWeights> weights;  ///< of the layers that are quantised
  std::map<NodeId, Tensor> biases;             ///< corrected ones
  std::vector<std::string> others_in_f32;      ///< what is no layer: "name (operator): reason"

  const Quantiser& of(ValueId value) const { return quantisers[places.groups.at(value)]; }
};

/// Layers whose input has numbers that are not finite, or none, get a reason for f32; sums and averages of
/// such numbers stay f32 too.
Scheme make_scheme(const Graph& graph, std::vector<Layer> layers, const Statistics& statistics,
                   const SchemeOptions& options);

/// The graph with FakeQuantize where values are quantised, and with weights as integers behind which Convert
/// and Multiply stand: what OpenVINO runs in 8 bits.
Graph quantised_graph(const Graph& graph, const Scheme& scheme);

}  // namespace lamina
