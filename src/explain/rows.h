#pragma once
/// The rows of an Explanation, from what was found out.
#include "explain/findings.h"
#include "lamina/explain.h"

namespace lamina {

RuleEvent event_of(const LedgerEntry& entry);

std::vector<LayerExplanation> layer_rows(const Compiled& compiled, const Findings& all);
std::vector<StepExplanation> step_rows(const Findings& all);
std::vector<UnfusedStep> unfused_rows(const Findings& all);
std::vector<RuleCount> rule_rows(const Compiled& compiled, const Findings& all);
/// Rules of libraries, those that did nothing as well.
std::vector<ExtensionRule> extension_rows(const Compiled& compiled, const Findings& all);
std::vector<ThroughputForecast> forecast_rows(const Compiled& compiled);
ExplainTotals totals_of(const Findings& all);
/// `described`: by a file.
PlannedMachine planned_machine(const Compiled& compiled, bool described);

}  // namespace lamina
