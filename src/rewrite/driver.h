#pragma once
/// Applies rules to a graph until none fits any more.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine.h"
#include "rewrite/exemptions.h"
#include "rewrite/fold_budget.h"
#include "rewrite/ledger.h"
#include "rewrite/observer.h"
#include "rewrite/rule.h"

namespace lamina {

struct RewriteOptions {
  std::vector<std::string> disable;  ///< rules by name
  std::vector<std::string> exempt;   ///< nodes (rewrite/exemptions.h)
  std::int64_t stop_after = -1;      ///< number of rewrites; negative: no limit
  /// Rules of the set `precision` will come: others leave products to them that f32 would do without.
  bool bf16 = false;
  /// Quantised layers become products of integers: until the set `integers` has run, weights of few bits stay
  /// so. False: quantise steps are computed as they stand.
  bool integers = true;
  /// Constants as bf16; empty: they are converted anew each time.
  std::function<Tensor(const Tensor&)> narrowed = {};
  /// For which conditions estimate what a rewrite gains; null: any. It outlives the driver.
  const Machine* machine = nullptr;
  /// The graph is written to a file, not run: weights of few bits stay so, and constants that would mostly
  /// repeat what they are computed from (Broadcast, Tile, Range) stay small.
  bool for_file = false;
  /// What evaluating constants may cost; none: what fits the graph that is rewritten first.
  std::optional<FoldBudget> folding = {};
  RewriteObserver* observer = nullptr;  ///< of each rewrite; null: nobody. It outlives the driver
#ifdef NDEBUG
  bool verify = false;  ///< checks the whole graph after every rewrite
#else
  bool verify = true;
#endif
};

/// How refusals begin where a rule could not make what it wanted, since operators would not fit each other:
/// of a model that contradicts itself. Of any other it is a fault of the rule.
inline constexpr std::string_view kDoesNotFit = "what it makes does not fit: ";

/// A rule of a library fires again on what it has made. The graph and the ledger are of no use then.
class EndlessRule : public Error {
 public:
  EndlessRule(const Rule& rule, std::size_t times)
      : Error(ErrorCode::extension, fmt::format("rule \"{}\" of {} does not end: it fired {} times",
                                                rule.name, rule.library, times)),
        rule_(rule.name) {}
  const std::string& rule() const { return rule_; }

 private:
  std::string rule_;
};

class Driver {
 public:
  /// The rules must outlive the driver. Throws Error(bad_option) for an unknown rule or a bad expression.
  Driver(std::span<const Rule> rules, const RewriteOptions& options, Ledger& ledger);

  /// Applies the rules that run in a set, bodies of control flow first. Returns the number of rewrites. Stops
  /// at stop_after rewrites, counted over all runs of this driver. Throws EndlessRule.
  std::size_t run(Graph& graph, RuleSet set);
  /// Sets the values of the next graph whose bodies the rules leave alone: conditions ask Match::why_kept().
  /// A value that replaces one of them is kept, too.
  void keep(KeptValues values) { kept_ = std::move(values); }

 private:
  struct Work;
  [[noreturn]] static void give_up(const Work& work);
  std::size_t run_graph(Graph& graph, RuleSet set);
  /// The rules that may fire: all, those that do not wait for others, those that do.
  enum class Turn : std::uint8_t { all, of_others, of_patient };
  void work_off(Graph& graph, Work& work, Turn turn);
  bool try_rules(Graph& graph, NodeId id, Work& work, Turn turn);
  Found<Making> bind(const Rule& rule, Match& match);
  struct Active {
    const Rule* rule;
    RuleId id;
  };
  enum class Outcome { nothing_to_do, unfit, fired };
  Outcome try_rule(Graph& graph, const Active& active, NodeId id, Work& work);
  static std::string made(Graph& graph, const Rule& rule, const std::string& label, const Making& make,
                          Rewrite& r);
  /// Empty: it is done; else why it could not, after all.
  std::string apply(Graph& graph, const Active& active, const Match& match, const Making& make, Work& work);
  struct Redirected;
  Redirected redirect(Graph& graph, const Rule& rule, const Rewrite& r);
  void take_out_replaced(Graph& graph, const Rewrite& r, std::vector<ValueId>& touched,
                         std::vector<SourceId>& sources);
  void record(const Graph& graph, const Active& active, const std::string& label, const Rewrite& r,
              const std::vector<SourceId>& sources);
  SeenRewrite seen(const Graph& graph, const Rule& rule, const Rewrite& r, std::size_t number) const {
    return {rule, r, graph, *outermost_, where_, number};
  }
  NodePath path_to(NodeId id) const;
  Ledger::Subject subject(std::string label, const std::vector<SourceId>& sources) const;

  std::span<const Rule> rules_;
  RewriteOptions options_;
  Exemptions exempt_;
  Ledger& ledger_;
  KeptValues kept_;
  std::optional<FoldBudget> folding_;
  RuleSet set_{};               // that runs
  std::vector<Active> active_;  // in this run
  int depth_ = 1;               // of the deepest pattern among them
  const Graph* outermost_ = nullptr;
  NodePath where_;  // the way to the graph that is being rewritten
  std::size_t done_ = 0;
};

}  // namespace lamina
