#pragma once
/// The tensors of a plan that is being built: a value may be there in several layouts.
#include <map>

#include "plan/subviews.h"

namespace lamina {

/// A new tensor of the plan for the value, in the arena.
std::uint32_t add_tensor(Plan& plan, ValueId value, Layout layout);
/// A step that copies one tensor into another, perhaps of another layout.
void add_move(Plan& plan, PlanStep::Kind kind, const std::string& name, std::uint32_t from, std::uint32_t to,
              double cost);

class Tensors {
 public:
  Tensors(Plan& plan, WeightStore& weights, const Machine& machine);
  /// Adds the graph's inputs that a node reads.
  void add_inputs();
  /// Adds the tensors that the kernels write; subviews are placed inside their tensors.
  void add_outputs(const std::vector<Picked>& picked, const Subviews& subviews);
  /// A value whose shape is known when it is made.
  std::uint32_t add_dynamic(ValueId value);

  /// The tensor that holds a value in that layout. Where there is none it is made: of the constant, or by a
  /// reorder behind the steps that the plan has.
  std::uint32_t of(ValueId value, Layout layout);
  /// `tensor` is the same memory as `other`.
  void alias(std::uint32_t tensor, std::uint32_t other);

 private:
  std::uint32_t add(ValueId value, Layout layout);
  std::uint32_t add_constant(ValueId value, Layout layout);

  Plan& plan_;
  WeightStore& weights_;
  const Machine& machine_;
  std::map<std::pair<ValueId, Layout>, std::uint32_t> made_;
};

}  // namespace lamina
