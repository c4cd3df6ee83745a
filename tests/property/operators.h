#pragma once
/// The families of nodes that random graphs are made of.
#include <string_view>
#include <vector>

#include "tests/property/graph_builder.h"

namespace lamina::testing {

/// Adds a node or a few that read values of the graph; may add nothing where nothing fits.
struct Family {
  std::string_view name;
  int weight;
  void (*add)(GraphBuilder&);
};

using Families = std::vector<Family>;
void add_integer_families(Families& families);      ///< all integer types, values over their whole range
void add_quantised_families(Families& families);    ///< Quantize and Dequantize per axis, moved and joined
void add_stored_families(Families& families);       ///< weights of few bits
void add_binary_families(Families& families);       ///< convolutions of +1 and -1
void add_compute_families(Families& families);      ///< convolutions, matrix products, poolings
void add_elementwise_families(Families& families);  ///< arithmetic, activations, comparisons, conversions
void add_movement_families(Families& families);     ///< shapes, joining, cutting, gathering
void add_norm_families(Families& families);         ///< reductions, normalisations, Softmax, resizing
void add_special_families(Families& families);      ///< integers, quantisation, recurrence, order
void add_pieces(Families& families);                ///< functions in the pieces that exporters write
void add_fusions(Families& families);               ///< stages of epilogues, groups, quantise chains, pads
void add_linear_families(Families& families);       ///< arithmetic with constants around compute nodes
void add_blocks(Families& families);     ///< what rules look for: residuals, transposes around things, ...
void add_layers(Families& families);     ///< chains of quantised layers, sums of them, joined ones
void add_importers(Families& families);  ///< groups in parts, bottlenecks, orders of channels
void add_pictures(Families& families);   ///< strides that move, channels last

const Families& all_families();

/// i8 to u64.
const std::vector<ElementType>& integer_types();

/// A random graph of 1 to about 20 nodes; the same for the same seed on every machine.
Graph random_graph(std::uint64_t seed);

}  // namespace lamina::testing
