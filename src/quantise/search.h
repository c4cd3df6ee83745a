#pragma once
/// Finds how a graph is quantised best.
#include <optional>

#include "quantise/prepare.h"
#include "quantise/scheme.h"

namespace lamina {

struct QuantiseRequest {
  SchemeOptions scheme;  ///< but for the method of its ranges
  /// How ranges are chosen; nothing: by min-max or least squares, whichever brings the outputs nearer to f32.
  std::optional<Calibration> calibration;
  /// Whether channels are equalised between layers; nothing: if it brings the outputs nearer to f32.
  std::optional<bool> equalise;
  /// Largest relative error of an output (Drift::relative) that is allowed with the samples held out: the
  /// layers that harm it most stay f32 until it holds.
  std::optional<double> max_drop;
  Samples samples;   ///< of the calibration; what is left open is decided by them
  Samples held_out;  ///< what drift is measured with
  Running running;
};

struct FoundScheme {
  Graph graph;  ///< perhaps with equalised channels
  Scheme scheme;
  Calibration calibration = Calibration::min_max;
  std::size_t equalised = 0;    ///< pairs of layers
  std::size_t evaluations = 0;  ///< of quantised graphs
};

/// What the quantised model computes, as it will be written.
using Quantising = std::function<Graph(const Graph&, const Scheme&)>;

/// `layers`: of the graph. Throws Error(unsupported) where none of them can be quantised, or not within
/// max_drop.
FoundScheme find_scheme(const Model& model, const Graph& graph, const std::vector<Layer>& layers,
                        const QuantiseRequest& request, const Quantising& quantised);

/// Throws Error(unsupported) unless some layer has no reason for f32.
void require_layers(const std::vector<Layer>& layers);

}  // namespace lamina
