/// Findings as text.
#include "explain/findings.h"

#include <algorithm>
#include <set>

namespace lamina {

std::vector<std::string> companions(const Findings& all, const LayerOutcome& f) {
  constexpr std::size_t kMost = 100;
  std::vector<std::string> out;
  std::set<std::string_view> seen;
  for (const auto& n : f.nodes) {
    const auto& sources = n.plan->graph.node(n.node).sources;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i] == f.id || !seen.insert(all.name(sources[i])).second) continue;
      if (out.size() == kMost) {
        out.push_back(fmt::format("... and {} more", sources.size() - i));
        return out;
      }
      out.push_back(all.name(sources[i]));
    }
  }
  return out;
}

std::string in_short(const Findings& all, const LayerOutcome& f) {
  switch (f.kind) {
    case LayerOutcome::Kind::runs:
      return f.nodes[0].step->label;
    case LayerOutcome::Kind::fused:
      return fmt::format("in {}{}", all.name(f.nodes[0].by),
                         f.rule.empty() ? "" : fmt::format(" ({})", f.rule));
    case LayerOutcome::Kind::free:
      return std::string(why_nothing_runs(f.nodes[0].plan->graph.node(f.nodes[0].node)));
    case LayerOutcome::Kind::body:
      return fmt::format("in a body of \"{}\"", f.inside);
    case LayerOutcome::Kind::untaken:
      return fmt::format("in the branch of \"{}\" that is not taken", f.inside);
    case LayerOutcome::Kind::waiting:
      return "not planned: after a shape that is known at run time only";
    case LayerOutcome::Kind::variable:
      return "a variable, which the request keeps";
    case LayerOutcome::Kind::constant:
      return "a constant, no operator";
    case LayerOutcome::Kind::removed:
      break;
  }
  if (f.rule.empty())
    return f.inside.empty() ? "removed: no output depends on it"
                            : fmt::format("removed with a body of \"{}\"", f.inside);
  return fmt::format("removed: {} ({})", f.reason, f.rule);
}

}  // namespace lamina
