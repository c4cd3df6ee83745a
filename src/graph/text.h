#pragma once
/// The text form of graphs: exact and readable. print_graph and parse_graph are inverses of each other.
///
///   graph "name" (x: f32[1,8,N,56]) -> (y, "model output" = c) {
///     sources {
///       0 "conv1" "Conv"
///     }
///     w = const f32[16,8,3,3] data(0)             # raw little-endian bytes of the side file from there on
///     b = const f32[16] seed(1)                   # when writing by hand: seeded_tensor(), or fill(0.5)
///     s = const i64[2] {1, 2}
///     c: f32[1,16,N,56] = Convolution(x, w, b) pads_begin=[1,1] pads_end=[1,1] @"layer name" from [0]
///     "a value/with a name": f32[1,16,N,56], i: i64[1,16,N,56] = MaxPool(c, _) kernel=[3,3] {
///       body graph (p: f32[1,16,N,56]) -> (q) {
///         q: f32[1,16,N,56] = Relu(p)
///       }
///     }
///   }
///
/// - A statement ends with its line; lists go on over lines. `#` starts a comment.
/// - Names need quotes unless they match [A-Za-z_][A-Za-z0-9_.]* and are none of: graph body const sources
/// from _
///   Escapes in quotes: \" \\ \n \t \r \xHH.
/// - `_` is an absent input. Values are defined before they are used. Types of outputs may be left out; when
/// they are
///   there, they must agree with inference and may say more than it.
/// - Dimensions: 3, N (named), ? (any), 1..8 and 2.. (bounds), N:1..8. Unknown rank: [...]
/// - Attributes at their defaults are left out. true, 3, 0.5, "text" (or a word: for enumerations), [1,2],
/// [0.5,inf],
///   ["a","b"], f32 (element types), shape[1,?], tensor i64[2] {1, 2}.
/// - Numbers are the shortest that are read back exactly; NaNs other than the usual one are nan(0x7fc00001).
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace lamina {

struct TextOptions {
  bool self_contained = false;       ///< all constants in the text, none in the side file
  std::size_t inline_elements = 16;  ///< constants up to this size are in the text
};

struct GraphText {
  std::string text;
  std::vector<std::byte> data;  ///< the side file; empty when nothing is in it
};

/// Throws when the graph has a cycle or ids that dangle; wrong types, names and bodies are printed as they
/// are.
GraphText print_graph(const Graph& graph, const TextOptions& options = {});

struct ParseLimits {
  std::size_t generated_elements = std::size_t{1} << 28;  ///< of all seed() and fill() constants together
  int depth = 32;                                         ///< of bodies in bodies
};

/// Throws Error(bad_file): "line 3: what was found, what was wanted". Safe for any text. The graph's
/// constants share one copy of `data`.
Graph parse_graph(std::string_view text, const Registry& registry, std::span<const std::byte> data = {},
                  const ParseLimits& limits = {});

}  // namespace lamina
