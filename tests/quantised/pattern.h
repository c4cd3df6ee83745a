#pragma once
/// The pattern of quantised inference, as graphs that nobody has fused yet: Dequantize of source and weights,
/// a product, a bias, arithmetic behind it, and what is stored.
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"

namespace lamina::testing {

/// How a product is written, its sizes small.
struct Kernel {
  std::string name, op, attributes;
  Dims x, w, y;
  std::size_t outputs;           ///< the axis of the weights along which results lie
  std::size_t products;          ///< in a sum, at most
  bool constant_weights = true;  ///< false: both operands are given at run time
};
const std::vector<Kernel>& kernels();

enum class Weights : std::uint8_t { s8, s8_zero, u8_zero, s8_given, quantised, quantised_given };
enum class Operand : std::uint8_t { none, tensor, channel, full, dequantised };

/// An operator of the epilogue: unary ones have no operand.
struct Step {
  std::string op;
  Operand operand = Operand::none;
  bool swapped = false;  ///< the operand comes first
};
std::string in_words(const Step& step);
/// All of them, each with each kind of operand.
const std::vector<Step>& steps();

enum class Stored : std::uint8_t { as_it_is, converted, quantised };

struct Pattern {
  std::size_t kernel = 0;
  ElementType source = ElementType::u8;
  bool source_zero = false;
  Weights weights = Weights::s8;
  bool weights_by_channel = false;
  ElementType bias = ElementType::undefined;  ///< undefined: none
  bool bias_is_added = false;                 ///< by an Add, no input of the product
  bool bias_is_given = false;                 ///< at run time
  ElementType cast = ElementType::f32;        ///< the type in which the product computes
  std::vector<Step> epilogue;
  Stored stored = Stored::as_it_is;
  ElementType destination = ElementType::u8;  ///< converted: a floating-point type
  bool destination_zero = false, destination_by_channel = false;
  double step = 0.1;           ///< the scale of what is stored
  bool powers_of_two = false;  ///< all scales are: sums in f32 are exact, ties are ties
  bool extreme = false;        ///< integers are the least and the largest of their types
  std::uint64_t seed = 1;
};
/// The product of integers alone, with i32 sums: of what stands before the epilogue.
std::string sums_of(const Pattern& p);
/// In the text form.
std::string text_of(const Pattern& p);
/// In a few words.
std::string in_words(const Pattern& p);

/// Integers over their whole range, or mostly the largest; floats between -2 and 2, from 0.5 on where the
/// input's name begins with "divisor".
std::vector<Tensor> pattern_inputs(const Graph& graph, const Pattern& p);

}  // namespace lamina::testing
