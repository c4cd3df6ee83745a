#pragma once
/// Problems for kernels: one line of text describes one node, with what follows it.
///
///   conv x=f32[1,64,56,56] w=f32[64,64,3,3] pads=1 bias relu
///   conv x=u8[1,64,56,56] w=i8[64,64,3,3] pads=1 requantise   # in integers
///   binconv x=f32[1,64,56,56] w=u1[64,64,3,3] pads=1       # of signs; pad_value=-1, 0 or 1
///   matmul a=f32[128,256] b=f32[256,1024] bias gelu        # b is constant; `variable`: it is not
///   pool max x=f32[1,64,112,112] kernel=3 strides=2 pads=1
///   pair x=f32[1,16,112,112] w=f32[96,16,1,1] bias between=clamp window=3 strides2=2 pads2=1 clamp
///                                           # a convolution and a depthwise one; `separate`: two nodes
///   eltwise Add a=f32[1,64,56,56] b=f32[1,64,1,1]          # any operator by its name
///
/// Lists are written 1x2 or 1,2; one number stands for all spatial axes. problem.cc has a line per kind.
/// Words at the end append operators: relu, clamp, hswish, hsigmoid, sigmoid, swish, gelu, tanh, elu, mish,
/// sum (a tensor of the same shape), scale (one factor per channel), requantise (sums of integers to u8).
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina::bench {

/// The graph, rewritten by all rules: mostly one node. Throws Error(bad_option) for a line that is no
/// problem.
Graph graph_of(const std::string& line);

/// The lines of files; what follows # is a comment.
std::vector<std::string> read_problems(const std::vector<std::string>& files);

/// The line for a node of a rewritten graph; empty when there is no kind of problem for it.
std::string describe(const Graph& graph, NodeId node);

/// The lines of a model, each once, in the order of its nodes. Unknown sizes of inputs
/// are those of the arrays in MODEL.npz where that file is, else 1.
std::vector<std::string> problems_of_model(const std::string& file);

/// Operations of a node: two per multiply-add of convolutions and products; else elements of the output, or
/// of the input if that is larger, times the operators that are fused.
double flops_of(const Graph& graph, NodeId node);
/// Bytes of all inputs and outputs, once each.
double bytes_of(const Graph& graph, NodeId node);

}  // namespace lamina::bench
