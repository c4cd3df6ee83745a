#pragma once
/// Rewrites a model as it was read to the graph that is planned.
#include "api/options_table.h"
#include "base/log.h"
#include "exec/variables.h"
#include "lamina/options.h"
#include "rules/optimize.h"
#include "saved/rewriting_facts.h"

namespace lamina {

/// The part of the options that says how the graph is rewritten.
/// `more`: the rules of the model's libraries (LoadedModel::rules), here and below.
RuleOptions optimize_options(const Options& options, std::shared_ptr<const Rules> more = {});
/// Options of the rewriting once the sizes of a compiled model's inputs are known, for plans of that machine
/// in that precision.
RuleOptions late_optimize_options(const Options& options, Precision used, const Machine& machine,
                                  std::shared_ptr<const Rules> more = {});

struct RewrittenModel {
  Stateless model;  ///< what is planned
  Graph original;   ///< the graph as read, in the precision that runs, with variables as inputs and results
  Ledger ledger;    ///< of what made the one of the other
  RewritingFacts facts;
};

/// Logs the facts of a rewriting, whether it was done now or comes from a file.
void tell(const RewritingFacts& facts, const Logger& log);

/// `settings`: options, the precision that they get, and threads to work on. Throws Error(bad_option) for a
/// rule that does not exist or a broken expression, Error(unsupported) for variables that cannot be kept.
/// `observer`: who looks on, or null.
RewrittenModel rewrite_model(Graph graph, const Settings& settings, const Machine& machine, const Logger& log,
                             std::shared_ptr<const Rules> more = {}, RewriteObserver* observer = nullptr);

}  // namespace lamina
