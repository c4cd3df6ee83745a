/// Findings as text and JSON.
#include "explain/findings.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "explain/machine_file.h"
#include "explain/summary.h"
#include "ops/decompose.h"

namespace lamina {

/// The other layers in a layer's nodes; of very many the first ones, and the number of the others.
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

/// The outcome in a few words.
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

nlohmann::json to_json(const Cost& cost) {
  auto j = nlohmann::json::array();
  for (const auto& p : cost.parts())
    j.push_back({{"family", name_of(p.family)},
                 {"calls", p.calls},
                 {"work", p.work},
                 {"bytes", p.bytes},
                 {"us", p.us}});
  return j;
}

nlohmann::json to_json(const LedgerEntry& e) {
  return {{"rule", e.rule},
          {"kind", e.kind == LedgerEntry::Kind::fired     ? "fired"
                   : e.kind == LedgerEntry::Kind::refused ? "refused"
                                                          : "removed"},
          {"node", e.node},
          {"text", e.text}};
}

namespace {

/// JSON of nodes that compute several layers, made once for all of them.
using KnownNodes = std::map<std::pair<const Plan*, std::uint32_t>, nlohmann::json>;

nlohmann::json json_of(const Findings& all, const OutcomeNode& n) {
  auto operators = operators_of(n.plan->graph.node(n.node));
  if (operators.size() > 2000) operators = clipped(operators, 2000);
  nlohmann::json j{{"node", n.plan->graph.label(n.node)}, {"operators", operators}};
  if (n.step) {
    const auto row = row_of(*n.plan, *n.step);
    j["kernel"] = row.kernel, j["layout"] = row.layout, j["precision"] = row.precision;
    j["flops"] = row.work.flops(), j["bytes"] = row.work.bytes;
    if (all.timed()) {
      j["us"] = all.profile.of(*n.step);
      j["share"] = all.share(all.profile.of(*n.step));
    }
  }
  if (!n.choice) return j;
  j["estimate_us"] = n.choice->cost.us(), j["parts"] = to_json(n.choice->cost);
  if (!n.choice->forced.empty()) j["forced"] = n.choice->forced;
  j["lost"] = nlohmann::json::array();
  j["refused"] = nlohmann::json::array();
  for (const auto& lost : n.choice->lost)
    j["lost"].push_back({{"kernel", to_string(lost)}, {"us", lost.cost.us()}, {"parts", to_json(lost.cost)}});
  for (const auto& r : n.choice->refusals)
    j["refused"].push_back({{"kernel", r.kernel}, {"reason", r.reason}});
  return j;
}

nlohmann::json json_of(const Findings& all, const LayerOutcome& f, KnownNodes& known) {
  nlohmann::json j{{"name", f.name},
                   {"type", f.type},
                   {"fate", name_of(f.kind)},
                   {"text", in_short(all, f)},
                   {"with", companions(all, f)},
                   {"nodes", nlohmann::json::array()},
                   {"history", nlohmann::json::array()}};
  if (f.kind == LayerOutcome::Kind::fused) j["into"] = all.name(f.nodes[0].by);
  if (!f.rule.empty()) j["rule"] = f.rule;
  if (all.timed() && f.kind == LayerOutcome::Kind::runs)
    j["us"] = all.time(f), j["share"] = all.share(all.time(f));
  for (const auto& n : f.nodes) {
    auto [it, fresh] = known.try_emplace({n.plan, n.node.index});
    if (fresh) it->second = json_of(all, n);
    j["nodes"].push_back(it->second);
    j["nodes"].back()["chief"] = n.representative;
  }
  for (const auto& e : f.history) j["history"].push_back(to_json(e));
  return j;
}

nlohmann::json json_of(const Findings& all, const LoneStep& lone) {
  nlohmann::json j{{"node", lone.name},     {"operators", lone.operators}, {"kernel", lone.step->label},
                   {"layers", lone.layers}, {"behind", lone.behind},       {"reasons", lone.reasons}};
  if (all.timed()) j["us"] = all.profile.of(*lone.step);
  return j;
}

}  // namespace

nlohmann::json to_json(const std::string& model, const Compiled& compiled, const Findings& all) {
  nlohmann::json j{{"model", model},
                   {"precision", compiled.precision_notes()},
                   {"layers", nlohmann::json::array()},
                   {"rules", nlohmann::json::object()}};
  const auto& machine = compiled.program()->machine();
  j["machine"] = lamina::to_json(machine.here ? whole_machine() : machine);
  if (all.timed()) j["us"] = all.profile.whole(), j["runs"] = all.profile.runs();
  j["estimate_us"] = all.estimate();
  for (const auto& [rule, count] : rule_counts(compiled, all.plans))
    j["rules"][rule] = {{"hits", count.hits}, {"refusals", count.refusals}};
  for (const auto& [rule, why] : stopped_rules(compiled, all.plans)) j["rules"][rule]["left_out"] = why;
  j["fused"] = fused_layers(all.outcomes);
  j["alone"] = nlohmann::json::array();
  for (const auto& lone : lone_steps(all.plans, all.outcomes)) j["alone"].push_back(json_of(all, lone));
  return j;
}

nlohmann::json to_json(const Findings& all, const std::vector<const LayerOutcome*>& layers) {
  auto j = nlohmann::json::array();
  KnownNodes known;
  for (const auto* f : layers) j.push_back(json_of(all, *f, known));
  return j;
}

}  // namespace lamina
