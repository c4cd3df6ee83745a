#pragma once
/// Runs a graph through plan and kernels and compares with the interpreter.
#include <gtest/gtest.h>

#include "base/random.h"
#include "exec/runner.h"
#include "exec/single_step.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "kernels/epilogue.h"
#include "ops/eval.h"
#include "ops/operators.h"
#include "rules/optimize.h"

namespace lamina::testing {

Graph parse(const std::string& text);

/// Constants as slices of a file may lie: at odd addresses; those of bodies, too.
void unalign_constants(Graph& graph);

/// LAMINA_SEED (make soak) moves all seeds.
std::vector<Tensor> random_inputs(const Graph& graph, std::uint64_t seed);

/// Floats as far off as kernels may be, everything else equal.
void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what);

struct RunResult {
  std::vector<Tensor> outputs;
  std::vector<std::string> labels;  ///< of the steps of all plans
};
RunResult run_graph(const Graph& graph, const std::vector<Tensor>& inputs, int threads = 2);

/// How run_offer runs one.
struct OfferRun {
  int threads = 1;
  ModelWeights* weights = nullptr;  ///< what several offers share; null: each packs its own
  std::size_t shift = 0;            ///< as run_single_step has it
};
/// The outputs, plain, of one offer for a node, run alone. Inputs: one per input of the node, plain.
std::vector<Tensor> run_offer(const Graph& graph, NodeId id, const Offer& offer,
                              const std::vector<Tensor>& inputs, const OfferRun& options = {});

/// Every kernel's every offer for every node of the graph, on the interpreter's inputs; then the whole plan.
/// Some seeds have constants at odd addresses, some have inputs and outputs that are no more than floats.
void check_all_offers(Graph graph, std::uint64_t seed);

/// That, and no step of the plan is left to the reference kernel.
void check_kernels(const std::string& text, std::uint64_t seed);

}  // namespace lamina::testing
