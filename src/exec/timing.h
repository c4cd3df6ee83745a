#pragma once
/// Times of steps.
#include <chrono>
#include <span>

#include "base/quiescence.h"
#include "exec/bound.h"
#include "interpreter/seen_layers.h"

namespace lamina {

/// Time of one step in one run.
struct StepTime {
  const PlanStep* step;
  double microseconds;
  double cpu_microseconds = 0;  ///< of the thread that runs the steps
  std::chrono::steady_clock::time_point began = {};
  int thread = 0;  ///< thread_number() of the thread that ran the step
};

/// Runs steps without timing them.
void run_steps(Bound& bound, Activity& stream);

/// Timed runs of one plan by one request. Points to the plan's steps. Not thread-safe.
class StepTimes {
 public:
  /// A step of control flow, with the layers in its bodies that have run.
  struct Control {
    std::size_t step;
    LayerMarks layers;
  };

  void run(Bound& bound, Activity& stream);
  /// Times of the last run; empty when it failed, before the first, and after forget().
  std::span<const StepTime> last() const { return done_ ? times_ : std::span<const StepTime>(); }
  /// Control flow of all runs since forget().
  const std::vector<Control>& controls() const { return controls_; }
  void forget() noexcept;

 private:
  void prepare(const Plan& plan);
  template <class F>
  void run_timed(Bound& bound, Activity& stream, const F& after);

  std::vector<StepTime> times_;    // of all steps; while they run, in ticks
  std::vector<Control> controls_;  // in the order of the steps
  bool done_ = false;
  double busy_ = 1;     // processor time of a run's wall time, when it was read last
  int unread_ = 0;      // runs until it is read again
  double tick_ = 1e-3;  // microseconds, in the last run
};

}  // namespace lamina
