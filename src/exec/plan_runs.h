#pragma once
/// One request's runs of a program's plans on streams.
#include <list>

#include "exec/callers.h"
#include "exec/step_counts.h"
#include "exec/stream.h"

namespace lamina {

/// The circumstances of one run.
struct RunContext {
  Stream& stream;
  bool timed;
};

/// Holds the request's part of each of the last plans: its own memory for results, times of steps, and the
/// runs of the deferred subgraph. Steps and memory between them are the stream's. The steady state (inputs of
/// the same shapes as before) takes no lock and allocates nothing. Not thread-safe.
class PlanRuns {
 public:
  /// `callers` and `counts` are the request's, also if this runs a deferred subgraph. The callers' tensors
  /// outlive this object.
  PlanRuns(std::shared_ptr<const Program> program, const CallersTensors& callers,
           std::shared_ptr<StepCounts> counts = std::make_shared<StepCounts>());

  /// Runs on `inputs`; `given` is the caller's memory for results; both in the program's order. `depth`: the
  /// number of plans that this one is a deferred subgraph of. To be called inside the stream's arena; can be
  /// stopped (base/cancellation.h). Call forget() if it throws.
  void run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& given, const RunContext& context,
           std::size_t depth = 0);
  /// To be called when the caller's memory for results has changed.
  void given_changed() noexcept { given_fits_ = false; }
  /// Results of the last run; invalid tensors after forget().
  const std::vector<Tensor>& results() const { return results_; }
  /// A result of the last run, whose memory the next runs do not use.
  Tensor take(std::size_t r);
  /// Drops the results and times of the last run. Counts stay.
  void forget() noexcept;

  // Adds the last plan, then the plan of its deferred subgraph.
  void add_plans(std::vector<std::shared_ptr<const Plan>>& out) const;
  /// The last plans whose runs were counted, the latest first; each with the plan of its deferred subgraph.
  std::vector<PlanChain> counted_plans() const;
  /// Adds the times of the last run; none if it was not timed.
  void add_times(std::vector<StepTime>& out) const;
  std::size_t arena_bytes() const;
  /// Adds the counts of all successful timed runs since the last one that was not timed.
  void add_counts(std::vector<StepCount>& out) const;

 private:
  struct Rest;
  /// The request's part of a plan.
  struct Use {
    Use(std::string key, std::shared_ptr<const Planned> planned, const CallersTensors& callers,
        const std::shared_ptr<StepCounts>& counts);
    Use(Use&&) = delete;
    ~Use();
    void forget() noexcept;
    std::string key;
    std::shared_ptr<const Planned> planned;
    std::vector<Tensor> own_results;
    StepTimes times;
    StepCounts::Slots slots;  // made when it is timed first
    bool counted = false;     // in counts that have not been forgotten since
    std::unique_ptr<Rest> rest;
  };

  void choose_plan(const std::vector<Tensor>& inputs);
  void check_given(const std::vector<Tensor>& given);
  void run_plan(Use& use, const std::vector<Tensor>& inputs, const std::vector<Tensor>& given,
                const RunContext& context, std::size_t depth);
  void point(Bound& bound, const std::vector<Tensor>& inputs, const std::vector<Tensor>& given,
             const Tensor& arena);
  void take_results(const Plan& plan, const std::vector<Tensor>& given);
  void run_rest(Rest& rest, const Plan& plan, const RunContext& context, std::size_t depth);
  void run_timed(Use& use, Bound& bound, const RunContext& context, std::size_t depth);
  void count_run();
  void forget_counts() noexcept;

  std::shared_ptr<const Program> program_;
  const CallersTensors& callers_;
  std::shared_ptr<StepCounts> counts_;
  std::vector<Tensor> results_;
  KnownInputs known_;
  std::list<Use> uses_;      // most recently used first
  Use* current_ = nullptr;   // what the known inputs want
  bool given_fits_ = false;  // memory for results is as current_ wants it
};

}  // namespace lamina
