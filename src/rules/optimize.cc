#include "rules/optimize.h"

#include <algorithm>
#include <optional>
#include <set>

#include "graph/verify.h"
#include "rules/bf16.h"

namespace lamina {
namespace {

bool inputs_are_known(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId v) { return graph.type(v).shape.known() || graph.readers(v) == 0; });
}

bool runs(RuleSet set, const Graph& graph, const RuleOptions& options) {
  if (set > options.last || (set == RuleSet::precision && !options.bf16 && !options.integers)) return false;
  return set < RuleSet::fused || inputs_are_known(graph);
}

/// The library's and ours; null: ours alone.
std::optional<Rules> rules_of(const RuleOptions& options) {
  if (!options.more || options.more->empty()) return std::nullopt;
  Rules all = *options.more;
  all.insert(all.end(), all_rules().begin(), all_rules().end());
  return all;
}

/// Without bf16 products nothing lies between any: values would be rounded for nothing.
RuleOptions resolved(RuleOptions options) {
  const auto& off = options.disable;
  if (std::find(off.begin(), off.end(), "bf16-product") != off.end()) options.bf16 = false;
  return options;
}

/// The sets that have rules of their own.
std::set<RuleSet> sets_of(std::span<const Rule> rules) {
  std::set<RuleSet> all;
  for (const auto& rule : rules) all.insert(rule.set);
  return all;
}

void run_sets(Graph& graph, std::span<const Rule> rules, const RuleOptions& options, Ledger& ledger) {
  Driver driver(rules, options, ledger);
  for (const auto set : sets_of(rules)) {
    if (!runs(set, graph, options)) break;
    if (set == RuleSet::precision && options.bf16) driver.keep(bf16::deciding_values(graph, options.carried));
    driver.run(graph, set);
    graph.infer_types();  // a rewrite may tell more about what lies behind it
    if (options.verify) require_sound(graph, fmt::format("after the set {}", name_of(set)));
    if (options.after_set) options.after_set(graph, set);
  }
}

}  // namespace

void optimize(Graph& graph, const RuleOptions& asked, Ledger& ledger) {
  auto options = resolved(asked);
  const auto rules = rules_of(options);
  if (!rules) return run_sets(graph, all_rules(), options, ledger);
  const Graph given = graph;
  Ledger before = ledger;
  const auto first = ledger.rewrites();
  for (;;) try {
      return run_sets(graph, *rules, options, ledger);
    } catch (const EndlessRule& e) {
      options.disable.push_back(e.rule());
      before.stopped(e.rule(), e.what());
      graph = given;
      ledger = before;
      if (options.observer) options.observer->undone(first);
    }
}

}  // namespace lamina
