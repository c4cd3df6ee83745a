#pragma once
/// A compiled graph: plans for the input shapes it has met, packed weights; and requests that run it.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/plan_cache.h"
#include "exec/plan_size.h"
#include "exec/variables.h"
#include "graph/graph.h"
#include "interpreter/interpreter.h"
#include "plan/plan.h"
#include "plan/weight_store.h"

namespace lamina {

/// How long the making of plans took so far, those of waiting parts included.
struct PlanClock {
  std::atomic<std::int64_t> rewriting{0}, planning{0};  ///< nanoseconds; packing is a part of planning
};

struct ProgramOptions {
  int threads = 1;
  std::uint64_t any_kernels = 0;  ///< for tests, as in PlanOptions
  /// Plans kept, those of waiting parts included, and bytes that they may take beside the model's own
  /// weights; the least recently used goes first.
  std::size_t cached_plans = 8;
  std::size_t cached_bytes = std::size_t{256} << 20;
  /// False: plan_ahead() forgets weights as they were read once they are packed.
  bool keep_weights = true;
  /// Called on a graph whose shapes have become known, before it is planned; tells what it did.
  std::function<Ledger(Graph&)> rewrite;
  ProgressCallback progress = {};  ///< of planning
  /// The program makes one when there is none, and hands it on to those of waiting parts.
  std::shared_ptr<PlanClock> clock;
};

/// Thread-safe.
class Program {
 public:
  Program(Stateless model, ProgramOptions options, std::shared_ptr<ModelWeights> weights);
  /// The same for a graph that may have variables.
  Program(Graph graph, ProgramOptions options, std::shared_ptr<ModelWeights> weights)
      : Program(without_variables(std::move(graph)), std::move(options), std::move(weights)) {}

  const Graph& graph() const { return graph_; }
  int threads() const { return options_.threads; }
  std::size_t weight_bytes() const {
    return weights_->bytes() + (initial_values_ ? initial_values_->weight_bytes() : 0);
  }
  /// Seconds so far: types and rules for known shapes; choice and building; packing of weights.
  double rewriting_seconds() const { return 1e-9 * static_cast<double>(options_.clock->rewriting); }
  double planning_seconds() const {
    return 1e-9 * static_cast<double>(options_.clock->planning) - packing_seconds();
  }
  double packing_seconds() const { return weights_->packing_seconds(); }
  /// What was denormal in the weights that are packed now.
  Denormals denormals() const { return weights_->denormals(); }

  /// Plans belong to the values of this input, not only to its shape.
  bool depends_on_values(std::size_t input) const { return values_[input]; }

  /// In the order of the graph's last inputs, which hold their values.
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
  /// The same by its key: inputs of one key have one plan.
  std::shared_ptr<const Planned> plan(const std::vector<Tensor>& inputs, const std::string& key) const;
  std::string key_of(const std::vector<Tensor>& inputs) const;
  /// Plans now when all input shapes are known, so that the first run need not. Takes an arena of its own.
  /// Before the program is shared.
  void plan_ahead();
  /// What is kept for later, that of waiting parts included.
  std::shared_ptr<const PlanCache> cache() const { return cache_.lock(); }

 private:
  /// The program of what waits in the plan of `parent` under `key`.
  Program(const Plan& plan, const Program& parent, const std::string& key);
  /// `forget`: the graph of a plan that is the only one needs no weights any more.
  std::shared_ptr<const Planned> make(const std::vector<Tensor>& inputs, const std::string& key,
                                      bool forget = false) const;

  Graph graph_;
  ProgramOptions options_;
  std::shared_ptr<ModelWeights> weights_;
  std::vector<bool> values_;  // inputs on whose values shapes depend
  std::vector<Variable> variables_;
  std::shared_ptr<const Program> initial_values_;
  // The cache holds the programs of waiting parts: only the outermost program owns it.
  std::shared_ptr<PlanCache> own_cache_;
  std::weak_ptr<PlanCache> cache_;
  std::vector<std::string> above_;  // keys of the plans that this is a waiting part of, outermost first
  std::shared_ptr<const Addresses> model_constants_, constants_;  // of the outermost graph, and of this one
};

/// The model's inputs with the values of its variables behind them, as Program::plan takes them: those kept,
/// else the initial ones.
std::vector<Tensor> with_variables(const std::shared_ptr<const Program>& program, std::vector<Tensor> inputs,
                                   const VariableValues& kept = {});

/// Time of one step in one run.
struct StepTime {
  const PlanStep* step;
  double microseconds;
};

/// Runs a program on memory of its own: what stands behind a request. One run at a time per runner; several
/// may run at once. A run that throws leaves inputs, variables and the caller's memory for results set as
/// they were, and no results; the next one begins anew.
class Runner {
 public:
  explicit Runner(std::shared_ptr<const Program> program);
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  /// Inputs in the order of the model's inputs. They must stay unchanged during run().
  void set_input(std::size_t index, Tensor tensor);
  /// Memory for a result; an invalid tensor: the runner's own. run() throws Error(bad_input) where type,
  /// shape or alignment do not fit.
  void set_output(std::size_t index, Tensor tensor);
  /// What was set.
  const std::vector<Tensor>& inputs() const;
  const std::vector<Tensor>& given_outputs() const;
  void run();
  /// Of the last run, invalid when it failed. Valid until the next run, unless cloned.
  const Tensor& output(std::size_t index) const;

  /// The value of a variable (by its place in Program::variables) before the next run, to keep; an invalid
  /// tensor when that is computed of the inputs then.
  Tensor variable(std::size_t index) const;
  /// Copies the value. Throws Error(bad_input) when it does not fit.
  void set_variable(std::size_t index, const Tensor& value);
  /// All variables have their initial values again.
  void reset_variables();

  /// Plans of the last run: its own and those of parts whose shapes were found while running.
  std::vector<std::shared_ptr<const Plan>> plans() const;
  std::size_t arena_bytes() const;
  /// Times every step while on.
  void profile(bool on);
  std::vector<StepTime> times() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lamina
