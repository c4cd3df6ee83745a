/// Dead code.
#include <algorithm>

#include "rules/rules.h"

namespace lamina {

void add_remove_unused(Rules& rules) {
  const auto root =
      node("node",
           [](const Graph& g, const Node& n) {
             return !n.op.has(Trait::impure) && std::all_of(n.outputs.begin(), n.outputs.end(),
                                                            [&](ValueId v) { return g.readers(v) == 0; });
           },
           {});
  rules.push_back(rule("remove-unused", "Removes nodes on which no output depends", RuleSet::normalize, root)
                      .make([](Rewrite& r) {
                        r.note("unused: no output depends on it");
                        r.remove();
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
