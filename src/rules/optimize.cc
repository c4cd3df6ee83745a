#include "rules/optimize.h"

#include <algorithm>

#include "graph/verify.h"

namespace lamina {
namespace {

bool inputs_are_known(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId v) { return graph.type(v).shape.known() || graph.readers(v) == 0; });
}

bool runs(RuleSet set, const Graph& graph, const OptimizeOptions& options) {
  if (set > options.last || (set == RuleSet::precision && !options.bf16)) return false;
  return set < RuleSet::chains || inputs_are_known(graph);
}

}  // namespace

void optimize(Graph& graph, const OptimizeOptions& options, Ledger& ledger) {
  Driver driver(all_rules(), options, ledger);
  for (const auto set : {RuleSet::normalize, RuleSet::portable, RuleSet::integers, RuleSet::runtime,
                         RuleSet::chains, RuleSet::precision}) {
    if (!runs(set, graph, options)) break;
    driver.run(graph, set);
    graph.infer_types();  // a rewrite may tell more about what lies behind it
    if (options.verify) require_sound(graph, fmt::format("after the set {}", name_of(set)));
    if (options.after_set) options.after_set(graph, name_of(set));
  }
}

}  // namespace lamina
