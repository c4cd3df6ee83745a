#include "rules/optimize.h"

#include "graph/verify.h"

namespace lamina {

void optimize(Graph& graph, const OptimizeOptions& options, Ledger& ledger) {
  Driver driver(all_rules(), options, ledger);
  for (const auto set : {RuleSet::normalize, RuleSet::portable, RuleSet::precision, RuleSet::runtime}) {
    if (set > options.last) break;
    driver.run(graph, set);
    graph.infer_types();  // a rewrite may tell more about what lies behind it
    if (options.verify) check(graph, fmt::format("after the set {}", name_of(set)));
    if (options.after_set) options.after_set(graph, name_of(set));
  }
}

}  // namespace lamina
