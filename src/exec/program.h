#pragma once
/// A compiled graph: plans for the input shapes it has met, packed weights; and requests that run it.
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/once.h"
#include "base/work_bounds.h"
#include "exec/kept_plans.h"
#include "exec/plan_cache.h"
#include "exec/plan_size.h"
#include "exec/variables.h"
#include "graph/carried.h"
#include "graph/graph.h"
#include "interpreter/interpreter.h"
#include "plan/plan.h"
#include "plan/weight_store.h"

namespace lamina {

struct ProgramOptions {
  int threads = 1;
  std::shared_ptr<const WorkBounds> bounds = {};  ///< of planning and runs; null: none
  std::shared_ptr<const Machine> machine = {};    ///< null: host(). Programs for another one cannot run.
  std::vector<std::string> force = {};
  std::uint64_t any_kernels = 0;  ///< for tests, as in PlanOptions
  /// Number of plans kept, including those of deferred subgraphs, and bytes that they may take beside the
  /// model's own weights; the least recently used plan is dropped first.
  std::size_t cached_plans = 8;
  std::size_t cached_bytes = std::size_t{256} << 20;
  /// False: plan_ahead() releases the original weights once they are packed.
  bool keep_weights = true;
  /// Rewrites a graph whose shapes have become known, before it is planned, and returns the ledger. The
  /// second argument: the results that variables pass to the next run.
  std::function<Ledger(Graph&, const std::vector<Carried>&)> rewrite;
  ProgressCallback progress = {};  ///< of planning
  double run_seconds = 0;          ///< that one run may take (LIMIT_RUN_SECONDS); 0: any
  double plan_seconds = 0;         ///< that a run's planning may take (LIMIT_COMPILE_SECONDS); 0: any
  std::int64_t loop_iterations = std::numeric_limits<std::int64_t>::max();  ///< LIMIT_LOOP_ITERATIONS
  /// Kept plans, for which no kernels need be selected; null: none. If one cannot be made, `kept_fails` gets
  /// the error, and the graph is planned again.
  std::shared_ptr<const KeptPlans> kept = {};
  std::function<void(const Error&)> kept_fails = {};
  /// Makes the program's graph with its weights, if the program has a graph without them; called once, when a
  /// plan has to be made.
  std::function<Graph()> whole = {};
  /// Called when a plan was made that had not been kept, by the thread that wanted it.
  std::function<void()> planned = {};
};

/// Thread-safe.
class Program {
 public:
  Program(Stateless model, ProgramOptions options, std::shared_ptr<ModelWeights> weights);
  /// A program of a graph that may have variables.
  Program(Graph graph, ProgramOptions options, std::shared_ptr<ModelWeights> weights)
      : Program(without_variables(std::move(graph)), std::move(options), std::move(weights)) {}

  const Graph& graph() const { return graph_; }
  /// The graph with its weights, unless they were forgotten.
  const Graph& whole() const;
  /// Constants that are packed now.
  std::vector<Packing> packings() const { return shared_->weights->packings(); }
  int threads() const { return shared_->options.threads; }
  const WorkBounds* bounds() const { return shared_->options.bounds.get(); }
  std::size_t cached_plans() const { return shared_->options.cached_plans; }
  /// The limits that stop runs, without the signal of a caller.
  StopRules run_rules() const {
    const auto& o = shared_->options;
    return {nullptr, "the inference", o.run_seconds, "LIMIT_RUN_SECONDS", o.loop_iterations};
  }
  const Machine& machine() const { return shared_->options.machine ? *shared_->options.machine : host(); }
  std::size_t weight_bytes() const {
    return shared_->weights->bytes() + (initial_values_ ? initial_values_->weight_bytes() : 0);
  }
  /// Seconds spent so far on types and rules for known shapes; on selecting kernels and building plans; on
  /// packing weights.
  double rewriting_seconds() const;
  double planning_seconds() const;
  double packing_seconds() const;
  /// Counts of denormal numbers in the weights that are packed now.
  Denormals denormals() const { return shared_->weights->denormals(); }

  /// True if plans depend on the values of this input, not only on its shape.
  bool depends_on_values(std::size_t input) const { return values_[input]; }

  /// The variables, in the order of the graph's last inputs, which hold their values.
  const std::vector<Variable>& variables() const { return variables_; }
  /// Inputs of the graph that are no variables.
  std::size_t model_inputs() const { return graph_.inputs().size() - variables_.size(); }
  /// Computes the initial values that are no constants, of the model's inputs; null when there are none.
  const std::shared_ptr<const Program>& initial_values() const { return initial_values_; }

  /// The plan for these inputs; made on first use, once for all that ask at the same time. Call inside the
  /// arena that will run it.
  std::shared_ptr<const Planned> plan(const std::vector<Tensor>& inputs) const {
    return plan(inputs, key_of(inputs));
  }
  /// The plan for a key: inputs of one key have one plan.
  std::shared_ptr<const Planned> plan(const std::vector<Tensor>& inputs, const std::string& key) const;
  std::string key_of(const std::vector<Tensor>& inputs) const;
  /// Types of the results for inputs of the model that stand for their shapes only, with initial values of
  /// variables; unknown where they depend on values.
  std::vector<TensorType> result_types(std::vector<Tensor> inputs) const;
  /// Plans now when all input shapes are known, so that the first run need not. Takes an arena of its own.
  /// To be called before the program is shared.
  void plan_ahead();
  /// The plan for input shapes that are all known, else null; made anew and not kept.
  std::shared_ptr<const Plan> plan_for_looking() const;
  /// Number of plans that were made from kept ones.
  std::size_t kept_plans() const { return shared_->kept; }
  /// Number of plans for which kernels were selected here.
  std::size_t made_plans() const { return shared_->made; }
  /// Releases the original weights if the program was planned ahead, all shapes are known, and the weights
  /// are not to be kept. True if it did.
  bool forget_weights_read();
  /// The cache of plans, including those of deferred subgraphs.
  std::shared_ptr<const PlanCache> cache() const { return cache_.lock(); }

 private:
  /// Tensors with shape only, for inputs whose shapes are all known; nothing if one is not.
  std::optional<std::vector<Tensor>> known_inputs() const;
  /// The program of the deferred subgraph of the plan of `parent` under `key`.
  Program(const Plan& plan, const Program& parent, const std::string& key);
  std::shared_ptr<const Planned> make(const std::vector<Tensor>& inputs, const std::string& key) const;
  /// A plan made from a kept one; null if there is none, or if it cannot be made.
  std::shared_ptr<Planned> make_kept(const std::string& key) const;
  std::shared_ptr<Planned> make_new(const std::vector<Tensor>& inputs) const;

  /// State that a model's program shares with the programs of its deferred subgraphs.
  struct Shared {
    ProgramOptions options;
    std::shared_ptr<ModelWeights> weights;
    std::shared_ptr<const Addresses> constants;           ///< of the outermost graph
    std::atomic<std::int64_t> rewriting{0}, planning{0};  ///< nanoseconds; packing is a part of planning
    std::atomic<std::size_t> kept{0}, made{0};            ///< plans made of kept ones, and others
    Once whole_made = {};
    Graph whole = {};  ///< of options.whole
    Addresses whole_constants = {};
  };

  Graph graph_;
  std::shared_ptr<Shared> shared_;
  std::vector<bool> values_;  // inputs on whose values shapes depend
  std::vector<Variable> variables_;
  std::vector<Carried> carried_;
  std::shared_ptr<const Program> initial_values_;
  // The cache holds the programs of deferred subgraphs: only the outermost program owns it.
  std::shared_ptr<PlanCache> own_cache_;
  std::weak_ptr<PlanCache> cache_;
  std::vector<std::string> above_;  // keys of the plans that this subgraph was deferred from, outermost first
  std::shared_ptr<const Addresses> constants_;  // of this graph
  std::shared_ptr<const Planned> ahead_;        // of plan_ahead(), until weights are forgotten
};

}  // namespace lamina
