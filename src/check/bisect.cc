#include "check/bisect.h"

#include <algorithm>

#include "api/loaded_model.h"
#include "check/judge.h"
#include "check/rounding.h"

namespace lamina::checking {
namespace {

/// The first wrong value after so many rewrites; empty when there is none.
std::string wrong_value(const Graph& original, const std::vector<Tensor>& inputs, const Rewritten& rewritten,
                        std::int64_t count, Ledger& ledger) {
  for (const auto& v : judge_rewriting(original, inputs, rewritten(count, ledger)).values)
    if (!v.ok()) return v.name;
  return {};
}

RuleOptions options_of(const Compiled& compiled) {
  return late_optimize_options(compiled.options(), compiled.precision(), host(), compiled.model().rules());
}

/// The graph from which the part's plan was rewritten, once its shapes were known.
Graph specialised(const Compiled& compiled, const RunPart& part) {
  return part.before ? specialise(*part.before->rest, part.inputs, part.before->rest_values)
                     : specialise(compiled.optimized(), part.inputs, {});
}

}  // namespace

std::optional<Culprit> guilty_rewrite(const Graph& original, const std::vector<Tensor>& inputs,
                                      const Rewritten& rewritten, std::int64_t good) {
  Ledger all;
  if (wrong_value(original, inputs, rewritten, -1, all).empty()) return std::nullopt;
  auto bad = static_cast<std::int64_t>(all.rewrites());
  while (bad - good > 1) {
    Ledger ledger;
    const auto middle = good + (bad - good) / 2;
    (wrong_value(original, inputs, rewritten, middle, ledger).empty() ? good : bad) = middle;
  }
  Ledger last;
  Culprit culprit{static_cast<std::size_t>(bad), all.rewrites(), "what is done before any rewrite",
                  wrong_value(original, inputs, rewritten, bad, last)};
  if (bad > 0) culprit.rewrite = to_string(last.firings().back());
  return culprit;
}

Graph with_levels(const Compiled& compiled) {
  auto options = options_of(compiled);
  options.last = RuleSet::levels;
  auto graph = compiled.original();
  Ledger ledger;
  optimize(graph, options, ledger);
  return graph;
}

Graph before_bf16(const Compiled& compiled, const RunPart& part) {
  auto options = options_of(compiled);
  options.last = RuleSet::chains;
  auto graph = specialised(compiled, part);
  Ledger ledger;
  optimize(graph, options, ledger);
  return graph;
}

std::optional<Culprit> guilty_rewrite(const Compiled& compiled, const RunPart& part) {
  const auto rewriting_of = [&](const Graph& start, RuleSet last) -> Rewritten {
    auto options = options_of(compiled);
    options.last = std::min(last, options.bf16 ? RuleSet::chains : RuleSet::precision);
    Ledger all;
    Graph whole = start;
    if (options.more) optimize(whole, options, all);
    for (const auto& [rule, why] : all.stopped()) options.disable.push_back(rule);  // they have no part in it
    return [&start, options](std::int64_t count, Ledger& ledger) {
      auto limited = options;
      limited.stop_after = count;
      Graph g = start;
      optimize(g, limited, ledger);
      return g;
    };
  };
  const Graph& original = *part.original;
  const Graph* wanted = &original;
  Graph between;  // quantise steps that round to integers are judged first, as check_run() does
  std::int64_t good = -1;
  if (!part.before && quantises(original)) {
    const auto to_levels = rewriting_of(original, RuleSet::levels);
    if (auto found = guilty_rewrite(original, part.inputs, to_levels)) return found;
    Ledger first;
    between = to_levels(-1, first);
    wanted = &between;
    good = static_cast<std::int64_t>(first.rewrites());
  }
  if (!part.before)
    if (auto found = guilty_rewrite(*wanted, part.inputs, rewriting_of(original, RuleSet::precision), good))
      return found;
  const Graph known = specialised(compiled, part);
  return guilty_rewrite(*wanted, part.inputs, rewriting_of(known, RuleSet::precision));
}

}  // namespace lamina::checking
