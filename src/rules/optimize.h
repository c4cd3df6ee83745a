#pragma once
/// All optimisations of a graph, set after set.
#include <functional>
#include <memory>

#include "graph/carried.h"
#include "rewrite/driver.h"
#include "rules/rules.h"

namespace lamina {

struct RuleOptions : RewriteOptions {
  /// Sets up to and including this one run; `precision` where all sizes are known.
  RuleSet last = RuleSet::precision;
  /// Besides all_rules(), and tried before them: those of libraries (rules/extension_rules.h). Null: none.
  std::shared_ptr<const Rules> more = {};
  /// What a run hands to the next one: a result that decides there stays f32 here.
  std::vector<Carried> carried = {};
  /// Called after each set.
  std::function<void(const Graph&, RuleSet)> after_set;
};

/// Rewrites the graph until no rule fits. The set `chains` waits until the sizes of all inputs are known:
/// until then the other sets may still find better places for element-wise operators. Calling it again is
/// cheap; on a copy whose inputs have got known shapes (after Graph::infer_types()) it goes on where unknown
/// sizes had stopped it. A rule of a library with which this does not end is left out from the beginning
/// (Ledger::stopped).
void optimize(Graph& graph, const RuleOptions& options, Ledger& ledger);

}  // namespace lamina
