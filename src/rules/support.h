#pragma once
/// What several rules need: constants as numbers, how an operand spreads over a tensor, epilogues.
#include <optional>
#include <vector>

#include "ops/eval.h"
#include "rewrite/rule.h"

namespace lamina {

/// The one value that all elements of a constant have; nothing for other constants, values and empty tensors.
std::optional<double> uniform_value(const Graph& graph, ValueId value);
/// The element of a constant that has one only: it cannot enlarge a dimension of what it meets.
std::optional<double> single_value(const Graph& graph, ValueId value);
/// A constant integer operand's elements.
std::optional<Ints> constant_ints(const Graph& graph, const Node& node, std::size_t input);
bool has_input(const Node& node, std::size_t input);
bool all_are(const Ints& list, std::int64_t number);
/// A reduction whose result has as many axes as what it reads.
template <class Reduce>
bool keeps_dims(const Graph&, const Node& node) {
  return node.op.as<Reduce>()->keep_dims && node.bodies.empty();
}
/// The order of a Transpose, one number per axis of what it reads; nothing where it or the rank is not known.
std::optional<Ints> transpose_order(const Graph& graph, const Node& transpose);

/// An operand that broadcasts to `target` without making it larger: provably, whatever unknown sizes turn out
/// to be.
Verdict does_not_grow(const std::string& label, const Shape& operand, const Shape& target);
/// The operand has one element, or one per index of `axis` of the target, by numpy's alignment. `what`:
/// "channel".
Verdict one_per_channel(const std::string& label, const Shape& operand, const Shape& target,
                        std::size_t axis);
/// The elements of such an operand: `channels` numbers.
std::vector<double> per_channel(const Tensor& operand, std::size_t channels);
/// Shape with `rank` dimensions of 1 and `size` at `axis`.
Dims along_axis(std::size_t rank, std::size_t axis, std::size_t size);

/// Provably one shape for tensors with the same number of elements: a single size may be unknown.
bool same_shape_of_same_count(const Shape& a, const Shape& b);
/// A pattern for Reshape that gives `shape`, with at most one -1; nothing when more is unknown.
std::optional<Ints> reshape_pattern(const Shape& shape);
Tensor ints_tensor(const Ints& values);

/// A convolution, matrix product or pooling, whose epilogue element-wise operators behind it may join.
bool is_host(const Node& node);
/// Convolution, ConvolutionBackpropData or MatMul.
bool has_weights(const Node& node);
/// True if the node gives the same elements in another shape or order: each element arrives once.
bool moves_elements(const Node& node);

/// Goes up from what makes a value, along first inputs, past at most so many nodes. `at` gives the answer at
/// a node and the value that it makes, or nothing: then it goes on. No where there is no answer.
template <class At>
bool search_up(const Graph& graph, ValueId from, std::size_t most, const At& at) {
  auto v = from;
  for (std::size_t passed = 0; passed < most && v.valid(); ++passed) {
    const auto maker = graph.producer(v);
    if (!maker.valid()) return false;
    const Node& n = graph.node(maker);
    if (const std::optional<bool> answer = at(n, v)) return *answer;
    if (n.inputs.empty()) return false;
    v = n.inputs[0];
  }
  return false;
}

/// Axis of the output channels of a convolution (1) or matrix product (the last).
std::size_t channel_axis(const Graph& graph, const Node& host);
/// The number of output channels when it is known.
std::optional<std::size_t> channel_count(const Graph& graph, const Node& host);

/// A new node: `host` with the element-wise node `stage` behind its epilogue. Input `running` of the stage is
/// the host's result. Constants move into the body; other operands become extra inputs of the node.
NodeId append_stage(Rewrite& r, NodeId host, NodeId stage, std::size_t running);
/// Several stages, each after the one before it.
struct NextStage {
  NodeId node;
  std::size_t running = 0;
};
NodeId append_stages(Rewrite& r, NodeId host, const std::vector<NextStage>& stages);
/// Index of the input of `node` that is the value.
std::size_t slot_of(const Node& node, ValueId value);

/// Whether a number depends on the sign of a 0 there: 1 / x and the like. Results of the model count as
/// numbers. (remove_identity.cc)
bool sign_of_zero_matters(const Graph& graph, ValueId value);

/// The value would become an output that is an input at the same time.
Verdict output_stays_apart(const Match& match, ValueId from, ValueId to);

}  // namespace lamina
