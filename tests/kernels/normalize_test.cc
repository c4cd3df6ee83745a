/// Normalisations against the reference, over shapes, axes and layouts.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

std::string by_axes(const std::string& op, const std::string& shape, const std::string& axes,
                    const std::string& attributes) {
  return fmt::format("graph (x: f32[{}]) -> (y) {{\n a = const i64[{}] {{{}}}\n y = {}(x, a) {}\n}}\n", shape,
                     std::count(axes.begin(), axes.end(), ',') + 1, axes, op, attributes);
}

TEST(Normalize, axes) {
  std::uint64_t seed = 0;
  for (const std::string shape : {"2,3,5,7", "1,16,9,4", "3,37,1,2", "1,70,6,6", "2,1,300,1"})
    for (const std::string axes : {"2, 3", "1, 2, 3", "1", "3", "2", "0, 2, 3", "0, 1, 2, 3", "1, 2", "0"})
      for (const std::string op : {"MVN", "MVN normalize_variance=false", "MVN eps_mode=outside_sqrt",
                                   "NormalizeL2", "NormalizeL2 eps_mode=max"}) {
        const auto space = op.find(' ');
        check_kernels(by_axes(op.substr(0, space), shape, axes,
                              "eps=0.01" + (space == std::string::npos ? "" : op.substr(space))),
                      ++seed);
      }
}

TEST(Normalize, other_ranks) {
  std::uint64_t seed = 100;
  for (const std::string op : {"MVN", "NormalizeL2"}) {
    check_kernels(by_axes(op, "17", "0", "eps=0.01"), ++seed);
    check_kernels(by_axes(op, "5,33", "1", "eps=0.01"), ++seed);
    check_kernels(by_axes(op, "5,33", "0", "eps=0.01"), ++seed);
    check_kernels(by_axes(op, "2,19,30", "2", "eps=0.01"), ++seed);
    check_kernels(by_axes(op, "2,4,3,5,6", "2, 3, 4", "eps=0.01"), ++seed);
  }
}

TEST(Normalize, large_on_threads) {
  std::uint64_t seed = 150;
  for (const std::string axes : {"2, 3", "1", "1, 2, 3"}) {
    check_kernels(by_axes("MVN", "1,24,80,70", axes, "eps=0.001"), ++seed);
    check_kernels(by_axes("NormalizeL2", "1,24,80,70", axes, "eps=0.001"), ++seed);
  }
  check_kernels(by_axes("MVN", "2,300,30,20", "2, 3", "eps=0.001"), ++seed);
}

TEST(Normalize, layers) {
  std::uint64_t seed = 200;
  for (const std::string shape : {"3,40", "2,5,33", "2,3,4,17", "1,2,60,100"})
    for (const int back : {1, 2})
      for (const std::string op : {"LayerNormalization", "RMSNormalization"}) {
        std::vector<std::string> dims;
        std::stringstream s(shape);
        for (std::string d; std::getline(s, d, ',');) dims.push_back(d);
        const auto last = back == 1 ? dims.back() : dims[dims.size() - 2] + "," + dims.back();
        const bool layer = op == "LayerNormalization";
        for (const std::string& numbers : {last, dims.back()}) {
          check_kernels(
              fmt::format(
                  "graph (x: f32[{}]) -> (y) {{\n g = const f32[{}] seed(1)\n b = const f32[{}] seed(2)\n "
                  "y = {}(x, g{}) axis={} epsilon=0.001\n}}\n",
                  shape, numbers, numbers, op, layer ? ", b" : "", -back),
              ++seed);
          if (numbers == last)
            check_kernels(fmt::format("graph (x: f32[{}], g: f32[{}]) -> (y) {{\n y = {}(x, g) axis={}\n}}\n",
                                      shape, numbers, op, -back),
                          ++seed);
        }
      }
  check_kernels("graph (x: f32[4,30]) -> (y) {\n y = RMSNormalization(x)\n}\n", ++seed);
}

/// As many numbers as there are in a line are not one for each of them.
TEST(Normalize, scales_of_lines) {
  std::uint64_t seed = 250;
  for (const std::string op : {"LayerNormalization(x, s, b)", "LayerNormalization(x, s)",
                               "RMSNormalization(x, s)", "LayerNormalization(x, s, b) axis=1"})
    for (const std::string shapes :
         {"x: f32[4,4], s: f32[4,1], b: f32[1,4]", "x: f32[2,4,4], s: f32[4], b: f32[4,1]",
          "x: f32[3,4,4], s: f32[4,1], b: f32[]", "x: f32[4,2,4], s: f32[4,1,1], b: f32[4,1,4]"})
      check_all_offers(parse(fmt::format("graph ({}) -> (y) {{\n y = {}\n}}\n", shapes, op)), ++seed);
}

TEST(Normalize, groups) {
  std::uint64_t seed = 300;
  for (const auto& [shape, c, groups] :
       {std::tuple("2,12,5,3", 12, 3), std::tuple("1,16,30,40", 16, 4), std::tuple("1,6,7", 6, 6),
        std::tuple("3,8,2,2,2", 8, 1), std::tuple("1,300,9,9", 300, 10), std::tuple("2,12,1,1", 12, 4)})
    check_kernels(
        fmt::format(
            "graph (x: f32[{}]) -> (y) {{\n g = const f32[{}] seed(1)\n b = const f32[{}] seed(2)\n y = "
            "GroupNormalization(x, g, b) num_groups={}\n}}\n",
            shape, c, c, groups),
        ++seed);
  check_kernels("graph (x: f32[2,5,4,3]) -> (y) {\n y = GRN(x) bias=0.5\n}\n", ++seed);
}

TEST(Normalize, epilogues) {
  std::uint64_t seed = 400;
  for (const std::string axes : {"2, 3", "1", "1, 2, 3"})
    for (const std::string shape : {"1,16,9,4", "1,24,80,70"}) {
      const auto c = shape == "1,16,9,4" ? 16 : 24;
      for (const std::string op : {"MVN", "NormalizeL2"})
        check_kernels(
            fmt::format(
                "graph (x: f32[{0}]) -> (y) {{\n a = const i64[{1}] {{{2}}}\n y = {3}(x, a) eps=0.01 {{\n "
                "body graph (p: f32[{0}]) -> (r) {{\n g = const f32[{4},1,1] seed(3)\n b = const "
                "f32[{4},1,1] "
                "seed(4)\n s = Multiply(p, g)\n t = Add(s, b)\n r = Relu(t)\n }}\n }}\n}}\n",
                shape, std::count(axes.begin(), axes.end(), ',') + 1, axes, op, c),
            ++seed);
    }
}

/// Means far from 0, constant lines.
TEST(Normalize, lines_of_a_million) {
  const auto g = parse(
      "graph (x: f32[1,4000000]) -> (y) {\n s = const f32[4000000] fill(1)\n y = LayerNormalization(x, "
      "s)\n}\n");
  Tensor x(ElementType::f32, {1, 4000000});
  for (std::size_t i = 0; i < x.size(); ++i) x.data<float>()[i] = i % 7 == 0 ? 0.15f : 0.1f;
  const auto wanted = interpret(g, {x})[0];
  for (auto& offer : ask_kernels(NodeView(g, g.order().at(0))).offers) {
    const auto got =
        run_offer(g, g.order().at(0), offer, {x, *g.constant(g.node(g.order().at(0)).inputs[1])});
    EXPECT_NEAR(got[0].data<float>()[0], wanted.data<float>()[0], 1e-4) << offer.label;
  }
}

TEST(Normalize, keeps_precision) {
  check_kernels(
      "graph (x: f32[2,8,30,30]) -> (y) {\n a = const i64[2] {2, 3}\n k = const f32[] {1000}\n m = const "
      "f32[] "
      "{0.1}\n s = Multiply(x, m)\n t = Add(s, k)\n y = MVN(t, a) eps=0.00001\n}\n",
      500);
  check_kernels(
      "graph (x: f32[2,8,30,30]) -> (y) {\n a = const i64[2] {2, 3}\n k = const f32[] {0.3}\n m = const "
      "f32[] "
      "{0}\n s = Multiply(x, m)\n t = Add(s, k)\n y = MVN(t, a) eps=0.000000001\n}\n",
      501);
}

/// Numbers whose squares f32 does not hold.
TEST(Normalize, large_and_small_numbers) {
  std::uint64_t seed = 700;
  for (const std::string scale : {"1e25", "1e-25", "0"})
    for (const std::string shape : {"2,3,5,7", "1,16,90,60", "2,4,100,200", "1,2,1,9000"})
      for (const std::string axes : {"1, 2, 3", "1", "3", "2, 3", "2"})
        for (const std::string op :
             {"MVN(x, a) eps=1e-40", "MVN(x, a) eps_mode=outside_sqrt eps=1e-36",
              "NormalizeL2(x, a) eps=1e-55", "NormalizeL2(x, a) eps_mode=max eps=1e-55", "GRN(x) bias=1e-50",
              "GroupNormalization(x, g, g) num_groups=1 epsilon=1e-50"}) {
          if (axes != "1" && op.find("x, a") == std::string::npos) continue;
          check_all_offers(
              parse(fmt::format(
                  "graph (q: f32[{0}]) -> (y) {{\n s = const f32[] {{{1}}}\n x = Multiply(q, s)\n a = "
                  "const i64[{2}] {{{3}}}\n g = const f32[{4}] fill(0.5)\n y = {5}\n}}\n",
                  shape, scale, std::count(axes.begin(), axes.end(), ',') + 1, axes,
                  shape.substr(2, shape.find(',', 2) - 2), op)),
              ++seed);
        }
}

/// The mean of infinities of one sign is infinite, wherever they stand.
TEST(Normalize, infinite_means) {
  for (const std::string shape : {"1,2,5,7", "1,2,1,9000", "1,8,200,100", "1,40,60,8"})
    for (const std::string axes : {"1", "3", "2, 3"})
      for (const std::string at : {"0", "1", "200", "-1"})
        for (const std::string value : {"inf", "-inf"}) {
          const auto text = fmt::format(
              "graph (x: f32[{0}]) -> (y) {{\n n = const i64[1] {{-1}}\n f = Reshape(x, n)\n i = const "
              "i64[1] "
              "{{{1}}}\n u = const f32[1] {{{2}}}\n k = const i64[] {{0}}\n g = ScatterUpdate(f, i, u, k)\n "
              "s = "
              "const i64[4] {{{0}}}\n z = Reshape(g, s)\n a = const i64[{3}] {{{4}}}\n y = MVN(z, a) "
              "normalize_variance=false\n}}\n",
              shape, at == "200" && shape == "1,2,5,7" ? "33" : at, value,
              std::count(axes.begin(), axes.end(), ',') + 1, axes);
          SCOPED_TRACE(text);
          check_all_offers(parse(text), 1);
        }
}

}  // namespace
}  // namespace lamina::testing
