#pragma once
/// How long steps take.
#include <array>
#include <functional>

#include "exec/bound.h"

namespace lamina {

/// Time of one step in one run.
struct StepTime {
  const PlanStep* step;
  double microseconds;
  double cpu_microseconds = 0;  ///< of the thread that runs the steps
  int branch = 0;               ///< of an If: the body that was taken
};

/// Runs of one step that were timed, in microseconds.
struct StepCount {
  const PlanStep* step;
  std::uint64_t runs = 0;
  double last = 0, sum = 0, least = 0, cpu = 0;  ///< cpu: of all runs
  std::array<std::uint64_t, 2> branches{};       ///< of an If: how often each body was taken
};

/// Called before each step; what it throws ends the run.
using Checkpoint = std::function<void()>;

/// Runs steps without looking at a clock.
void run_steps(Bound& bound, const Checkpoint& checkpoint);

/// Timed runs of one plan by one request. Points to the plan's steps. Not thread-safe.
class StepTimes {
 public:
  void run(Bound& bound, const Checkpoint& checkpoint);
  /// Of the last timed run; empty before.
  const std::vector<StepTime>& last() const { return times_; }
  const std::vector<StepCount>& counts() const { return counts_; }

 private:
  template <class F>
  void run_timed(Bound& bound, const Checkpoint& checkpoint, const F& after);
  void count();

  std::vector<StepTime> times_;
  std::vector<StepCount> counts_;
  double busy_ = 1;     // processor time of a run's wall time, when it was read last
  int unread_ = 0;      // runs until it is read again
  double tick_ = 1e-3;  // microseconds, in the last run
};

}  // namespace lamina
