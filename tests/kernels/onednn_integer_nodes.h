#pragma once
/// Products of u8 and i8 with the epilogues of quantised networks behind them, as the text of a node: what
/// tests of oneDNN's kernels for integers are made of.
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"

namespace lamina::testing {

/// What runs behind the sums s: floats r, then what is stored. {C} stands for the shape of one number per
/// channel, {M} and {B} for such factors and biases, which leave results within some hundreds.
struct Epilogue {
  std::string floats, stored;  // "" and "": the sums; only floats: these
  double scale = 1;            // of Quantize
  bool exact = false;          // all numbers are: results are the very same
  std::string second = "";     // type of a second tensor p
};

struct Host {
  std::string x, w, attributes, y;  // shapes; "given 5,7": weights of that shape come at run time
  std::int64_t depth;               // products in a sum
  bool rows = false;                // a matrix product
  bool transposed = false;          // a transposed convolution
};

/// How operands are given.
struct Operands {
  std::string x = "u8", w = "i8", zero = "_", weights_zero = "_";
};

extern const std::vector<Epilogue> kEpilogues;
extern const std::vector<Host> kConvolutions, kProducts;
extern const std::vector<Operands> kOperands;

/// A graph of one node; without what it stores its result is r.
std::string text_of(const Host& host, const Operands& operands, const Epilogue& epilogue, bool with_stored);
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// Weights and inputs of 8 bits over their whole range; zero points, which are single numbers or written out,
/// stay.
std::vector<Tensor> widen(Graph& g, std::uint64_t seed);

/// oneDNN's instructions may be limited from outside; then it offers nothing.
bool multiplies_here();

}  // namespace lamina::testing
