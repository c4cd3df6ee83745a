#pragma once
/// Runs a program for a request.
#include "base/cancellation.h"
#include "exec/program.h"
#include "exec/step_counts.h"
#include "exec/stream.h"

namespace lamina {

/// Runs a program for a request. It has inputs, results and variables of its own; steps and
/// the memory between them belong to the stream of a run. One run at a time per runner; several may run at
/// once on streams of theirs. A run that throws leaves inputs, variables and the caller's memory for results
/// set as they were, and no results; the next one begins anew.
class Runner {
 public:
  explicit Runner(const std::shared_ptr<const Program>& program);
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  /// Inputs in the order of the model's inputs; an invalid tensor: none. They must stay unchanged during
  /// run(). Throws Error(bad_input) for a tensor that does not fit.
  void set_input(std::size_t index, Tensor tensor);
  /// Memory for a result; an invalid tensor: the runner's own. Throws Error(bad_input) where type, shape or
  /// address cannot fit; run() does where they do not fit these inputs, or where it overlaps other memory.
  void set_output(std::size_t index, Tensor tensor);
  /// The inputs that were set, followed by the variables' tensors of the last run, which may hold newer
  /// values.
  const std::vector<Tensor>& inputs() const;
  /// Runs on the stream. The signal can stop the run, which then throws Error(canceled); null: nobody can
  /// stop it. Throws Error(over_limit) if the run takes longer than the program's options allow.
  void run(Stream& stream, const StopSignal* signal = nullptr);
  /// Runs in the calling thread, with helpers of its own.
  void run() { run(own_stream()); }
  Stream& own_stream();
  /// Throws Error(bad_input) for what is missing or overlaps, as run() does before it begins.
  void check() const;
  /// Drops the results until the next run, as after a run that failed.
  void forget() noexcept;
  /// An output of the last run, invalid when there was none or it failed. Valid until the next run, unless
  /// cloned.
  const Tensor& output(std::size_t index) const;
  /// An output of the last run that the next runs leave alone: they write into other memory. Afterwards
  /// output() is invalid until the next run.
  Tensor take_output(std::size_t index);

  /// The value of a variable (by its place in Program::variables) before the next run, to keep; an invalid
  /// tensor if it is computed from the inputs then.
  Tensor variable(std::size_t index) const;
  /// Copies the value. Throws Error(bad_input) when it does not fit.
  void set_variable(std::size_t index, const Tensor& value);
  /// All variables have their initial values again.
  void reset_variables();

  /// Plans of the last run: its own and those of parts whose shapes were found while running.
  std::vector<std::shared_ptr<const Plan>> plans() const;
  /// The chain of each of the last plans that counts() counts, the latest first.
  std::vector<PlanChain> counted_plans() const;
  /// Bytes between steps that the last run took of its stream's memory.
  std::size_t arena_bytes() const;
  /// Times every step while on.
  void profile(bool on);
  std::vector<StepTime> times() const;
  /// Counts of all successful timed runs since the last one that was not timed, whatever their plans.
  std::vector<StepCount> counts() const;

 private:
  class State;
  std::unique_ptr<State> state_;
  std::unique_ptr<Stream> stream_;  // of its own, made when it is asked for
};

}  // namespace lamina
