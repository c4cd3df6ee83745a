#pragma once
/// f16 and bf16 tensors computed in f32.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// Turns every f16 and bf16 value of the graph into f32; inputs and results keep their types behind a
/// Convert. Where the model itself rounds wider numbers to halves (Convert, ConvertLike) they are rounded,
/// and computed with in f32 then; not between a Dequantize of 8 bits or fewer and a product or a stage behind
/// one, which compute with the integers. No processor that is supported computes in f16 throughout, and
/// kernels have none of these types. Returns sentences that say what was done, for logs; none when the graph
/// has no such value.
std::vector<std::string> widen_half(Graph& graph);

}  // namespace lamina
