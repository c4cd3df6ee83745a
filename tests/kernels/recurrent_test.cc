/// Recurrent networks: the native kernels against the reference.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Net {
  std::string cell;  // "LSTM", "GRU", "RNN"
  int batch, time, input, hidden;
  std::string direction = "forward", attributes = "";
  bool states = true, lengths = false, bias = true, peepholes = false, linear = false;
};

int gates_of(const Net& n) { return n.cell == "LSTM" ? 4 : n.cell == "GRU" ? 3 : 1; }

std::string text_of(const Net& n, bool sequence) {
  const int d = n.direction == "bidirectional" ? 2 : 1;
  const int g = gates_of(n), b = g + (n.linear ? 1 : 0);
  const auto front = sequence ? fmt::format("{},", d) : "";
  const auto state =
      sequence ? fmt::format("{},{},{}", n.batch, d, n.hidden) : fmt::format("{},{}", n.batch, n.hidden);
  const bool lstm = n.cell == "LSTM";
  std::string text =
      fmt::format("graph (x: f32[{},{}{}]", n.batch, sequence ? fmt::format("{},", n.time) : "", n.input);
  if (n.states) text += fmt::format(", h: f32[{}]", state) + (lstm ? fmt::format(", c: f32[{}]", state) : "");
  text += sequence ? ") -> (y, hn" : ") -> (hn";
  text += lstm ? ", cn) {\n" : ") {\n";
  text += fmt::format(" w = const f32[{}{},{}] seed(1)\n", front, g * n.hidden, n.input);
  text += fmt::format(" r = const f32[{}{},{}] seed(2)\n", front, g * n.hidden, n.hidden);
  if (n.bias) text += fmt::format(" b = const f32[{}{}] seed(3)\n", front, b * n.hidden);
  if (n.peepholes) text += fmt::format(" p = const f32[{}{}] seed(4)\n", front, 3 * n.hidden);
  if (n.lengths) {
    std::string lengths;
    for (int i = 0; i < n.batch; ++i)
      lengths += fmt::format("{}{}", i ? ", " : "", (7 * i + n.time) % (n.time + 1));
    text += fmt::format(" l = const i64[{}] {{{}}}\n", n.batch, lengths);
  }
  text += sequence ? " y, hn" : " hn";
  text += lstm ? ", cn" : "";
  text += fmt::format(" = {}{}(x", n.cell, sequence ? "Sequence" : "Cell");
  text += n.states ? ", h" : ", _";
  if (lstm) text += n.states ? ", c" : ", _";
  if (sequence) text += n.lengths ? ", l" : ", _";
  text += ", w, r";
  if (n.bias || n.peepholes) text += n.bias ? ", b" : ", _";
  if (n.peepholes) text += ", p";
  text += fmt::format(") hidden_size={}", n.hidden);
  if (sequence) text += " direction=" + n.direction;
  if (n.linear) text += " linear_before_reset=true";
  return text + n.attributes + "\n}\n";
}

void check(const Net& n, std::uint64_t seed) {
  for (const bool sequence : {true, false}) {
    if (!sequence && (n.direction != "forward" || n.lengths || !n.states)) continue;
    const auto text = text_of(n, sequence);
    SCOPED_TRACE(text);
    const auto graph = parse(text);
    check_all_offers(graph, seed);
    const auto labels = run_graph(graph, random_inputs(graph, seed)).labels;
    for (const auto& label : labels) EXPECT_NE(label, "reference");
  }
}

TEST(Recurrent, sizes) {
  std::uint64_t seed = 100;
  for (const std::string cell : {"LSTM", "GRU", "RNN"})
    for (const int hidden : {1, 3, 8, 16, 17, 40})
      for (const int batch : {1, 2, 5, 14}) check({cell, batch, 4, hidden / 2 + 1, hidden}, ++seed);
}

TEST(Recurrent, directions_and_lengths) {
  std::uint64_t seed = 200;
  for (const std::string cell : {"LSTM", "GRU", "RNN"})
    for (const std::string direction : {"forward", "reverse", "bidirectional"})
      for (const bool lengths : {false, true})
        for (const int time : {1, 2, 9}) {
          Net n{cell, 7, time, 5, 11, direction};
          n.lengths = lengths;
          n.states = time != 2;
          n.bias = time != 9;
          check(n, ++seed);
        }
}

/// Flat activations: with others, random weights of this size make differences grow from step to step.
TEST(Recurrent, long_sequences_are_cut) {
  const std::string flat = " activations_alpha=[1, 1, 1] activations_beta=[0.05, 0.05, 0.05]";
  check({"LSTM", 3, 150, 6, 70, "bidirectional",
         " activations=[\"sigmoid\", \"scaledtanh\", \"scaledtanh\"]" + flat},
        300);
  check({"GRU", 13, 60, 6, 130, "reverse", " activations=[\"sigmoid\", \"scaledtanh\"]" + flat}, 301);
}

TEST(Recurrent, threads_share_the_gates) {
  check({"LSTM", 1, 3, 64, 520}, 310);
  check({"GRU", 2, 3, 700, 300, "bidirectional"}, 311);
}

TEST(Recurrent, variants) {
  std::uint64_t seed = 400;
  for (const int hidden : {5, 33}) {
    Net n{"LSTM", 3, 4, 7, hidden, "bidirectional"};
    n.peepholes = true;
    check(n, ++seed);
    n.bias = false;
    n.attributes = " input_forget=true clip=0.3";
    check(n, ++seed);
    n.direction = "forward";
    check(n, ++seed);
    Net g{"GRU", 3, 4, 7, hidden, "bidirectional"};
    g.linear = true;
    check(g, ++seed);
    g.bias = false;
    g.attributes = " clip=0.2";
    check(g, ++seed);
    g.linear = false;
    g.direction = "forward";
    check(g, ++seed);
  }
}

TEST(Recurrent, activations) {
  std::uint64_t seed = 500;
  for (const std::string f : {"sigmoid", "tanh", "relu", "hardsigmoid", "affine", "leakyrelu",
                              "thresholdedrelu", "scaledtanh", "elu", "softsign", "softplus"}) {
    Net n{"RNN", 2, 3, 4, 9};
    n.attributes = fmt::format(" activations=[\"{}\"]", f);
    check(n, ++seed);
    n.attributes += " activations_alpha=[0.7] activations_beta=[0.3]";
    check(n, ++seed);
    Net l{"LSTM", 2, 3, 4, 9};
    l.attributes = fmt::format(" activations=[\"Sigmoid\", \"{}\", \"Tanh\"]", f);
    check(l, ++seed);
  }
  Net both{"GRU", 2, 3, 4, 9, "bidirectional"};
  both.attributes = " activations=[\"sigmoid\", \"tanh\", \"hardsigmoid\", \"softsign\"]";
  check(both, ++seed);
}

/// Where z is 0, the state is the candidate, an infinite one too; where it is 1, the state before.
TEST(Recurrent, infinite_candidates) {
  for (const std::string linear : {"", " linear_before_reset=true"})
    for (const std::string x : {"inf, 1", "1, inf", "-inf, 2"})
      check_all_offers(
          parse(fmt::format(
              "graph (q: f32[1]) -> (y, hn) {{\n x = const f32[1,2,1] {{{}}}\n h = const f32[1,1,1] {{3}}\n "
              "w "
              "= const f32[1,3,1] {{-100, 1, 1}}\n r = const f32[1,3,1] {{0, 0, 0}}\n b = const f32[1,{}] "
              "fill(0)\n y, hn = GRUSequence(x, h, _, w, r, b) hidden_size=1 direction=forward "
              "activations=[\"sigmoid\", \"relu\"]{}\n}}\n",
              x, linear.empty() ? 3 : 4, linear)),
          1);
}

}  // namespace
}  // namespace lamina::testing
