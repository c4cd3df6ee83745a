#pragma once
/// Runs a graph through plan and kernels and compares with the interpreter.
#include <gtest/gtest.h>

#include "base/random.h"
#include "exec/program.h"
#include "exec/single_step.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "ops/operators.h"
#include "rules/optimize.h"

namespace lamina::testing {

/// LAMINA_SEED (make soak) moves all seeds.
inline std::vector<Tensor> random_inputs(const Graph& graph, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  if (const char* more = std::getenv("LAMINA_SEED")) seed += 1000 * std::strtoull(more, nullptr, 10);
  for (const auto v : graph.inputs())
    inputs.push_back(seeded_tensor(graph.type(v).element, graph.type(v).shape.sizes(), ++seed));
  return inputs;
}

/// f32 within 1e-4 + 1e-3 of the largest, everything else equal.
inline void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  ASSERT_EQ(got.element_type(), wanted.element_type()) << what;
  const auto a = to_doubles(got), b = to_doubles(wanted);
  double largest = 0;
  for (auto v : b)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  const double limit = is_float(wanted.element_type()) ? 1e-4 + 1e-3 * largest : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) && std::isnan(a[i])) continue;
    if (a[i] == b[i]) continue;
    ASSERT_LE(std::fabs(a[i] - b[i]), limit) << what << " at " << i << ": " << a[i] << ", wanted " << b[i];
  }
}

struct RunResult {
  std::vector<Tensor> outputs;
  std::vector<std::string> labels;  ///< of the steps of all plans
};

inline RunResult run_graph(const Graph& graph, const std::vector<Tensor>& inputs, int threads = 2) {
  ProgramOptions options;
  options.threads = threads;
  const auto program = std::make_shared<Program>(graph, options, std::make_shared<ModelWeights>());
  Runner runner(program);
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  runner.run();
  RunResult result;
  for (std::size_t r = 0; r < graph.results().size(); ++r) result.outputs.push_back(runner.output(r).clone());
  for (const auto& plan : runner.plans())
    for (const auto& step : plan->steps) result.labels.push_back(step.label);
  return result;
}

/// Constants as slices of a file may lie: at odd addresses.
inline void unalign_constants(Graph& graph) {
  for (std::uint32_t i = 0, count = static_cast<std::uint32_t>(graph.value_slots()); i < count; ++i) {
    const auto* constant = graph.constant(ValueId{i});
    if (!constant || constant->bytes() == 0) continue;
    const auto memory = std::make_shared<std::vector<std::byte>>(constant->bytes() + 1);
    std::memcpy(memory->data() + 1, constant->raw(), constant->bytes());
    const auto moved = Tensor::share(constant->element_type(), constant->shape(), memory, memory->data() + 1);
    graph.replace(ValueId{i}, graph.add_constant(moved));
  }
}

/// Every kernel's every offer for every node of the graph, on the interpreter's inputs; then the whole plan.
/// Some seeds have constants at odd addresses.
inline void check_all_offers(Graph graph, std::uint64_t seed) {
  if (seed % 4 == 3) unalign_constants(graph);
  const auto inputs = random_inputs(graph, seed);
  ModelWeights weights;
  InterpreterOptions observe;
  observe.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    for (auto& offer : ask_kernels(NodeView(g, id)).offers) {
      if (offer.is_view || offer.stages < SIZE_MAX) continue;  // partial offers are checked through the plan
      Plan plan;
      plan.graph = g;
      PlanStep step;
      step.scratch = offer.scratch;
      const auto tensor = [&](ValueId v, Layout layout) {
        PlanTensor t;
        t.value = v;
        t.type = g.type(v);
        t.layout = layout;
        t.place = Place::arena;
        t.root = static_cast<std::uint32_t>(plan.tensors.size());
        plan.tensors.push_back(t);
        return static_cast<std::uint32_t>(plan.tensors.size() - 1);
      };
      const auto& node = g.node(id);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const bool consumed =
            std::find(offer.consumed.begin(), offer.consumed.end(), i) != offer.consumed.end();
        step.in.push_back(!node.inputs[i].valid() || consumed ? kNoTensor
                                                              : tensor(node.inputs[i], offer.inputs[i]));
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        step.out.push_back(tensor(node.outputs[i], offer.outputs[i]));
      MakeContext context{weights};
      step.code = offer.make(context);
      const auto got = run_single_step(plan, step, in);
      for (std::size_t i = 0; i < got.size(); ++i)
        expect_close(got[i], out[i], offer.label + " for " + node.op.name());
    }
  };
  const auto wanted = interpret(graph, inputs, observe);
  const auto got = run_graph(graph, inputs);
  for (std::size_t r = 0; r < wanted.size(); ++r) expect_close(got.outputs[r], wanted[r], "the plan");
}

inline Graph parse(const std::string& text) { return parse_graph(text, operators()); }

}  // namespace lamina::testing
