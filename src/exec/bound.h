#pragma once
/// A bound plan: steps with their pointers to memory.
#include <unordered_map>

#include "plan/plan.h"

namespace lamina {

/// One stream's steps of one plan. It holds only addresses of the running request's memory, and the results
/// of this run, which end_run() releases. Not thread-safe.
class Bound {
 public:
  explicit Bound(std::shared_ptr<const Plan> plan);

  const std::shared_ptr<const Plan>& plan() const { return plan_; }

  // Before each run: where its tensors lie, then bind().
  /// `arena`: of plan()->memory.arena bytes at least.
  void point_arena(const std::byte* arena);
  /// Sets the pointers of the plan's inputs and results; inputs that it does not read, and results that it
  /// does not make, are skipped.
  void point_input(std::size_t i, const Tensor& input);
  void point_result(std::size_t r, const Tensor& memory);
  /// Binds the steps whose pointers have changed. After an exception they are bound the next time.
  void bind();

  void run_step(std::size_t s);
  /// True if the step is estimated to take so long that reading a clock costs nothing in comparison.
  bool is_long(std::size_t s) const { return long_[s] != 0; }
  std::size_t steps() const { return steps_.size(); }

  /// A tensor of the plan as the caller sees it, until end_run().
  Tensor tensor(std::uint32_t t) const;
  void end_run() noexcept;

 private:
  /// Positions where the lists of a step begin.
  struct Lists {
    std::size_t in, out;
  };
  void point(std::uint32_t tensor, const void* to);
  void all_stale();
  void bind_step(std::size_t s);
  void run_dynamic(const PlanStep& step);

  std::shared_ptr<const Plan> plan_;
  std::vector<std::unique_ptr<Step>> steps_;  // null for dynamic ones
  std::vector<std::uint8_t> long_;            // by step: the plan's own are far apart in memory
  const std::byte* arena_ = nullptr;
  std::vector<std::byte*> pointers_;  // by root tensor
  std::vector<Lists> lists_;          // by step
  std::vector<const void*> in_;       // of all steps
  std::vector<void*> out_;
  /// Steps that read or write a tensor in the caller's memory, by the tensor's root.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> users_;
  std::vector<bool> stale_;  // steps to be bound
  bool any_stale_ = true;
  std::vector<Tensor> aligned_;                     // copies of inputs that were not
  std::unordered_map<std::uint32_t, Tensor> made_;  // dynamic tensors of this run
};

}  // namespace lamina
