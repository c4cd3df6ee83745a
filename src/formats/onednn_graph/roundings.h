#pragma once
/// Decides which tensors of bf16 and f16 are rounded.
#include <cstdint>
#include <unordered_set>

#include "formats/onednn_graph/graph_def.h"

namespace lamina::onednn_graph {

/// The tensors inside oneDNN's quantised patterns, which computes these in integers and f32: casts of what a
/// Dequantize made for a product or for arithmetic behind it, the product itself, and that arithmetic up to a
/// Quantize or a result. What is stored is rounded, and everything else that is bf16 or f16.
std::unordered_set<std::uint64_t> unrounded_tensors(const GraphDef& graph);

}  // namespace lamina::onednn_graph
