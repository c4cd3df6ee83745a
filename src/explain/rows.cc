#include "explain/rows.h"

#include "explain/summary.h"
#include "extension/extensions.h"
#include "kernels/onednn_isa.h"

namespace lamina {

RuleEvent event_of(const LedgerEntry& e) {
  auto kind = RuleEvent::Kind::removed;
  if (e.kind == LedgerEntry::Kind::fired) kind = RuleEvent::Kind::fired;
  if (e.kind == LedgerEntry::Kind::refused) kind = RuleEvent::Kind::refused;
  return {.kind = kind, .rule = e.rule, .node = e.node, .text = e.text};
}

std::vector<StepExplanation> step_rows(const Findings& all) {
  std::vector<StepExplanation> out;
  for (auto& row : rows_of(all.plans)) {
    const double us = all.profile.of(*row.step);
    out.push_back({.name = std::move(row.name),
                   .operators = std::move(row.op),
                   .kernel = std::move(row.kernel),
                   .layout = std::move(row.layout),
                   .precision = std::move(row.precision),
                   .moves = !row.step->runs_a_node(),
                   .estimate_us = row.step->cost,
                   .us = us,
                   .share = all.share(us),
                   .flops = row.work.flops(),
                   .bytes = row.work.bytes});
  }
  return out;
}

std::vector<UnfusedStep> unfused_rows(const Findings& all) {
  std::vector<UnfusedStep> out;
  for (auto& lone : lone_steps(all.plans, all.outcomes))
    out.push_back({.node = std::move(lone.name),
                   .operators = std::move(lone.operators),
                   .kernel = lone.step->label,
                   .layers = std::move(lone.layers),
                   .behind = std::move(lone.behind),
                   .reasons = std::move(lone.reasons),
                   .us = all.profile.of(*lone.step)});
  return out;
}

std::vector<RuleCount> rule_rows(const Compiled& compiled, const Findings& all) {
  std::map<std::string, RuleCount> rows;
  for (const auto& [rule, count] : rule_counts(compiled, all.plans))
    rows[rule] = {.rule = rule, .hits = count.hits, .refusals = count.refusals, .left_out = {}};
  for (const auto& [rule, why] : stopped_rules(compiled, all.plans)) {
    rows[rule].rule = rule;
    rows[rule].left_out = why;
  }
  std::vector<RuleCount> out;
  for (auto& [rule, row] : rows) out.push_back(std::move(row));
  return out;
}

std::vector<ExtensionRule> extension_rows(const Compiled& compiled, const Findings& all) {
  const auto stopped = stopped_rules(compiled, all.plans);
  std::vector<ExtensionRule> out;
  for (const auto& library : compiled.model().described().extensions->all())
    for (const auto& rule : library->rules) {
      auto& row = out.emplace_back();
      row.rule = rule->name;
      if (const auto it = stopped.find(rule->name); it != stopped.end()) row.left_out = it->second;
      auto entries = compiled.ledger().of_rule(rule->name);
      for (const auto& plan : all.plans)
        for (auto& e : plan->ledger.of_rule(rule->name)) entries.push_back(std::move(e));
      for (const auto& e : entries) {
        row.fired += e.kind == LedgerEntry::Kind::fired;
        if (e.kind == LedgerEntry::Kind::refused && row.refused++ == 0)
          row.first_refusal = fmt::format("at '{}': {}", e.node, e.text);
      }
    }
  return out;
}

std::vector<ThroughputForecast> forecast_rows(const Compiled& compiled) {
  const auto& placement = compiled.settings().placement;
  std::vector<ThroughputForecast> out;
  for (const auto& f : placement.forecast)
    out.push_back({.streams = f.streams,
                   .threads_per_stream = f.threads_each,
                   .per_second = f.per_second,
                   .used = f.streams == static_cast<int>(placement.streams.size())});
  return out;
}

ExplainTotals totals_of(const Findings& all) {
  ExplainTotals out;
  for (const auto& plan : all.plans)
    for (const auto& s : plan->steps) {
      const bool moves_only = !s.runs_a_node();
      (moves_only ? out.moves_us : out.steps_us) += all.profile.of(s);
      ++(moves_only ? out.moves : out.steps);
    }
  out.estimate_us = all.estimate();
  out.runs = all.profile.runs();
  out.us = all.profile.whole();
  return out;
}

PlannedMachine planned_machine(const Compiled& compiled, bool described) {
  const auto& m = compiled.program()->machine();
  return {.name = m.name,
          .level = std::string(name_of(m.isa())),
          .library_level = std::string(name_of(m.library)),
          .shown_level = std::string(name_of(std::min(m.library, onednn_isa()))),
          .l1 = m.l1,
          .l2 = m.l2,
          .l3 = m.l3,
          .threads = compiled.threads(),
          .described = described};
}

}  // namespace lamina
