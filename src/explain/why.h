#pragma once
/// Why a rule did nothing at a layer.
#include "api/layer_outcome.h"
#include "explain/layers.h"
#include "rewrite/exemptions.h"
#include "rules/rules.h"

namespace lamina {

/// The rule of that name. Throws Error(bad_option) for an unknown name.
const Rule& rule_named(std::string_view name, const std::shared_ptr<const Rules>& more);

/// The firings and refusals of the rule at the layer, and at the readers of its result: a rule that joins two
/// nodes records its entry at the later one.
std::vector<LedgerEntry> entries_of(const Rule& rule, const Compiled& compiled,
                                    const std::vector<std::shared_ptr<const Plan>>& plans,
                                    const LayerOutcome& outcome);

/// For a rule without such entries: a sentence that says what it looks for and what it found.
std::string why_silent(const Rule& rule, const Compiled& compiled,
                       const std::vector<std::shared_ptr<const Plan>>& plans, const LayerOutcome& outcome);

/// The user wants the layer left as it is.
bool is_exempt(const Exemptions& exempt, const LayerOutcome& outcome);

/// What the plan decided against fusions that rules had made there: a sentence each.
std::vector<std::string> plan_sentences(const std::vector<std::shared_ptr<const Plan>>& plans,
                                        const std::vector<LayerOutcome>& outcomes,
                                        const LayerOutcome& outcome);

}  // namespace lamina
