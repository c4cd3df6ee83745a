#include "api/representative.h"

#include <algorithm>

#include "graph/work.h"

namespace lamina {
namespace {

constexpr double kSameOperator = 1e15;  // more than any layer's work

}  // namespace

RepresentativeLayers::RepresentativeLayers(const Graph& original) : layers_(original.sources) {
  weigh(original);
}

void RepresentativeLayers::weigh(const Graph& g) {
  for (const auto id : g.order()) {
    const auto& n = g.node(id);
    const auto work = work_of(g, n);
    for (const auto s : n.sources) {
      auto& w = of_[s];
      w.operators.insert(n.op.name());
      w.work = std::max(w.work, 1 + work.multiply_adds * 1e3 + work.flops());
      w.control = w.control && n.op.has(Trait::control_flow);
    }
    for (const auto& body : n.bodies) weigh(body);
  }
}

bool RepresentativeLayers::stands_for(SourceId layer, std::string_view op) const {
  const auto it = of_.find(layer);
  return it == of_.end() || !it->second.control || it->second.operators.contains(op);
}

SourceId RepresentativeLayers::of(const std::string& node, std::string_view op,
                                  const std::vector<SourceId>& sources) const {
  const auto is_named = [&](SourceId s) { return s.index < layers_.size() && layers_[s.index].name == node; };
  const auto heaviest = [&](bool named) {
    SourceId best;
    double most = -1;
    for (const auto s : sources) {
      if (!stands_for(s, op) || (named && !is_named(s))) continue;
      const auto it = of_.find(s);
      const double weight =
          it == of_.end() ? 0 : it->second.work + (it->second.operators.contains(op) ? kSameOperator : 0);
      if (weight > most) most = weight, best = s;
    }
    return best;
  };
  const auto named = heaviest(true);
  return named.valid() ? named : heaviest(false);
}

}  // namespace lamina
