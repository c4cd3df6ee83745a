#include "quantise/layer_queries.h"

#include "ops/quantization.h"
#include "quantise/constants.h"

namespace lamina {

bool is_computed(const Graph& g, ValueId v) {
  return v.valid() && (g.value(v).kind == ValueKind::output_of_node || g.value(v).kind == ValueKind::input);
}

bool has_levels(const Graph& g) {
  for (const auto id : g.order()) {
    const Node& n = g.node(id);
    if (n.op.has(Trait::levels) || n.op.is<Dequantize>())
      if (!n.inputs.empty() && is_computed(g, n.inputs[0]) && !constant_nodes(g, n.inputs[0])) return true;
  }
  return false;
}

bool is_layer(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const bool is_recurrent = n.op.family() == OpFamily::recurrent;
  if (!is_recurrent && !n.op.has(Trait::products | Trait::weights)) return false;
  bool weights = false, computed = false;
  for (const auto v : n.inputs) {
    if (!v.valid()) continue;
    const bool constant = constant_nodes(g, v).has_value();
    weights |= constant && (!g.type(v).shape.ranked() || g.type(v).shape.rank() >= 2);
    computed |= !constant;
  }
  return weights && computed;
}

}  // namespace lamina
