#pragma once
/// Cases of the sweep: a layer with its sizes, its epilogue and the seed of its numbers, as one line of text.
///
///   conv f32 x=1,64,56,56 w=64,64,3,3 strides=2,2 begin=1,1 end=1,1 bias relu sum seed=7
///   deconv f32 x=1,512,4,4 w=512,16,4,4 strides=2,2 begin=1,1 end=1,1 bias
///   matmul u8 x=3,5,64 w=64,33 tb given scale to_u8
///   graph (x: f32[1,16,9,9]) -> (y) { ; y = AvgPool(x) kernel=[3,3] ; }
///
/// `given`: weights and bias come at run time. Words for the epilogue are in stages.h. Weights of `conv` are
/// [O, I/groups, ...], of `deconv` [I, O/groups, ...].
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"

namespace lamina::sweep {

enum class Kind { convolution, deconvolution, product, graph };

struct Case {
  Kind kind = Kind::convolution;
  ElementType type = ElementType::f32;  ///< f32, bf16, u8 or i8
  Dims x, w;
  Ints strides, dilations, begin, end, padding;  ///< one per spatial axis; padding: output_padding
  std::int64_t groups = 1;
  bool bias = false, given = false, transpose_x = false, transpose_w = false;
  std::vector<std::string> stages;
  std::uint64_t seed = 1;
  std::string text;  ///< of Kind::graph
};

std::string to_line(const Case& c);
/// Throws Error(bad_option) for a line that is no case.
Case case_of(const std::string& line);

/// "conv f32", "matmul u8", "AvgPool": what cases are counted by.
std::string family_of(const Case& c);

/// Sizes of the result; empty where the sizes do not fit each other, or the result would have no elements.
Dims result_of(const Case& c);
/// Products that each element of the result sums.
std::int64_t depth_of(const Case& c);
/// Multiply-adds of the whole, and bytes of all tensors.
double work_of(const Case& c);
double bytes_of(const Case& c);

/// What cases may take.
struct Bounds {
  double work = 4e8, bytes = 1.5e8;
};

/// A case of that family ("conv", "deconv", "matmul" or "other") at random.
Case random_case(SplitMix& random, const std::string& family, ElementType type, const Bounds& bounds);
/// Cases at the edges: channels that are multiples of blocks, and one more or less, for some windows.
std::vector<Case> edge_cases(const std::string& family, ElementType type, const Bounds& bounds);

}  // namespace lamina::sweep
