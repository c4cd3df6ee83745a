#include "explain/why.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/table_text.h"
#include "explain/summary.h"
#include "rules/rules.h"

namespace lamina {
namespace {

/// The graphs in which rules looked: as read, as optimised, as planned.
std::vector<const Graph*> graphs_of(const Compiled& compiled,
                                    const std::vector<std::shared_ptr<const Plan>>& plans) {
  std::vector<const Graph*> out{&compiled.original(), &compiled.optimized()};
  for (const auto& plan : plans) out.push_back(&plan->graph);
  return out;
}

/// Calls `f(graph, id)` for the nodes that stand for a layer, those in bodies included.
template <class F>
void for_nodes_of(const Graph& g, SourceId layer, F&& f) {
  for (const auto id : g.order()) {
    const auto& sources = g.node(id).sources;
    if (std::find(sources.begin(), sources.end(), layer) != sources.end()) f(g, id);
    if (g.node(id).op.has(Trait::control_flow))
      for (const auto& body : g.node(id).bodies) for_nodes_of(body, layer, f);
  }
}

std::string alternatives(const std::vector<std::string>& words) {
  std::vector<std::string> distinct;
  for (const auto& w : words)
    if (std::find(distinct.begin(), distinct.end(), w) == distinct.end()) distinct.push_back(w);
  return fmt::format("{}", fmt::join(distinct, " or "));
}

/// "Add of (Convolution, any value)"; `depth`: how far down.
std::string describe(const Pattern& pattern, int depth) {
  const Word& word = pattern.word();
  std::vector<std::string> parts;
  const bool lists = word.kind == Word::Kind::either;
  if (depth > 0 || lists)
    for (const auto& p : word.parts) parts.push_back(describe(p, lists ? depth : depth - 1));
  switch (word.kind) {
    case Word::Kind::constant:
      return "a constant";
    case Word::Kind::number:
      return fmt::format("{:g}", word.number);
    case Word::Kind::either:
      return alternatives(parts);
    case Word::Kind::chain:
      return word.parts.empty() ? "a chain" : describe(word.parts.back(), depth) + " behind other nodes";
    case Word::Kind::node: {
      const bool plain = std::all_of(word.parts.begin(), word.parts.end(),
                                     [](const Pattern& p) { return p.word().kind == Word::Kind::any; });
      if (parts.empty() || plain) return word.noun;
      return fmt::format("{} of ({})", word.noun, fmt::join(parts, ", "));
    }
    default:
      return "any value";
  }
}

}  // namespace

const Rule& rule_named(std::string_view name, const std::shared_ptr<const Rules>& more) {
  std::vector<std::string> names;
  for (const auto* rules : {&all_rules(), more.get()}) {
    if (!rules) continue;
    for (const auto& r : *rules) {
      if (r.name == name) return r;
      names.push_back(r.name);
    }
  }
  fail(ErrorCode::bad_option, "rule \"{}\" is not known{}", name, did_you_mean(name, names));
}

std::vector<LedgerEntry> entries_of(const Rule& rule, const Compiled& compiled,
                                    const std::vector<std::shared_ptr<const Plan>>& plans,
                                    const LayerOutcome& outcome) {
  std::vector<LedgerEntry> out;
  const auto known = [&](const LedgerEntry& e) {
    return std::any_of(out.begin(), out.end(), [&](const LedgerEntry& o) {
      return o.kind == e.kind && o.node == e.node && o.text == e.text;
    });
  };
  // Plans of several requests tell the same.
  for (const auto& e : outcome.history)
    if (e.rule == rule.name && !known(e)) out.push_back(e);
  std::vector<const Ledger*> ledgers;
  for (const auto& plan : plans) ledgers.push_back(&plan->ledger);
  ledgers.push_back(&compiled.ledger());
  std::set<std::string> readers;
  for (const auto* g : graphs_of(compiled, plans))
    for_nodes_of(*g, outcome.id, [&](const Graph& graph, NodeId id) {
      for (const auto v : graph.node(id).outputs)
        for (const auto& use : graph.value(v).uses) readers.insert(graph.label(use.node));
    });
  for (const auto* ledger : ledgers)
    for (const auto& e : ledger->of_rule(rule.name))
      if (e.kind == LedgerEntry::Kind::refused && readers.count(e.node) && !known(e)) out.push_back(e);
  return out;
}

std::string why_silent(const Rule& rule, const Compiled& compiled,
                       const std::vector<std::shared_ptr<const Plan>>& plans, const LayerOutcome& outcome) {
  const auto& off = compiled.options().disable;
  if (std::find(off.begin(), off.end(), rule.name) != off.end() ||
      std::find(off.begin(), off.end(), "all") != off.end())
    return "it is switched off (--disable)";
  if (const auto all = stopped_rules(compiled, plans); all.contains(rule.name))
    return "it is left out: " + all.at(rule.name);
  std::set<std::string> operators;
  bool fits = false, in_bodies = true;
  for (const auto* g : graphs_of(compiled, plans))
    for_nodes_of(*g, outcome.id, [&](const Graph& graph, NodeId id) {
      operators.insert(graph.node(id).op.name());
      fits = fits || root_fits(graph, rule.pattern, graph.node(id));
      in_bodies = in_bodies && &graph != g;
    });
  if (operators.empty()) return "no node computes that layer any more, so no rule looked at it";
  if (in_bodies && rule.set == RuleSet::precision) return "bodies of control flow stay f32";
  const auto root = describe(rule.pattern, 0);
  if (!fits && operators.count(root))
    return fmt::format("its pattern never matched there: it begins at {} of another kind", root);
  if (!fits)
    return fmt::format("its pattern never matched there: it begins at {}; this layer is {}", root,
                       fmt::join(operators, ", then "));
  return fmt::format("its pattern never matched there: it looks for {}",
                     shortened(describe(rule.pattern, 2), 400));
}

bool is_exempt(const Exemptions& exempt, const LayerOutcome& outcome) {
  if (exempt.empty()) return false;
  Node alone;  // what rules know of it first
  alone.name = outcome.name;
  return exempt.covers(alone, {}) ||
         std::any_of(outcome.nodes.begin(), outcome.nodes.end(), [&](const OutcomeNode& n) {
           return exempt.covers(n.plan->graph.node(n.node), n.plan->graph.sources);
         });
}

std::vector<std::string> plan_sentences(const std::vector<std::shared_ptr<const Plan>>& plans,
                                        const std::vector<LayerOutcome>& outcomes,
                                        const LayerOutcome& outcome) {
  std::vector<std::string> out;
  for (const auto& n : outcome.nodes)
    for (const auto& r : n.choice ? n.choice->refusals : std::vector<Answers::Refusal>())
      if (r.decomposed) out.push_back(fmt::format("{}: {}", r.kernel, r.reason));
  const auto concerns = [&](const LoneStep& lone) {
    return std::find(lone.layers.begin(), lone.layers.end(), outcome.name) != lone.layers.end() ||
           std::any_of(outcome.nodes.begin(), outcome.nodes.end(), [&](const OutcomeNode& n) {
             return n.representative && n.plan == lone.plan && n.plan->graph.label(n.node) == lone.behind;
           });
  };
  for (const auto& lone : lone_steps(plans, outcomes))
    if (lone.decomposed && concerns(lone)) out.push_back(lone.reasons[0]);
  return out;
}

}  // namespace lamina
