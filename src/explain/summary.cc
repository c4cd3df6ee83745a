#include "explain/summary.h"

#include <algorithm>

#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "rules/support.h"

namespace lamina {
namespace {

bool is_elementwise(const Node& n) { return n.op.has(Trait::elementwise) || n.op.is<Elementwise>(); }

/// What makes the value; where its elements may be taken before they are moved, what makes these. Invalid
/// when others read them, too.
NodeId maker_of(const Graph& g, ValueId v, bool wherever) {
  while (v.valid() && g.readers(v) == 1) {
    const auto p = g.producer(v);
    if (!p.valid() || !wherever || !moves_elements(g.node(p))) return p;
    v = g.node(p).inputs[0];
  }
  return {};
}

/// The compute node whose epilogue could hold this one, by shape and readers; invalid when there is none.
NodeId host_of(const Graph& g, const Node& n) {
  for (const auto v : n.inputs) {
    const auto p = maker_of(g, v, n.op.has(Trait::unary_elementwise));
    if (p.valid() && is_host(g.node(p)) && is_float(g.type(v).element) &&
        g.type(v).shape.same(g.type(n.outputs[0]).shape))
      return p;
  }
  return {};
}

/// Why this input of a node leads to no epilogue.
std::string why_none(const Graph& g, const Node& n, ValueId v) {
  const auto& name = g.value(v).name;
  const auto p = g.producer(v);
  if (!p.valid()) return fmt::format("it reads the input '{}'", name);
  const auto& from = g.node(p);
  if (!is_host(from)) return fmt::format("'{}' ({}) has no epilogue", g.label(p), from.op.name());
  for (const auto& result : g.results())
    if (result.value == v) return fmt::format("the result of '{}' is an output", g.label(p));
  if (g.readers(v) > 1) {
    for (const auto& use : g.value(v).uses)
      if (g.node(use.node).outputs != n.outputs)
        return fmt::format("the result of '{}' is also read by '{}'", g.label(p), g.label(use.node));
    return fmt::format("the result of '{}' is read twice", g.label(p));
  }
  if (!is_float(g.type(v).element)) return fmt::format("'{}' computes with integers", g.label(p));
  return fmt::format("its result of {} is larger than that of '{}', {}",
                     to_string(g.type(n.outputs[0]).shape), g.label(p), to_string(g.type(v).shape));
}

void add(std::vector<std::string>& to, std::string text) {
  if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
}

/// What fusing rules said of the layers of a node.
std::vector<std::string> refusals(const Node& n, const std::vector<LayerOutcome>& outcomes) {
  std::vector<std::string> out;
  for (const auto s : n.sources)
    if (s.index < outcomes.size())
      for (const auto& e : fusing_refusals(outcomes[s.index])) add(out, to_string(e));
  return out;
}

std::string kernel_of(const Plan& plan, NodeId node) {
  for (const auto& c : plan.choices)
    if (c.node == node) return c.label;
  return "the kernel";
}

LoneStep lone_step(const Plan& plan, const PlanStep& step, const std::vector<LayerOutcome>& outcomes) {
  const auto& g = plan.graph;
  const auto& n = g.node(step.node);
  LoneStep lone{&plan, &step, g.label(step.node), operators_of(n), {}, {}, refusals(n, outcomes)};
  for (const auto s : n.sources)
    if (s.index < outcomes.size()) lone.layers.push_back(outcomes[s.index].name);
  const auto host = host_of(g, n);
  if (!host.valid()) {
    lone.reads_inputs_only = true;
    for (const auto v : n.inputs) {
      if (!v.valid() || g.constant(v)) continue;
      if (g.producer(v).valid()) lone.reads_inputs_only = false;
      add(lone.reasons, why_none(g, n, v));
    }
    return lone;
  }
  lone.behind = g.label(host);
  // A node whose epilogue was decomposed still stands for the layers that went.
  const auto& of_host = g.node(host).sources;
  lone.decomposed = std::includes(of_host.begin(), of_host.end(), n.sources.begin(), n.sources.end());
  if (lone.decomposed)
    lone.reasons = {fmt::format("{} of '{}' takes fewer stages, and was estimated to be faster that way",
                                kernel_of(plan, host), lone.behind)};
  if (lone.reasons.empty())
    lone.reasons.push_back(fmt::format("no rule fuses {} into {}", lone.operators, g.node(host).op.name()));
  return lone;
}

}  // namespace

std::vector<LoneStep> lone_steps(const std::vector<std::shared_ptr<const Plan>>& plans,
                                 const std::vector<LayerOutcome>& outcomes) {
  std::vector<LoneStep> out;
  for (const auto& plan : plans)
    for (const auto& step : plan->steps)
      if (step.runs_a_node() && is_elementwise(plan->graph.node(step.node)))
        out.push_back(lone_step(*plan, step, outcomes));
  return out;
}

std::map<std::string, std::size_t> fused_layers(const std::vector<LayerOutcome>& outcomes) {
  std::map<std::string, std::size_t> out;
  for (const auto& f : outcomes)
    if (f.kind == LayerOutcome::Kind::fused && !f.rule.empty()) ++out[f.rule];
  return out;
}

std::map<std::string, Ledger::Count> rule_counts(const Compiled& compiled,
                                                 const std::vector<std::shared_ptr<const Plan>>& plans) {
  auto out = compiled.ledger().counts();
  for (const auto& plan : plans)
    for (const auto& [rule, count] : plan->ledger.counts()) {
      out[rule].hits += count.hits;
      out[rule].refusals += count.refusals;
    }
  return out;
}

std::map<std::string, std::string> stopped_rules(const Compiled& compiled,
                                                 const std::vector<std::shared_ptr<const Plan>>& plans) {
  auto out = compiled.ledger().stopped();
  for (const auto& plan : plans) out.insert(plan->ledger.stopped().begin(), plan->ledger.stopped().end());
  return out;
}

}  // namespace lamina
