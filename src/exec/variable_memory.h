#pragma once
/// The values of variables between the runs of a request.
#include "exec/program.h"

namespace lamina {

/// The model's inputs followed by the values of its variables (the kept values, or else the initial ones), as
/// Program::plan takes them.
std::vector<Tensor> with_variables(const std::shared_ptr<const Program>& program, std::vector<Tensor> inputs,
                                   const VariableValues& kept = {});

/// Not thread-safe. A call that throws changes nothing.
class VariableMemory {
 public:
  explicit VariableMemory(std::shared_ptr<const Program> program);

  bool empty() const { return kept_.empty(); }
  /// A copy of the variable's value before the next run; an invalid tensor if it is computed from the inputs
  /// then.
  Tensor get(std::size_t index) const;
  /// Copies the value. Throws Error(bad_input) when it does not fit.
  void set(std::size_t index, const Tensor& value);
  /// Gives all variables their initial values again.
  void reset();

  /// Appends the values to the model's inputs before a run.
  void begin(std::vector<Tensor>& inputs) const;
  /// Keeps the results after a run, of all variables or of none.
  void keep(const std::vector<Tensor>& results);

 private:
  std::shared_ptr<const Program> program_;
  std::vector<Tensor> kept_;   // memory of their own; invalid: the initial value
  std::vector<Tensor> fresh_;  // what replaces them
};

}  // namespace lamina
