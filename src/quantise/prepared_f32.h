#pragma once
/// The f32 graph as the quantiser saw it when it made a quantised graph.
#include "quantise/counterparts.h"
#include "quantise/prepare.h"

namespace lamina {

/// Constants are folded, and batch normalisation is part of the convolution before it unless the quantised
/// graph has it, too. Inputs and results are in the order of the quantised graph's where both have the same
/// names; else they keep their places.
Graph prepared_f32(const Graph& f32, const Graph& quantised);

/// Channels are scaled as cross-layer equalisation scaled those of the quantised graph, if it did: the
/// function of `f32` stays the same. `f32`: as prepared_f32() makes it. Throws as find_counterparts() does.
/// Returns how many pairs of layers were scaled.
std::size_t equalise_as(Graph& f32, const Graph& quantised);

/// Layers between which the quantised graph has channels of another scale, behind equalise_as(): through
/// operators between them that do not keep a scale, say. What lies between the two cannot be compared.
std::vector<LayerPair> pairs_of_other_scale(const Graph& f32, const Graph& quantised,
                                            const Counterparts& counterparts);

}  // namespace lamina
