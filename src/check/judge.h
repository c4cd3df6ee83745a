#pragma once
/// Rewriting by itself: the interpreter on a graph against the interpreter on what became of it.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check/difference.h"
#include "graph/graph.h"

namespace lamina::checking {

/// A value that both graphs have.
struct ValueCheck {
  std::string name;     ///< in bodies behind the name of what runs them: "loop/x"
  std::string made_by;  ///< operators of the rewritten graph: "Convolution+Relu"
  std::string problem;  ///< why the rewritten graph can not make it
  Difference difference;
  bool ok() const { return problem.empty() && difference.within; }
};

struct JudgeOptions {
  /// Called for each node of the rewritten graph with a piece that holds a copy of it, and with what the
  /// interpreter gave it and got from it.
  std::function<void(NodeId node, const Graph& piece, NodeId copy, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& outputs)>
      observe;
  std::function<void(std::size_t done, std::size_t all)> progress;
  /// Values of the rewritten graph that the caller wants: names are given, tensors are set.
  std::map<std::string, Tensor>* keep = nullptr;
};

struct Judgement {
  std::vector<ValueCheck> values;
  std::vector<Tensor> results;  ///< of the original
  bool clean() const;
};

/// Runs each piece of the rewritten graph (check/pieces.h) on the original's own values and compares what it
/// makes, results and values in between. Nothing differs but by roundings to f32, so limits are tight: 2^-20
/// of the largest element, and beyond that what roundings on both sides may change (check/interval.h): a
/// level where a quantiser stands next to a border, sums that cancel. Bodies of loops and branches are judged
/// by themselves, on each of the first 8 turns and then on turns 16, 32, ...
Judgement judge_rewriting(const Graph& original, const std::vector<Tensor>& inputs, const Graph& rewritten,
                          const JudgeOptions& options = {});

}  // namespace lamina::checking
