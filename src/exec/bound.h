#pragma once
/// A plan bound to memory: its arena, the user's tensors, steps with their pointers.
#include <functional>

#include "plan/plan.h"

namespace lamina {

/// Time of one step in one run.
struct StepTime {
  const PlanStep* step;
  double microseconds;
  double cpu_microseconds = 0;  ///< of the thread that runs the steps
  int branch = 0;               ///< of an If: the body that was taken
};

/// Called before each step; what it throws ends the run.
using Checkpoint = std::function<void()>;

/// They have a byte in common.
bool overlap(const Tensor& a, const Tensor& b);

/// What the caller of a request has set. A result may have become one of these tensors since: its memory is
/// not the request's own any more.
struct CallersTensors {
  const std::vector<Tensor>&inputs, &results;
  bool overlap(const Tensor& memory) const;
};

/// One request's use of one plan. Not thread-safe.
class Bound {
 public:
  explicit Bound(std::shared_ptr<const Plan> plan);

  const std::shared_ptr<const Plan>& plan() const { return plan_; }

  /// Points steps at these tensors and this arena (of plan()->memory.arena bytes at least). `results` may
  /// hold the user's memory for results, which fits; the request's own is never where one of `callers` lies,
  /// also when this is the plan of a waiting part, so that a result can be an input of the next run. Cheap
  /// when nothing changed.
  void prepare(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results, const Tensor& arena,
               const CallersTensors& callers);
  /// `times`: microseconds per step are written there when not null.
  void run(std::vector<StepTime>* times, const Checkpoint& checkpoint);

  /// A tensor of the plan as the caller sees it.
  Tensor tensor(std::uint32_t t) const;
  const Tensor& result(std::size_t r) const;

 private:
  struct Pointers {
    std::vector<const void*> in;
    std::vector<void*> out;
  };
  bool point(std::uint32_t tensor, const void* to);
  void point_steps();
  void run_step(std::size_t s);
  template <class F>
  void run_timed(std::vector<StepTime>& times, const Checkpoint& checkpoint, const F& after);
  void run_dynamic(const PlanStep& step);
  int branch_of(const PlanStep& step) const;

  std::shared_ptr<const Plan> plan_;
  const std::byte* arena_ = nullptr;
  std::vector<std::unique_ptr<Step>> steps_;  // null for dynamic ones
  std::vector<Pointers> step_pointers_;
  std::vector<std::byte*> pointers_;  // by root tensor
  std::vector<Tensor> dynamic_;
  std::vector<Tensor> inputs_;  // aligned copies of inputs that were not
  std::vector<Tensor> results_, own_results_;
  double busy_ = 1;  // processor time of a run's wall time, when it was read last
  int unread_ = 0;   // timed runs until it is read again
};

}  // namespace lamina
