#pragma once
/// A Dequantize as files of IR spell it: Convert, Subtract of the zero point, Multiply with the scale.
#include "graph/graph.h"

namespace lamina {

/// (integers - zero_point) * scale: integers of 8 bits that are no constant, the others constant, or about to
/// be.
struct SpelledDequantize {
  ValueId integers, zero_point, scale;  ///< zero_point invalid: none
  NodeId convert, subtract;             ///< subtract invalid: none
};
/// Nothing where `multiply` is something else.
std::optional<SpelledDequantize> spelled_dequantize(const Graph& graph, const Node& multiply);

/// A Dequantize of 8 bits, or one that is spelled so, gives the value.
bool is_dequantised(const Graph& graph, ValueId value);

}  // namespace lamina
