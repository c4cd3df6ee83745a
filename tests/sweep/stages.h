#pragma once
/// Epilogues of the sweep's cases: their text, their operands, and what they make of a number, computed by
/// themselves in doubles.
#include <string>
#include <vector>

#include "lamina/tensor.h"

namespace lamina::sweep {

/// A number and how far off a right result may be.
struct Expected {
  double value = 0, error = 0;
};

/// Words: relu, clamp, hswish, hsigmoid, sigmoid, swish, gelu, tanh, elu, mish, abs, negative; half and plus
/// (a number), scale, shift and prelu (per channel), sum, minus and times (a tensor of the result's shape),
/// to_bf16, to_u8 and to_i8 (last).
bool is_stage(const std::string& word);
const std::vector<std::string>& all_stages();
/// Words that read a tensor of the result's shape, an input of the node.
bool reads_tensor(const std::string& word);
/// Words that read a number per channel; the last axis of `y` has the channels of a matrix product.
bool reads_channels(const std::string& word);

/// The statements of one stage: `to` = word(`from`). `dims`: of the result with all but channels 1, `extra`:
/// the parameter that it reads. Constants have no numbers yet: numbers_of() has them, in order.
std::string text_of(const std::string& word, const std::string& from, const std::string& to,
                    const std::string& channel_dims, const std::string& extra);
/// The constants of one stage.
std::vector<Tensor> constants_of(const std::string& word, const Dims& channel_dims, std::uint64_t seed);

/// What the stage makes of it; `operand`: the number that it reads of a tensor.
Expected applied(const std::string& word, Expected x, double operand);
/// The element type of what it makes.
ElementType type_behind(const std::string& word, ElementType before);

}  // namespace lamina::sweep
