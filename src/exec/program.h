#pragma once
/// A compiled graph: plans for the input shapes it has met, packed weights; and requests that run it.
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/graph.h"
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
  /// Plans kept per program, and bytes that they may take; the least recently used goes first.
  std::size_t cached_plans = 8;
  std::size_t cached_bytes = std::size_t{256} << 20;
  /// False: plan_ahead() forgets weights as they were read once they are packed.
  bool keep_weights = true;
  /// Called on a graph whose shapes have become known, before it is planned (rewriting).
  std::function<void(Graph&)> rewrite;
  ProgressCallback progress = {};  ///< of planning
  /// The program makes one when there is none, and hands it on to those of waiting parts.
  std::shared_ptr<PlanClock> clock;
};

/// Thread-safe.
class Program {
 public:
  /// `values`: inputs on whose values shapes depend (plans belong to those values, too).
  Program(Graph graph, ProgramOptions options, std::shared_ptr<ModelWeights> weights,
          std::vector<bool> values = {});

  const Graph& graph() const { return graph_; }
  int threads() const { return options_.threads; }
  std::size_t weight_bytes() const { return weights_->bytes(); }
  /// Seconds so far: types and rules for known shapes; choice and building; packing of weights.
  double rewriting_seconds() const { return 1e-9 * static_cast<double>(options_.clock->rewriting); }
  double planning_seconds() const {
    return 1e-9 * static_cast<double>(options_.clock->planning) - packing_seconds();
  }
  double packing_seconds() const { return weights_->packing_seconds(); }
  /// What was denormal in the weights that have been packed.
  Denormals denormals() const { return weights_->denormals(); }

  /// Plans belong to the values of this input, not only to its shape.
  bool depends_on_values(std::size_t input) const { return values_[input]; }

  /// The plan for these inputs; planned on first use. Call inside the arena that will run it.
  std::shared_ptr<const Plan> plan(const std::vector<Tensor>& inputs) const;
  /// Plans now when all input shapes are known, so that the first run need not. Takes an arena of its own.
  /// Before the program is shared.
  void plan_ahead();
  /// The program of the plan's waiting part.
  std::shared_ptr<const Program> rest(const std::shared_ptr<const Plan>& plan) const;

 private:
  struct Cached {
    std::string key;
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<const Program> rest;
    std::size_t bytes = 0;
  };
  std::shared_ptr<Plan> make(const std::vector<Tensor>& inputs) const;
  std::shared_ptr<const Program> rest_of(const Plan& plan) const;
  void keep(Cached cached) const;
  std::string key_of(const std::vector<Tensor>& inputs) const;

  Graph graph_;
  ProgramOptions options_;
  std::shared_ptr<ModelWeights> weights_;
  std::vector<bool> values_;
  mutable std::mutex mutex_;
  mutable std::list<Cached> cache_;  // most recently used first
};

/// Time of one step in one run.
struct StepTime {
  const PlanStep* step;
  double microseconds;
};

/// Runs a program on memory of its own: what stands behind a request. One run at a time per runner; several
/// may run at once.
class Runner {
 public:
  explicit Runner(std::shared_ptr<const Program> program);
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  /// Inputs in the order of the graph's inputs. They must stay unchanged during run().
  void set_input(std::size_t index, Tensor tensor);
  /// Memory for a result; an invalid tensor: the runner's own. run() throws Error(bad_input) where type,
  /// shape or alignment do not fit.
  void set_output(std::size_t index, Tensor tensor);
  /// What was set.
  const std::vector<Tensor>& inputs() const;
  const std::vector<Tensor>& given_outputs() const;
  void run();
  /// Valid until the next run, unless cloned.
  const Tensor& output(std::size_t index) const;

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
