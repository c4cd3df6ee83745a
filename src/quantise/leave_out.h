#pragma once
/// Which layers' noise reaches the outputs, and which layers are best not quantised.
#include <vector>

#include "quantise/layer_noise.h"
#include "quantise/noisy_outputs.h"

namespace lamina {

/// Name and type of the node's layer in the file; those of the node if the file has no name for it.
Source layer_source(const Graph& graph, NodeId node);

/// A row of the report with the switches by which its layer is quantised.
struct NoiseRow {
  LayerNoise noise;
  std::vector<std::size_t> own;        ///< switches of the layer's values, or a rounding that no layer reads
  std::vector<std::size_t> roundings;  ///< switches of the roundings of what the layer reads
};

/// Fills the rows' shares and says which nodes to leave out. `snr`: the worst of an output, all quantised.
LeftOut choose_left_out(NoisyOutputs& outputs, std::vector<NoiseRow>& rows, double snr);

}  // namespace lamina
