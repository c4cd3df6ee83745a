#pragma once
/// What roundings alone do to a model's results on some inputs.
#include <vector>

#include "graph/graph.h"

namespace lamina::checking {

struct NoiseOptions {
  /// How far sums may be off, as a share of the numbers of their tensor. The default is about 16 times what
  /// another order of f32 sums changes, so that few runs show what many would.
  double rounding = 0x1p-16;
  int runs = 4;
};

/// Results of runs with such noise.
struct NoisyRuns {
  std::vector<std::vector<Tensor>> results;  ///< by run; a result that a run did not reach is invalid
  /// By result: how far one level of the quantiser before it moves an element, by itself or through
  /// activations and Softmax; 0 where other arithmetic lies between, or there is no quantiser.
  std::vector<double> steps;
};

/// Runs the graph several times by reference evaluation, bodies included. Every float that is computed from
/// the inputs moves up or down at random: sums and what mixes elements by a share of the tensor's root mean
/// square, element-wise functions and Softmax by a share of each element. What is only chosen or moved,
/// levels, whole numbers and shapes stay. Where a number stands beside the border of two levels, or two
/// scores are nearly equal, runs decide differently, and all that follows shows what that changes. The same
/// seed for the same graph: results are always the same.
NoisyRuns run_with_noise(const Graph& graph, const std::vector<Tensor>& inputs,
                         const NoiseOptions& options = {});

}  // namespace lamina::checking
