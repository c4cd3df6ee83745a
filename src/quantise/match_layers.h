#pragma once
/// Layers of a quantised model whose values have other names than in the f32 model.
#include <functional>

#include "quantise/counterparts.h"

namespace lamina {

/// Pairs layers that have no counterpart yet, by operator, shape and numbers of the weights. `take` is called
/// with each pair, a layer of the f32 graph and one of the quantised graph, as soon as it is found; what it
/// adds to `known` decides between alike candidates for the next ones.
void match_layers(const Graph& quantised, const Graph& f32, const Counterparts& known,
                  const std::function<void(NodeId, NodeId)>& take);

}  // namespace lamina
