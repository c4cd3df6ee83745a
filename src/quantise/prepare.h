#pragma once
/// What is done to the f32 graph before it is quantised: its function stays the same.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quantise/layers.h"

namespace lamina {

/// A node that became part of the layer before it: the layer gives `output` now. Names of values, as they
/// were before.
struct Absorbed {
  std::string layer_output, output;
};

/// Batch normalisation becomes part of the convolution before it that nobody else reads, if it may.
std::vector<Absorbed> fold_batch_normalisation(Graph& graph,
                                               const std::function<bool(const Absorbed&)>& may_absorb);

/// Cross-layer equalisation: where one layer alone reads the channels of another, through ReLUs, poolings and
/// sums with a constant (a bias) at most, each channel is scaled so that both see the same range. Returns how
/// many pairs were scaled. `fixed`: nodes whose constants cannot change.
std::size_t equalise(Graph& graph, const std::vector<Layer>& layers, const std::set<NodeId>& fixed = {});

/// One layer, and the next that alone reads its channels as equalise() has it.
struct LayerPair {
  NodeId first, second;
  std::vector<NodeId> sums = {};  ///< an Add or Subtract of a constant each, between the two
};

/// In the order of execution; of the layers that are quantised.
std::vector<LayerPair> equalisable_pairs(const Graph& graph, const std::vector<Layer>& layers,
                                         const std::set<NodeId>& fixed = {});

/// Multiplies the channels between the two by these factors, which are above 0: the function stays the same.
/// False: nothing is changed, since weights are not constant f32 or would not be finite.
bool scale_between(Graph& graph, const LayerPair& pair, const std::vector<double>& factors);

/// Evaluates nodes whose inputs are constants: weights that the file reshapes, say.
void fold_constants(Graph& graph);

}  // namespace lamina
