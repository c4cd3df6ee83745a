#pragma once
/// How an operator looks with its axes permuted: what rules ask that move Transposes.
///
/// A node reads its input 0 through a Transpose, y = f(transpose(x, order), ...): axis k of input 0 is axis
/// order[k] of x. The operator's hook `permute` says which g, with which operands, gives the same from x:
/// y = transpose(g(x, ...), output order). It refuses with a sentence where there is no such operator or
/// where too little is known.
#include <vector>

#include "graph/infer.h"

namespace lamina {

/// What becomes of one operand of the node.
struct PermutedInput {
  enum class Kind : std::uint8_t {
    same,      ///< stays
    permuted,  ///< seen under `shape` (if it is ranked), filled up with ones in front, transposed as x is
    replaced,  ///< by `value`
  };
  Kind kind = Kind::same;
  Shape shape;
  Tensor value;
};

/// The node on x itself.
struct Permuted {
  Op op;
  std::vector<PermutedInput> inputs;  ///< input 0 is always `permuted`: its place is x's
  std::vector<Ints> outputs;  ///< per output: axis k of the old one is axis outputs[i][k] of the new one
};

class PermuteContext {
 public:
  /// `order`: a permutation of the axes of the node's input 0, whose rank must be known.
  PermuteContext(const InferContext& node, Ints order);

  // What there is. Types and known values are those of the node as it stands.
  const InferContext& node() const { return node_; }
  std::size_t rank() const { return order_.size(); }
  const Ints& order() const { return order_; }
  /// The position in x of an axis of input 0; negative ones count from the end.
  std::int64_t axis(std::int64_t axis, std::string_view what = "axis") const;
  Ints axes(const Ints& axes) const;
  /// A list with a number for each axis of input 0, in the order of x's axes.
  Ints per_axis(const Ints& list) const;

  // The answer. What is not set stays as it is; outputs are permuted as input 0 is.
  void set_op(Op op) { made_.op = std::move(op); }
  /// The operand's axes are those of input 0, the last one's with the last one, as in numpy's broadcasting.
  Verdict follow(std::size_t input) { return follow_as(input, node_.shape(input)); }
  /// follow() for an operand that the operator sees under another shape.
  Verdict follow_as(std::size_t input, const Shape& shape);
  void replace(std::size_t input, Tensor value);
  void replace(std::size_t input, const Ints& list);
  /// The operator with its field `axis` where that axis lies in x.
  template <class T>
  Verdict move_axis(T op) {
    op.axis = axis(op.axis);
    set_op(op);
    return Verdict::yes();
  }
  /// An input that lists axes; the result is in the same order.
  Verdict move_axes_input(std::size_t input);
  void set_output(std::size_t output, Ints order) { made_.outputs.at(output) = std::move(order); }
  /// The outputs keep the axes of input 0 that are not marked, in their order.
  void drop_axes(const std::vector<bool>& dropped);

  Permuted& result() { return made_; }

 private:
  const InferContext& node_;
  Ints order_;
  Permuted made_;
};

inline Verdict not_known(std::string_view what) { return Verdict::no("its {} are not known", what); }

/// What element-wise operators have without a hook: all operands broadcast but the parameters of unary
/// operators, which stay as they are.
Verdict permute_elementwise(PermuteContext& c);

/// The node as it is when it reads x = transpose(input 0, inverse of `order`) instead of input 0.
struct PermutedNode {
  Verdict verdict = Verdict::yes();
  Permuted made;
};
PermutedNode permuted(const Graph& graph, const Node& node, const Ints& order);

}  // namespace lamina
