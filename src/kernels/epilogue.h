#pragma once
/// An epilogue body as a chain of stages, for kernels that apply one after the other to their accumulator.
#include <optional>
#include <vector>

#include "kernels/kernel.h"

namespace lamina {

/// How integers of 8 bits stand for numbers: (x - zero_point) * scale.
struct Dequantized {
  float scale = 1, zero_point = 0;
};

/// The scale and zero point of a Quantize to u8 or i8, or of a Dequantize of these; nothing where they are
/// several or no constants.
std::optional<Dequantized> steps_of(const Graph& body, const Node& node);

/// One element-wise operator whose running value is the result of the stage before.
struct Stage {
  const Node* node = nullptr;  ///< in the body
  std::size_t running = 0;     ///< which input of the node is the running value
  /// For binary operators the other operand: a constant of the body, or extra input `extra` of the node.
  const Tensor* constant = nullptr;
  std::optional<std::size_t> extra;  ///< index into the compute node's inputs
  /// Type of the extra input, if the body converts it to the type of the running value first.
  ElementType operand_element = ElementType::undefined;
  /// Where it does that by scale and zero point: (x - zero_point) * scale, one of each.
  std::optional<Dequantized> dequantized;
  Dims operand_dims;    ///< of the other operand
  std::size_t end = 0;  ///< operators of the body up to this one, in their order
};

/// The stages in order, or nothing when the body is not a chain (a value read twice, two extra operands,
/// ...).
std::optional<std::vector<Stage>> chain_of(const Node& node);

/// The number of a tensor that has one.
std::optional<float> single_number(const Tensor* tensor);

/// Number of operators in the node's epilogue; 0 without one.
std::size_t epilogue_size(const Node& node);

/// What an operator of an epilogue costs one of oneDNN's kernels, on one thread.
Cost stage_cost(const Machine& machine, const Op& op, std::size_t elements);
/// Cost of a stage in a later node of element-wise stages, which run on our kernels.
Cost later_stage_cost(const Machine& machine, const Op& op, std::size_t elements);

}  // namespace lamina
