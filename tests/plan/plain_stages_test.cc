/// Epilogues that are decomposed before an operand which lies plain.
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

std::string text(const std::string& stage, const std::string& then) {
  return fmt::format(R"(graph (x: f32[1,64,28,28], z: f32[1,96,28,28]) -> (y) {{
  w = const f32[96,64,3,3] seed(1)
  v = const f32[32,96,1,1] seed(2)
  {} = Convolution(x, w, _, _, _, z) pads_begin=[1,1] pads_end=[1,1] {{ body graph (a: f32[1,96,28,28], z: f32[1,96,28,28]) -> (c) {{
    b = Relu(a)
    {}
  }} }}
  {}
}})",
                     then.empty() ? "y" : "c", stage, then);
}

std::size_t steps(const Graph& graph) {
  const auto labels = run_graph(graph, random_inputs(graph, 1), 1).labels;
  return static_cast<std::size_t>(
      std::count_if(labels.begin(), labels.end(), [](const auto& l) { return l.find("reorder") == l.npos; }));
}

TEST(PlainStages, a_sum_with_an_input_whose_result_is_an_output) {
  for (const std::string stage : {"c = Add(b, z)", "c = Divide(b, z)", "d = Maximum(b, z)\n c = Tanh(d)"}) {
    const auto graph = parse(text(stage, ""));
    check_all_offers(graph, 1);
    const auto inputs = random_inputs(graph, 2);
    const auto got = run_graph(graph, inputs).outputs, wanted = interpret(graph, inputs);
    expect_close(got[0], wanted[0], stage);
  }
}

/// The result goes on in the kernel's layout: one node.
TEST(PlainStages, a_sum_with_an_input_before_another_convolution) {
  const auto graph = parse(text("c = Add(b, z)", "y = Convolution(c, v)"));
  check_all_offers(graph, 1);
  EXPECT_EQ(steps(graph), 2u);
}

}  // namespace
}  // namespace lamina::testing
