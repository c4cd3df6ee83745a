/// Arithmetic with other tensors behind convolutions and matrix products: all operators, orders and shapes of
/// the operand, each kernel's offer and the whole plan.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Host {
  std::string line, input, constants, out;
};

/// The operand as an input of the graph, as a constant, and behind an activation.
void check(const Host& host, const std::string& op, bool first, const std::string& operand, int form,
           std::uint64_t seed) {
  const bool divides = op == "Divide";
  std::string inputs = "x: f32[" + host.input + "]", lines = host.constants;
  if (form == 1 && !divides)
    lines += " p = const f32[" + operand + "] seed(9)\n";
  else
    inputs += ", q: f32[" + operand + "]", lines += divides ? " p = Exp(q)\n" : " p = Tanh(q)\n";
  lines += " c0 = " + host.line + "\n";
  lines += divides && !first ? " c = Exp(c0)\n" : form == 2 ? " c = Relu(c0)\n" : " c = Negative(c0)\n";
  lines += " s = " + op + (first ? "(c, p)\n" : "(p, c)\n") + " y = Tanh(s)\n";
  auto graph = parse("graph (" + inputs + ") -> (y) {\n" + lines + "}\n");
  Ledger ledger;
  optimize(graph, {}, ledger);
  SCOPED_TRACE(print_graph(graph).text);
  check_all_offers(graph, seed);
}

const std::string kOperators[] = {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum"};

TEST(Operands, of_convolutions) {
  const Host hosts[] = {{"Convolution(x, w) pads_begin=[1,1] pads_end=[1,1]", "2,8,5,6",
                         " w = const f32[16,8,3,3] seed(1)\n", "2,16,5,6"},
                        {"Convolution(x, w)", "1,16,7,5", " w = const f32[5,16,1,1] seed(1)\n", "1,5,7,5"},
                        {"Convolution(x, w) groups=8 pads_begin=[1,1] pads_end=[1,1]", "1,8,6,5",
                         " w = const f32[8,1,3,3] seed(1)\n", "1,8,6,5"},
                        {"ConvolutionBackpropData(x, w) strides=[2,2]", "1,6,4,3",
                         " w = const f32[6,8,2,2] seed(1)\n", "1,8,8,6"}};
  std::uint64_t seed = 0;
  for (const auto& h : hosts) {
    const auto n = h.out.substr(0, 1), c = h.out.substr(2, h.out.find(',', 2) - 2);
    const auto rest = h.out.substr(h.out.find(',', 2) + 1);
    const auto height = rest.substr(0, 1), width = rest.substr(2);
    const std::string shapes[] = {h.out,
                                  "",
                                  "1",
                                  c + ",1,1",
                                  n + "," + c + ",1,1",
                                  n + ",1," + height + "," + width,
                                  n + "," + c + ",1," + width,
                                  height + ",1",
                                  c + "," + height + "," + width};
    for (const auto& op : kOperators)
      for (const auto& shape : shapes) {
        const auto i = seed++;
        check(h, op, i % 2 == 0, shape, static_cast<int>(i % 3), i);
      }
  }
}

TEST(Operands, of_matrix_products) {
  const Host hosts[] = {
      {"MatMul(x, w)", "6,5", " w = const f32[5,16] seed(1)\n", "6,16"},
      {"MatMul(x, w)", "2,7,8", " w = const f32[8,9] seed(1)\n", "2,7,9"},
      {"MatMul(x, w) transpose_b=true", "2,3,4,8", " w = const f32[2,3,5,8] seed(1)\n", "2,3,4,5"},
      {"MatMul(x, x) transpose_b=true", "2,3,4,8", "", "2,3,4,4"}};
  std::uint64_t seed = 1000;
  for (const auto& h : hosts) {
    const bool deep = h.out.size() == 7;
    const auto width = h.out.substr(h.out.rfind(',') + 1);
    const auto before = h.out.substr(0, h.out.rfind(','));
    for (const auto& op : kOperators)
      for (const std::string& shape :
           {h.out, std::string(), width, before + ",1", deep ? "2,1,1," + width : width}) {
        const auto i = seed++;
        check(h, op, i % 2 == 0, shape, static_cast<int>(i % 3), i);
      }
  }
}

/// What an oneDNN kernel does not take runs as one node behind it.
TEST(Operands, what_is_split_off_is_one_pass) {
  auto graph = parse(R"(graph (x: f32[1,64,14,14], p: f32[1,1,14,14]) -> (y) {
  w = const f32[64,64,3,3] seed(1)
  c = Convolution(x, w) pads_begin=[1,1] pads_end=[1,1]
  a = Subtract(p, c)
  b = Sinh(a)
  d = Maximum(b, p)
  y = Cos(d)
})");
  const auto inputs = random_inputs(graph, 1);
  Ledger ledger;
  optimize(graph, {}, ledger);
  EXPECT_EQ(graph.node_count(), 1u);
  const auto labels = run_graph(graph, inputs).labels;
  const auto passes = std::count_if(labels.begin(), labels.end(), [](const std::string& label) {
    return label.find("elementwise") != std::string::npos || label.find("eltwise") != std::string::npos;
  });
  EXPECT_LE(passes, 1) << fmt::format("{}", fmt::join(labels, ", "));
}

}  // namespace
}  // namespace lamina::testing
