#pragma once
/// Control flow, state, and operators that nobody knows.
///
/// Bodies are graphs of their own; what they capture from outside are inputs of the node. Node::bodies holds
/// them.
#include "ops/eval.h"

namespace lamina {

/// Runs one of two bodies. Inputs: condition (one element), then captured values.
/// Bodies: [then, else]; the parameters of EACH are all captured values in order (unused ones stay unused),
/// the results of each are the node's outputs in order.
struct If {
  static constexpr OpInfo info{"If", 1, kMany, kMany, Trait::control_flow, "Runs one of two bodies", 8};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Every loop: ONNX Loop and Scan, OpenVINO Loop and TensorIterator.
///
/// Inputs (S = number of slice_axes, C = carried):
///   - 0: trip count, one integer; absent or negative: no limit
///   - 1: first condition, one boolean; absent: true
///   - C initial values of what is carried from iteration to iteration
///   - S values that are sliced, one slice an iteration
///   - captured values, the same in every iteration
///
/// Body parameters: iteration (one integer), condition (one boolean), then carried, slices and captured in
/// the order of the inputs. Iteration and condition are always there; they keep the element type and shape
/// that the body declares (i64 and boolean scalars unless it says [1] or another integer type).
///
/// Body results: condition to go on (one boolean; a constant true where there is none), carried (C), values
/// of the last iteration (`last`), values to concatenate (the rest: one per concat_axes).
///
/// Outputs: final carried, values of the last iteration, concatenated values. With no iteration at all,
/// carried outputs are the initial values, last ones zeros, concatenated ones have size 0 on their axis.
///
/// A slice keeps its axis, `slice_part_sizes` long: readers add a Squeeze to the body where the format drops
/// it. Likewise a concatenated value has its axis: readers add an Unsqueeze where the format stacks. The
/// number of iterations is that of the slices, which must agree, cut by the trip count and by the condition.
///
/// Starts and ends are as in OpenVINO: negative ones count from the end, -1 being one past it (stride > 0:
/// start 0, end -1 is all; stride < 0: start -1, end 0 is all, backwards); empty lists are these defaults. A
/// stride is part_size or -part_size.
struct Loop {
  static constexpr OpInfo info{"Loop", 2, kMany, kMany, Trait::control_flow, "Runs a body repeatedly", 5};
  std::int64_t carried = 0, last = 0;
  Ints slice_axes, slice_starts, slice_ends, slice_strides, slice_part_sizes;
  Ints concat_axes,
      concat_strides;  ///< strides: negative for the first iteration at the end; empty: all forwards
  template <class V>
  void visit(V& v) {
    v("carried", carried);
    v("last", last);
    v("slice_axes", slice_axes);
    v("slice_starts", slice_starts);
    v("slice_ends", slice_ends);
    v("slice_strides", slice_strides);
    v("slice_part_sizes", slice_part_sizes);
    v("concat_axes", concat_axes);
    v("concat_strides", concat_strides);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Reads a variable: its value before the run, whatever the run assigns. Before anything was assigned that is
/// the initial value. Who runs a graph keeps the variables (exec/variables.h, InterpreterOptions); evaluated
/// by itself it gives the initial value. Inputs: initial value (optional: zeros; sizes that are not known are
/// 0). The variable may hold what variable_type and variable_shape say, or without them (opset 3) what the
/// initial value is.
struct ReadValue {
  static constexpr OpInfo info{"ReadValue", 0, 1, 1, Trait::impure, "Reads a variable", 3, OpFamily::control};
  std::string variable_id;
  Shape variable_shape;
  ElementType variable_type = ElementType::undefined;
  template <class V>
  void visit(V& v) {
    v("variable_id", variable_id);
    v("variable_shape", variable_shape);
    v("variable_type", variable_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Writes a variable, for the next run, and passes the value through. Inputs: value.
struct Assign {
  static constexpr OpInfo info{
      "Assign", 1, 1, 1, Trait::impure | Trait::selects, "Writes a variable", 3, OpFamily::control};
  std::string variable_id;
  template <class V>
  void visit(V& v) {
    v("variable_id", variable_id);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// An operator of a file that lamina does not have. Its outputs have unknown types; it cannot be evaluated.
struct Opaque {
  static constexpr OpInfo info{
      "Opaque", 0, kMany, kMany, Trait::impure, "An operator that is not known", 0, OpFamily::unknown};
  std::string domain, type, version;
  Strings attributes;  ///< "name=value"
  template <class V>
  void visit(V& v) {
    v("domain", domain);
    v("type", type);
    v("version", version);
    v("attributes", attributes);
  }
  std::string display_name() const { return type; }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
