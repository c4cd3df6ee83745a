/// Matrix products: every offer against the reference over random shapes.
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <limits>

#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Case {
  std::int64_t rows, depth, columns, batch;
  bool transpose_a, transpose_b, constant_b, constant_bias;
  int bias;  ///< 0: none, 1: per column, 2: one value
  std::string epilogue;
};

std::string text_of(const Case& c) {
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, bool transposed, bool batched) {
    const auto batch = batched && c.batch > 1 ? fmt::format("{},", c.batch) : "";
    return fmt::format("f32[{}{},{}]", batch, transposed ? columns : rows, transposed ? rows : columns);
  };
  const auto a = matrix(c.rows, c.depth, c.transpose_a, true),
             b = matrix(c.depth, c.columns, c.transpose_b, !c.constant_b),
             y = matrix(c.rows, c.columns, false, true);
  std::string inputs = "a: " + a, body, bias = "_";
  if (c.constant_b)
    body += fmt::format(" b = const {} seed(1)\n", b);
  else
    inputs += ", b: " + b;
  if (c.bias != 0) {
    bias = "d";
    const auto type = c.bias == 1 ? fmt::format("f32[{}]", c.columns) : "f32[]";
    if (c.constant_bias)
      body += fmt::format(" d = const {} seed(2)\n", type);
    else
      inputs += ", d: " + type;
  }
  const bool second = c.epilogue.find("q") != std::string::npos;
  if (second) inputs += ", z: " + y;
  std::string product =
      fmt::format("MatMul(a, b{}{}) transpose_a={} transpose_b={}", bias == "_" && !second ? "" : ", " + bias,
                  second ? ", _, _, z" : "", c.transpose_a, c.transpose_b);
  if (!c.epilogue.empty())
    product += fmt::format(" {{\n body graph (p: {0}{1}) -> (r) {{\n {2}\n }}\n }}", y,
                           second ? ", q: " + y : "", c.epilogue);
  return fmt::format("graph ({}) -> (y) {{\n{} y = {}\n}}\n", inputs, body, product);
}

/// A slope of rank 1 lies along axis 1, here that of rows, though there are as many columns.
TEST(Gemm, slopes_of_rows) {
  for (const std::string rows : {"4", "1", "5"})
    check_all_offers(parse(fmt::format(R"(graph (x: f32[2,{0},8]) -> (y) {{
  w = const f32[8,4] seed(1)
  y = MatMul(x, w) {{ body graph (a: f32[2,{0},4]) -> (c) {{
    s = const f32[4] {{0.1, 0.5, 2, -3}}
    c = PRelu(a, s)
  }} }}
}})",
                                       rows)),
                     1);
}

TEST(Gemm, random_products) {
  static const std::int64_t rows[] = {1, 2, 3, 4, 5, 7, 12, 13, 25, 57},
                            depths[] = {1, 3, 4, 7, 8, 16, 17, 64, 130},
                            columns[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 32, 33, 48, 64, 65, 100};
  static const std::string epilogues[] = {"",
                                          "",
                                          "r = Relu(p)",
                                          "r = Clamp(p) min=-0.5 max=0.75",
                                          "m = const f32[] {0.1}\n r = PRelu(p, m)",
                                          "r = Add(p, q)",
                                          "t = Add(q, p)\n r = Relu(t)",
                                          "t = Relu(p)\n r = Add(t, q)",
                                          "r = Sigmoid(p)"};
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SplitMix random(seed);
    const Case c{pick(random, rows),      pick(random, depths), pick(random, columns),
                 pick(random, {1, 1, 3}), random.below(4) == 0, random.below(2) == 0,
                 random.below(2) == 0,    random.below(3) != 0, static_cast<int>(random.below(3)),
                 pick(random, epilogues)};
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text_of(c)));
    check_all_offers(parse(text_of(c)), seed);
    if (HasFatalFailure()) return;
  }
}

/// A right operand that is given at run time and lies in lines, by few rows.
TEST(Gemm, few_rows_by_lines) {
  static const std::int64_t depths[] = {1, 3, 8, 17, 64, 130, 515},
                            columns[] = {4, 8, 15, 16, 17, 24, 33, 40, 64, 65, 96, 100, 129, 520, 1030};
  static const std::string epilogues[] = {"", "r = Relu(p)", "r = Add(p, q)",
                                          "t = Add(q, p)\n r = Clamp(t) min=-0.5 max=0.75",
                                          "t = Sigmoid(p)\n r = Add(t, q)"};
  SplitMix random(7);
  for (std::int64_t rows = 2; rows <= 17; ++rows)
    for (int i = 0; i < 12; ++i) {
      const Case c{rows,
                   pick(random, depths),
                   pick(random, columns),
                   pick(random, {1, 1, 3}),
                   random.below(4) == 0,
                   false,
                   false,
                   random.below(2) == 0,
                   static_cast<int>(random.below(3)),
                   pick(random, epilogues)};
      SCOPED_TRACE(text_of(c));
      check_all_offers(parse(text_of(c)), static_cast<std::uint64_t>(i));
      if (HasFatalFailure()) return;
    }
}

TEST(Gemm, products_deeper_than_a_block) {
  for (const auto& c : {Case{5, 5000, 40, 1, false, true, true, true, 1, "t = Add(p, q)\n r = Relu(t)"},
                        Case{30, 3100, 33, 1, false, false, true, true, 1, "r = Relu(p)"},
                        Case{1, 4500, 200, 1, false, false, false, true, 0, "r = Sigmoid(p)"},
                        Case{1, 4500, 70, 1, false, false, true, true, 1, "r = Add(p, q)"},
                        Case{1, 4500, 70, 1, false, true, false, false, 1, "r = Relu(p)"},
                        Case{7, 3001, 45, 1, false, true, false, true, 2, "t = Add(q, p)\n r = Relu(t)"}}) {
    SCOPED_TRACE(text_of(c));
    check_all_offers(parse(text_of(c)), 5);
  }
}

TEST(Gemm, batches_that_broadcast) {
  for (const auto& [a, b] :
       {std::pair{"2,3,14,5", "3,5,33"}, std::pair{"3,14,5", "2,1,5,33"}, std::pair{"2,1,4,5", "1,3,5,6"},
        std::pair{"5", "2,5,40"}, std::pair{"2,14,5", "5"}}) {
    SCOPED_TRACE(fmt::format("{} x {}", a, b));
    check_all_offers(
        parse(fmt::format("graph (a: f32[{}], b: f32[{}]) -> (y) {{\n y = MatMul(a, b)\n}}\n", a, b)), 1);
    check_all_offers(
        parse(fmt::format("graph (a: f32[{}]) -> (y) {{\n b = const f32[{}] seed(4)\n y = MatMul(a, b)\n}}\n",
                          a, b)),
        2);
  }
}

TEST(Gemm, many_rows_on_threads) {
  for (const auto& c :
       {Case{700, 64, 96, 1, false, false, true, true, 1, "r = Relu(p)"},
        Case{3, 512, 2000, 1, false, true, true, true, 1, "r = Tanh(p)"},
        Case{300, 70, 50, 4, false, true, false, true, 0, "t = Relu(p)\n r = Add(t, q)"},
        Case{1, 700, 1999, 1, false, false, true, true, 1, "r = Tanh(p)"},
        Case{1, 701, 1999, 1, false, true, true, false, 1, "r = Add(p, q)"},
        Case{1, 300, 1999, 3, false, false, false, true, 1, "r = Relu(p)"},
        Case{16, 130, 1999, 2, false, true, false, true, 1, "t = Sigmoid(p)\n r = Add(t, q)"},
        Case{8, 300, 1999, 3, false, false, false, true, 1, "r = Relu(p)"},
        Case{5, 1000, 190, 1, false, false, false, true, 1, "t = Sigmoid(p)\n r = Add(t, q)"},
        Case{31, 130, 1999, 2, false, false, false, true, 1, "t = Sigmoid(p)\n r = Add(t, q)"},
        Case{130, 130, 1999, 1, false, false, false, true, 0, "r = Relu(p)"}}) {
    SCOPED_TRACE(text_of(c));
    check_all_offers(parse(text_of(c)), 6);
  }
}

/// In an arena of many threads a long sum may be cut in parts.
TEST(Gemm, long_sums_with_many_threads) {
  for (const int threads : {3, 4, 16})
    for (const bool transposed : {true, false})
      for (const int depth : {2048, 3001}) {
        const auto text = fmt::format(
            "graph (a: f32[2,{}], b: f32[{},17]) -> (y) {{\n y = MatMul(a, b) transpose_a={}\n}}\n",
            transposed ? fmt::format("{},5", depth) : fmt::format("5,{}", depth), depth, transposed);
        tbb::task_arena arena(threads);
        arena.execute([&] { check_all_offers(parse(text), 2); });
      }
}

/// NaN and infinity pass where the reference lets them pass: only the sums that they are part of.
TEST(Gemm, not_a_number) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const int columns : {1, 4, 40})
    for (const std::string op : {"Relu(p)", "Clamp(p) min=-1 max=1"}) {
      const auto graph =
          parse(fmt::format("graph (a: f32[14,20]) -> (y) {{\n b = const f32[20,{0}] seed(1)\n y = MatMul(a, "
                            "b) {{\n body graph "
                            "(p: f32[14,{0}]) -> (r) {{\n r = {1}\n }}\n }}\n}}\n",
                            columns, op));
      auto inputs = random_inputs(graph, 1);
      inputs[0].data<float>()[3] = nan;
      inputs[0].data<float>()[5 * 20 + 19] = infinity;
      const auto wanted = interpret(graph, inputs), got = run_graph(graph, inputs).outputs;
      for (std::size_t i = 0; i < wanted[0].size(); ++i) {
        const float w = wanted[0].data<float>()[i], g = got[0].data<float>()[i];
        EXPECT_TRUE(std::isnan(w) ? std::isnan(g) : std::fabs(w - g) < 1e-4 || w == g)
            << op << " of " << columns << " columns at " << i << ": " << g << ", wanted " << w;
      }
    }
}

}  // namespace
}  // namespace lamina::testing
