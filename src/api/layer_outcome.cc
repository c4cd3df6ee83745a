#include "api/layer_outcome.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <unordered_map>

#include "api/loaded_model.h"
#include "api/representative.h"
#include "base/text.h"
#include "ops/control.h"

namespace lamina {
namespace {

/// Bounds a text: that of a node with thousands of others in it may be very long, and it is kept for each of
/// them.
std::string bounded(const std::string& text) {
  constexpr std::size_t kMost = 2000;
  return text.size() > kMost ? clipped(text, kMost) : text;
}

class OutcomeFinder {
 public:
  OutcomeFinder(const Compiled& compiled, const std::vector<std::shared_ptr<const Plan>>& plans)
      : representatives_(compiled.original()) {
    const auto& sources = compiled.original().sources;
    for (std::uint32_t i = 0; i < sources.size(); ++i)
      if (const auto [it, fresh] = named_.try_emplace(sources[i].name, SourceId{i}); !fresh) it->second = {};
    index(compiled.ledger());
    for (const auto& plan : plans) index(plan->ledger);
    outcomes_.resize(sources.size());
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
      outcomes_[i].id = {i};
      outcomes_[i].name = sources[i].name;
      outcomes_[i].type = sources[i].type;
      outcomes_[i].kind = LayerOutcome::Kind::constant;
    }
    mark_read(compiled.original(), "");
    mark_variables(compiled.model().loaded().graph);
    for (const auto& plan : plans) add_plan(*plan);
    if (!plans.empty() && plans.back()->rest) mark(*plans.back()->rest, LayerOutcome::Kind::waiting, "");
    if (!plans.empty()) mark_untaken(compiled.original());
    for (auto& f : outcomes_) finish(f);
  }
  std::vector<LayerOutcome> take() { return std::move(outcomes_); }

 private:
  void add_plan(const Plan& plan) {
    std::map<NodeId, const PlanStep*> steps;
    std::map<NodeId, const Choice*> choices;
    for (const auto& s : plan.steps)
      if (s.runs_a_node()) steps[s.node] = &s;
    for (const auto& c : plan.choices) choices[c.node] = &c;
    for (const auto id : plan.graph.order()) {
      const auto& n = plan.graph.node(id);
      if (n.sources.empty() || choices.count(id) + steps.count(id) == 0) continue;
      const auto representative = representatives_.of(n);
      for (const auto s : n.sources) {
        if (s.index >= outcomes_.size() || !representatives_.stands_for(s, n.op.name())) continue;
        outcomes_[s.index].nodes.push_back({&plan, id, choices.count(id) ? choices[id] : nullptr,
                                            steps.count(id) ? steps[id] : nullptr, s == representative,
                                            representative});
      }
      if (n.op.has(Trait::control_flow))
        for (const auto& body : n.bodies) mark(body, LayerOutcome::Kind::body, plan.graph.label(id));
    }
  }

  /// Layers that nodes came of; `owner`: of the body that they are in.
  void mark_read(const Graph& g, const std::string& owner) {
    for (const auto id : g.order()) {
      const auto& n = g.node(id);
      for (const auto s : n.sources)
        if (s.index < outcomes_.size()) {
          outcomes_[s.index].kind = LayerOutcome::Kind::removed;
          outcomes_[s.index].inside = owner;
        }
      for (const auto& body : n.bodies) mark_read(body, g.label(id));
    }
  }

  void mark_variables(const Graph& g) {
    for (const auto id : g.order())
      if (g.node(id).op.is<ReadValue>() || g.node(id).op.is<Assign>())
        for (const auto s : g.node(id).sources) outcomes_.at(s.index).kind = LayerOutcome::Kind::variable;
  }

  /// Layers of a graph that is not planned itself.
  void mark(const Graph& g, LayerOutcome::Kind kind, const std::string& inside) {
    for (const auto id : g.order()) {
      const auto& n = g.node(id);
      for (const auto s : n.sources) {
        if (s.index >= outcomes_.size() || !outcomes_[s.index].nodes.empty()) continue;
        if (!representatives_.stands_for(s, n.op.name())) continue;
        outcomes_[s.index].kind = kind;
        outcomes_[s.index].inside = inside;
      }
      if (n.op.has(Trait::control_flow))
        for (const auto& body : n.bodies) mark(body, kind, inside);
    }
  }

  /// Marks the layers of the branch that is not taken, for an If that became one of its branches.
  void mark_untaken(const Graph& g) {
    for (const auto id : g.order()) {
      const auto& n = g.node(id);
      if (n.op.is<If>() &&
          std::none_of(n.sources.begin(), n.sources.end(), [&](SourceId s) { return lives(s); }))
        for (std::size_t b = 0; b < 2; ++b)
          if (any_lives(n.bodies.at(1 - b)) && !any_lives(n.bodies[b]))
            mark(n.bodies[b], LayerOutcome::Kind::untaken, g.label(id));
      for (const auto& body : n.bodies) mark_untaken(body);
    }
  }
  bool lives(SourceId s) const {
    return s.index < outcomes_.size() &&
           (!outcomes_[s.index].nodes.empty() || outcomes_[s.index].kind == LayerOutcome::Kind::body);
  }
  bool any_lives(const Graph& g) const {
    const auto order = g.order();
    return std::any_of(order.begin(), order.end(), [&](NodeId id) {
      const auto& n = g.node(id);
      return std::any_of(n.sources.begin(), n.sources.end(), [&](SourceId s) { return lives(s); }) ||
             std::any_of(n.bodies.begin(), n.bodies.end(),
                         [&](const Graph& body) { return any_lives(body); });
    });
  }

  /// Indexes the entries by layer, also by layers that a node is only named after. An entry of a chain of
  /// thousands of nodes names thousands of layers, so the ledger is read once.
  void index(const Ledger& ledger) {
    auto entries = std::make_unique<std::vector<LedgerEntry>>(ledger.entries());
    auto former = ledger.former_refusals();  // these follow the layer: its node may have been replaced since
    std::move(former.begin(), former.end(), std::back_inserter(*entries));
    std::sort(entries->begin(), entries->end(),
              [](const auto& a, const auto& b) { return a.order < b.order; });
    const auto add = [&](SourceId layer, const LedgerEntry& e) {
      auto& about = about_[layer];
      if (about.empty() || about.back() != &e) about.push_back(&e);
    };
    for (const auto& e : *entries) {
      const auto it = e.former ? named_.end() : named_.find(e.node);
      if (it != named_.end() && it->second.valid()) add(it->second, e);
      for (const auto s : e.ids) add(s, e);
    }
    entries_.push_back(std::move(entries));
  }

  void finish(LayerOutcome& f) const {
    const auto it = about_.find(f.id);
    for (const auto* e : it == about_.end() ? std::vector<const LedgerEntry*>() : it->second)
      f.history.push_back({e->kind, e->rule, e->node, {}, {}, bounded(e->text), e->order, e->former});
    if (f.nodes.empty()) {
      for (const auto& e : f.history)
        if (e.kind != LedgerEntry::Kind::refused) f.rule = e.rule, f.reason = e.text;
      // Of several nodes some are unused, such as a Dropout's mask: the other nodes say more.
      const LedgerEntry* gone = nullptr;
      for (const auto& e : f.history)
        if (e.kind == LedgerEntry::Kind::removed && (!gone || gone->rule == "remove-unused")) gone = &e;
      if (gone) f.rule = gone->rule, f.reason = gone->text;
      return;
    }
    // First the node that it names, the dearest of several.
    const auto rank = [](const OutcomeNode& n) {
      return std::tuple(n.representative, n.step != nullptr, n.choice ? n.choice->cost.us() : 0);
    };
    std::stable_sort(f.nodes.begin(), f.nodes.end(),
                     [&](const auto& a, const auto& b) { return rank(a) > rank(b); });
    if (f.nodes[0].representative) {
      f.kind = f.nodes[0].step ? LayerOutcome::Kind::runs : LayerOutcome::Kind::free;
    } else {
      f.kind = LayerOutcome::Kind::fused;
      f.rule = fusing_rule(f);
    }
  }

  /// The last rule that put it together with the layer in whose node it is.
  std::string fusing_rule(const LayerOutcome& f) const {
    const auto other = about_.find(f.nodes[0].by), own = about_.find(f.id);
    std::string any, with;
    for (const auto* e : own == about_.end() ? std::vector<const LedgerEntry*>() : own->second) {
      if (e->kind != LedgerEntry::Kind::fired) continue;
      any = e->rule;
      if (with.empty() && other != about_.end() &&
          std::find(other->second.begin(), other->second.end(), e) != other->second.end())
        with = e->rule;
    }
    return with.empty() ? any : with;
  }

  RepresentativeLayers representatives_;
  std::vector<std::unique_ptr<std::vector<LedgerEntry>>> entries_;  // of all ledgers
  std::unordered_map<std::string_view, SourceId> named_;  // invalid where several layers have the name
  std::unordered_map<SourceId, std::vector<const LedgerEntry*>> about_;
  std::vector<LayerOutcome> outcomes_;
};

}  // namespace

std::string_view name_of(LayerOutcome::Kind kind) {
  static constexpr std::array kNames{"runs", "fused",    "free",    "removed", "constant",
                                     "body", "variable", "waiting", "untaken"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<LedgerEntry> fusing_refusals(const LayerOutcome& outcome) {
  std::vector<LedgerEntry> out;
  for (const auto& e : outcome.history)
    if (e.kind == LedgerEntry::Kind::refused && !e.former && e.rule.starts_with("fuse-")) out.push_back(e);
  return out;
}

std::vector<LayerOutcome> layer_outcomes(const Compiled& compiled,
                                         const std::vector<std::shared_ptr<const Plan>>& plans) {
  return OutcomeFinder(compiled, plans).take();
}

}  // namespace lamina
