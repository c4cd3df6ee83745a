/// lamina explain: what became of each layer of the file, and why.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "rewrite/driver.h"
#include "rules/rules.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct ExplainOptions {
  Common common;
  InputOptions inputs;
  std::string node;
  std::vector<std::string> why;
};

/// Where a layer of the file went in the plans that run.
struct Fate {
  std::string name, type;
  std::vector<std::string> steps;   ///< "jit_avx512_f32 (channels_last)"
  std::vector<std::string> shared;  ///< other layers in the same nodes
  std::vector<LedgerEntry> history;
  std::vector<const Choice*> choices;
};

void find_nodes(const Plan& plan, const std::map<std::string, std::size_t>& index, std::vector<Fate>& fates) {
  std::map<NodeId, const Choice*> choices;
  for (const auto& c : plan.choices) choices[c.node] = &c;
  for (const auto& [id, choice] : choices) {
    const auto& sources = plan.graph.node(id).sources;
    for (const auto source : sources) {
      const auto it = index.find(plan.graph.sources.at(source.index).name);
      if (it == index.end()) continue;
      auto& fate = fates[it->second];
      fate.steps.push_back(
          fmt::format("{}{}", choice->label, choice->layout == Layout::plain ? "" : " in channels-last"));
      fate.choices.push_back(choice);
      for (const auto other : sources)
        if (other != source) fate.shared.push_back(plan.graph.sources.at(other.index).name);
    }
  }
}

std::vector<Fate> fates_of(Session& s) {
  std::vector<Fate> fates;
  std::map<std::string, std::size_t> index;
  const auto& ledger = s.impl().ledger();
  for (const auto& source : s.impl().original().sources) {
    index.emplace(source.name, fates.size());
    fates.push_back({source.name, source.type, {}, {}, ledger.about(source.name), {}});
  }
  for (const auto& plan : s.request.runner().plans()) find_nodes(*plan, index, fates);
  return fates;
}

std::string in_short(const Fate& f) {
  const auto removed = std::find_if(f.history.begin(), f.history.end(),
                                    [](const auto& e) { return e.kind == LedgerEntry::Kind::removed; });
  if (f.steps.empty()) {
    if (removed != f.history.end()) return fmt::format("gone: {} ({})", removed->text, removed->rule);
    return "gone: folded or unused once the shapes were known";
  }
  std::string text = f.steps.size() == 1
                         ? f.steps[0]
                         : fmt::format("{} nodes: {}", f.steps.size(), fmt::join(f.steps, ", "));
  if (!f.shared.empty()) {
    const std::set<std::string> names(f.shared.begin(), f.shared.end());
    text += fmt::format(", one node with {}", fmt::join(names, ", "));
  }
  return text;
}

void print_detail(const Common& c, const Fate& f) {
  c.say("{}  {}", f.name, f.type);
  c.say("  {}", in_short(f));
  for (const auto& e : f.history) c.say("  {}", to_string(e));
  for (const auto* choice : f.choices) {
    c.say("  kernel {} (estimated {:.1f} us)", choice->label, choice->cost);
    for (const auto& lost : choice->lost)
      c.say("    instead of {} (estimated {:.1f} us)", lost.label, lost.cost);
    for (const auto& r : choice->refusals) c.say("    {} refused: {}", r.kernel, r.reason);
  }
}

nlohmann::json to_json(const Fate& f) {
  nlohmann::json j{{"name", f.name},
                   {"type", f.type},
                   {"fate", in_short(f)},
                   {"kernels", f.steps},
                   {"history", nlohmann::json::array()}};
  for (const auto& e : f.history)
    j["history"].push_back({{"rule", e.rule},
                            {"kind", e.kind == LedgerEntry::Kind::fired     ? "fired"
                                     : e.kind == LedgerEntry::Kind::refused ? "refused"
                                                                            : "removed"},
                            {"node", e.node},
                            {"text", e.text}});
  return j;
}

int why(const ExplainOptions& o, Session& s) {
  const auto& rule = o.why[0];
  const auto& node = o.why[1];
  std::vector<std::string> rules;
  for (const auto& r : all_rules()) rules.push_back(r.name);
  if (std::find(rules.begin(), rules.end(), rule) == rules.end()) {
    const auto near = nearest_name(rule, rules);
    throw UsageError(fmt::format("--why: rule \"{}\" is not known{}", rule,
                                 near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near)));
  }
  std::size_t found = 0;
  for (const auto& e : s.impl().ledger().about(node))
    if (e.rule == rule) {
      o.common.say("{}", to_string(e));
      ++found;
    }
  if (found == 0) o.common.say("{} at \"{}\": its pattern never fitted there", rule, node);
  return 0;
}

int run(const ExplainOptions& o) {
  Session s(o.common, o.inputs, o.common.options());
  {
    Progress progress("planning " + o.common.model, o.common.quiet);
    s.request.run();
  }
  if (!o.why.empty()) return why(o, s);
  const auto fates = fates_of(s);
  nlohmann::json j{{"model", o.common.model},
                   {"precision", s.impl().precision_notes()},
                   {"layers", nlohmann::json::array()},
                   {"rules", nlohmann::json::object()}};
  for (const auto& note : s.impl().precision_notes()) o.common.say("precision: {}", note);
  bool found = o.node.empty();
  for (const auto& f : fates) {
    if (!o.node.empty() && f.name != o.node) continue;
    found = true;
    if (o.node.empty())
      o.common.say("{:<40} {:<20} {}", f.name, f.type, in_short(f));
    else
      print_detail(o.common, f);
    j["layers"].push_back(to_json(f));
  }
  if (!found) {
    std::vector<std::string> names;
    for (const auto& f : fates) names.push_back(f.name);
    const auto near = nearest_name(o.node, names);
    fail(ErrorCode::bad_input, "--node: there is no layer \"{}\"{}", o.node,
         near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near));
  }
  for (const auto& [rule, count] : s.impl().ledger().counts()) {
    j["rules"][rule] = {{"hits", count.hits}, {"refusals", count.refusals}};
    if (count.hits && o.node.empty()) o.common.say("{:<28} {} times", rule, count.hits);
  }
  write_json(o.common, j);
  return 0;
}

}  // namespace

Verb setup_explain(CLI::App& app) {
  auto o = std::make_shared<ExplainOptions>();
  add_model(app, o->common);
  add_input_options(app, o->inputs);
  app.add_option("--node", o->node, "One layer in detail")->type_name("NAME");
  app.add_option("--why", o->why, "What one rule did or refused at one layer")
      ->expected(2)
      ->type_name("RULE NODE");
  add_compile_options(app, o->common);
  add_json(app, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
