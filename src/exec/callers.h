#pragma once
/// The inputs and the memory for results that the caller of a request sets, and checks of them.
#include "exec/program.h"

namespace lamina {

/// Inputs and memory for results. Not thread-safe.
class CallersTensors {
 public:
  explicit CallersTensors(std::shared_ptr<const Program> program);

  /// Sets an input; an invalid tensor removes it. Throws Error(bad_input) for a tensor that does not fit.
  void set_input(std::size_t index, Tensor tensor);
  void set_result(std::size_t index, Tensor tensor);
  /// Throws Error(bad_input) for what is missing or overlaps, Error(unsupported) on the wrong machine.
  void check();

  /// True if the memory is that of one of these tensors: a result may have been set as an input since.
  bool overlap(const Tensor& memory) const;

  /// The inputs of the model, then the values of variables, which other code puts there.
  std::vector<Tensor>& inputs() {
    sorted_ = false;
    return inputs_;
  }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& results() const { return results_; }

 private:
  void check_memory(std::size_t r, const Tensor& memory) const;
  /// Memory of an output, which no other tensor may overlap, or of an input.
  struct Occupied {
    const std::byte* begin;
    const std::byte* end;
    const std::byte* reach;  ///< where all up to this one end
    bool is_result;
    std::size_t index;
  };
  const std::vector<Occupied>& occupied() const;
  void check_overlaps() const;
  [[noreturn]] void refuse_overlap(const Occupied& a, const Occupied& b) const;

  std::shared_ptr<const Program> program_;
  std::vector<Tensor> inputs_, results_;
  bool apart_ = false;                      // no memory for a result overlaps something else that was set
  mutable std::vector<Occupied> occupied_;  // by address; kept so that the next run need not allocate
  mutable bool sorted_ = false;
};

/// Throws Error(bad_input) unless the memory has exactly the type and shape of result `r`.
void check_result_memory(const Program& program, std::size_t r, const Tensor& memory,
                         const TensorType& wanted);

/// The inputs of the last run, as far as plans depend on them. Not thread-safe.
class KnownInputs {
 public:
  /// True if nothing on which plans depend has changed since the last call.
  bool same(const Program& program, const std::vector<Tensor>& inputs);

 private:
  struct Known {
    ElementType type = ElementType::undefined;
    Dims shape;
    Tensor values;  ///< where shapes depend on them
  };
  std::vector<Known> known_;
};

}  // namespace lamina
