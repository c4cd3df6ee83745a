#pragma once
/// Finds the rewrite that changes a graph's results.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/compiled.h"

namespace lamina::checking {

/// A plan of a run with its origin: the model, or the deferred subgraph of the plan before it.
struct RunPart {
  const Graph* original = nullptr;
  std::vector<Tensor> inputs;  ///< of the original
  std::shared_ptr<const Plan> plan, before;
};

struct Culprit {
  std::size_t number = 0, total = 0;  ///< number 0: wrong before any rewrite
  std::string rewrite;                ///< "fuse-linear at 'conv': ..."
  std::string value;                  ///< one that it changes
};

/// The original after the first so many rewrites (negative: all).
using Rewritten = std::function<Graph(std::int64_t rewrites, Ledger& ledger)>;

/// The first rewrite with which judge_rewriting() finds a wrong value; nothing where all are right. `good`:
/// with so many it finds none (-1: that is not known).
std::optional<Culprit> guilty_rewrite(const Graph& original, const std::vector<Tensor>& inputs,
                                      const Rewritten& rewritten, std::int64_t good = -1);

/// The model as rewriting leaves it behind the rule set `levels`.
Graph with_levels(const Compiled& compiled);
/// The part's graph as rewriting leaves it before the rule set `precision`.
Graph before_bf16(const Compiled& compiled, const RunPart& part);

/// The wrong rewrite among all rewrites that led to a part of a run of that model, in the steps of
/// check_run().
std::optional<Culprit> guilty_rewrite(const Compiled& compiled, const RunPart& part);

}  // namespace lamina::checking
