#pragma once
/// A plan: which kernel runs each node of a graph with known shapes, in which layout, on which piece of
/// memory.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/extension/offer.h"
#include "kernels/kernel.h"
#include "lamina/progress.h"
#include "rewrite/ledger.h"

namespace lamina {

/// Where a tensor of the plan lives.
enum class Place : std::uint8_t {
  arena,     ///< at `offset` of the stream's arena
  constant,  ///< in `constant`
  input,     ///< the caller's input `index`
  result,    ///< the memory of result `index`
  dynamic,   ///< made at run time, its shape depends on data
};

/// One tensor in one layout.
struct PlanTensor {
  ValueId value;
  TensorType type;  ///< static but for Place::dynamic
  Layout layout = Layout::plain;
  std::size_t bytes = 0;
  Place place = Place::arena;
  std::size_t index = 0;   ///< of an input or result
  std::size_t offset = 0;  ///< in the arena
  Tensor constant;
  std::uint32_t root = 0;  ///< the tensor whose memory this one shares (itself when none)
  std::size_t shift = 0;   ///< bytes from where the root begins
  std::int64_t row = 0;    ///< elements from one pixel to the next of a slice of channels; 0: dense
};

inline constexpr std::uint32_t kNoTensor = UINT32_MAX;

struct PlanStep {
  enum class Kind : std::uint8_t { kernel, reorder, copy, dynamic };
  Kind kind = Kind::kernel;
  NodeId node;                         ///< of a kernel or dynamic step
  std::string name;                    ///< what a person calls it
  std::string label;                   ///< the kernel's
  Recipe recipe;                       ///< of a kernel: offer_of() gives its offer again
  std::vector<std::size_t> packed;     ///< inputs of the node of which their packing is all that is needed
  std::vector<std::uint32_t> in, out;  ///< tensors; kNoTensor: absent or consumed
  std::size_t scratch = 0;
  double cost = 0;                               ///< estimated microseconds
  std::shared_ptr<const Executable> code;        ///< none for dynamic
  std::shared_ptr<const DynamicKernel> dynamic;  ///< of a library; null: the interpreter's evaluation

  /// True for a step that computes `node`; others only copy a tensor.
  bool runs_a_node() const { return kind == Kind::kernel || kind == Kind::dynamic; }
};

/// Why one node got its kernel.
struct Choice {
  NodeId node;
  std::string label;
  Layout layout = Layout::plain;  ///< of output 0
  Cost cost;
  std::string forced;  ///< for this node (plan/kernel_overrides.h), or empty
  struct Lost {
    std::string label;
    Layout layout = Layout::plain;  ///< of output 0
    Cost cost;                      ///< reorders included
    bool decomposed = false;        ///< several nodes in the place of this one
  };
  std::vector<Lost> lost;
  std::vector<Answers::Refusal> refusals;
};

/// "brgconv_1x1 (channels_last)"
std::string to_string(const Choice::Lost& lost);

struct MemoryReport {
  std::size_t arena = 0;  ///< bytes of tensors and scratch
  std::size_t sum = 0;    ///< if no two tensors shared memory
  std::size_t live = 0;   ///< largest sum of tensors alive at one step: the lower bound of the arena
};

/// Immutable once built; shared by requests and threads.
struct Plan {
  Graph graph;  ///< with static shapes
  std::vector<PlanTensor> tensors;
  std::vector<PlanStep> steps;
  std::vector<std::uint32_t> inputs;  ///< tensor of each graph input (kNoTensor: not read)
  /// Tensor of each result; kNoTensor when the result comes from `rest`.
  std::vector<std::uint32_t> results;
  std::vector<Choice> choices;
  /// The recipe of each node that is not dynamic, in the order of execution, by which remake_plan() rebuilds
  /// the plan without selecting kernels.
  std::vector<std::pair<NodeId, Recipe>> recipes;
  Ledger ledger;  ///< of rewriting the graph once its shapes were known
  MemoryReport memory;
  std::size_t scratch_offset = 0;  ///< all steps share one scratch area in the arena
  int threads = 1;

  /// Nodes that could not be planned because a shape depends on data: planned when it is known.
  std::optional<Graph> rest;
  std::vector<std::uint32_t> rest_inputs;  ///< tensor of each input of `rest`
  std::vector<bool> rest_values;           ///< inputs of `rest` whose values shapes depend on
  std::vector<std::size_t> rest_results;   ///< which result each result of `rest` is
};

/// The plan as text, a line per tensor ("t3") and step ("s2"): the same plan gives the same text.
std::string to_text(const Plan& plan);

/// Forgets the data of the graph's large constants (their type and shape stay), so that their memory can go.
void forget_weights(Graph& graph);

struct PlanOptions {
  int threads = 1;
  /// Plans for another machine have no code: they are to be looked at. It outlives the plan.
  const Machine* machine = &host();
  std::vector<std::string> force = {};  ///< kernels that are wanted: plan/kernel_overrides.h
  /// For tests: other than 0, costs are multiplied by random factors, so that any kernel may be chosen.
  std::uint64_t any_kernels = 0;
  ProgressCallback progress = {};
};

/// Plans a graph whose input shapes are known. Call inside the arena that will run it. Throws
/// Error(unsupported) naming all operators that nothing can run.
std::shared_ptr<Plan> make_plan(Graph graph, WeightStore& weights, const PlanOptions& options = {});

/// The plan of a graph that was planned before, with the kernels that were picked then; `recipes` and the
/// graph are a plan's. Nothing is chosen: `choices` have no alternatives. Throws Error(unsupported) when a
/// kernel is not offered here, Error(bad_file) when the recipes are not for this graph.
std::shared_ptr<Plan> remake_plan(Graph graph, const std::vector<std::pair<NodeId, Recipe>>& recipes,
                                  WeightStore& weights, const PlanOptions& options = {});

/// Throws Error(unsupported) that lists every unsupported operator of the graph with its nodes.
void require_supported(const Graph& graph);

/// A copy of the graph with these input shapes, inputs marked in `values` replaced by constants (they stay
/// inputs that nothing reads), and types inferred anew.
Graph specialise(const Graph& graph, const std::vector<Tensor>& inputs, const std::vector<bool>& values);

}  // namespace lamina
