#include "rules/quantised_products.h"

#include <algorithm>
#include <functional>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "rules/chosen_elements.h"
#include "rules/spelled_dequantize.h"
#include "rules/stored_weights.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// What conversions of halves become once these are floats; it will be removed.
bool converts_nothing(const Graph& g, const Node& n) {
  return n.op.is<Convert>() && g.type(n.inputs[0]).element == g.type(n.outputs[0]).element;
}

bool is_mean(const Node& n) {
  return n.op.is<AvgPool>() || n.op.is<AdaptiveAvgPool>() || n.op.is<ReduceMean>();
}

}  // namespace

bool hands_on(const Graph& g, const Node& n) {
  return converts_nothing(g, n) || chooses_elements(n) || n.op.is<MaxPool>() || n.op.is<Relu>() ||
         n.op.is<Clamp>() || n.op.is<Pad>();
}

namespace {

/// A Dequantize or FakeQuantize gives it, perhaps moved or pooled since.
bool is_quantised(const Graph& g, ValueId value) {
  constexpr std::size_t kMostMoves = 16;
  return search_up(g, value, kMostMoves, [&](const Node& n, ValueId v) -> std::optional<bool> {
    if (const auto* fq = n.op.as<FakeQuantize>()) return fq->levels > 2 && fq->levels <= 256;
    if (is_dequantised(g, v)) return true;
    const bool offset = n.op.is<Add>() && g.constant(n.inputs[1]);  // of levels that have no 0
    if (hands_on(g, n) || offset) return std::nullopt;
    return false;
  });
}

/// Some product reads the value, perhaps moved or pooled before, whose other operand is such.
bool feeds_product(const Graph& g, ValueId from, const std::function<bool(ValueId)>& is_such) {
  constexpr std::size_t kMostValues = 64;
  std::vector<ValueId> seen{from};
  for (std::size_t at = 0; at < seen.size(); ++at)
    for (const auto& use : g.value(seen[at]).uses) {
      const Node& n = g.node(use.node);
      if (has_weights(n) && use.input < 2 && is_such(n.inputs[1 - use.input])) return true;
      // Levels may be the same behind a FakeQuantize; means read integers as well.
      if (!hands_on(g, n) && !n.op.is<FakeQuantize>() && !is_mean(n)) continue;
      for (const auto v : n.outputs)
        if (seen.size() < kMostValues && std::find(seen.begin(), seen.end(), v) == seen.end())
          seen.push_back(v);
    }
  return false;
}

}  // namespace

bool has_quantised_source(const Graph& g, const Node& product) { return is_quantised(g, product.inputs[0]); }

bool feeds_quantised_product(const Graph& g, ValueId value) {
  return feeds_product(g, value, [&](ValueId v) { return stored_weights(g, v) || is_quantised(g, v); });
}

bool feeds_product_of_quantised(const Graph& g, ValueId value) {
  return feeds_product(g, value, [&](ValueId v) { return !stored_weights(g, v) && is_quantised(g, v); });
}

bool stays_stored(const Match& m, const Node& unpack) {
  if (!m.stored || !unpacks(m.graph(), unpack)) return false;
  if (m.for_file) return m.graph().constant(unpack.inputs[0])->size() > 1;
  const auto product = product_of(m.graph(), unpack.outputs[0]);
  return product.valid() && has_quantised_source(m.graph(), m.graph().node(product));
}

}  // namespace lamina
