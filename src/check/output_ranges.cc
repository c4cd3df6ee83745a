#include "check/output_ranges.h"

#include <algorithm>

#include "ops/eval.h"
#include "ops/quantization.h"

namespace lamina::checking {
namespace {

/// True if the values are the same in any shape.
bool same_values(const Tensor& a, const Tensor& b) {
  return to_doubles(a.to_aligned()) == to_doubles(b.to_aligned());
}

}  // namespace

bool OutputRanges::has(const Tensor& low, const Tensor& high) const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const auto& r) { return same_values(r.first, low) && same_values(r.second, high); });
}

void OutputRanges::collect(const Graph& graph) {
  for (const auto id : graph.order()) {
    const Node& n = graph.node(id);
    for (const auto& body : n.bodies) collect(body);
    if (!n.op.is<FakeQuantize>()) continue;
    const auto *low = graph.constant(n.inputs[3]), *high = graph.constant(n.inputs[4]);
    if (low && high) known_.emplace_back(*low, *high);
  }
}

}  // namespace lamina::checking
