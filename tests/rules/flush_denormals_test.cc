#include "rules/flush_denormals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/text.h"
#include "ops/operators.h"

namespace lamina::testing::flush_denormals_test {
namespace {

const float kTiny = 1e-40f;  // denormal

Tensor floats(const Dims& dims, const std::vector<float>& values) {
  Tensor t(ElementType::f32, dims);
  std::copy(values.begin(), values.end(), t.data<float>().begin());
  return t;
}

/// y of the graph's only node reads `data` as its input `input`.
struct Reader {
  Graph graph;
  NodeId node;
  std::size_t input;

  Reader(const std::string& text, std::size_t input, Tensor data)
      : graph(parse_graph(text, operators())), node(graph.order().at(0)), input(input) {
    graph.set_input(node, input, graph.add_constant(std::move(data), "w"));
  }
  std::vector<float> values() const {
    const auto data = graph.constant(graph.node(node).inputs[input])->data<float>();
    return {data.begin(), data.end()};
  }
};

Reader sum(std::vector<float> w) {
  return {"graph (x: f32[1,4]) -> (y) {\n w = const f32[4] fill(1)\n y = Add(x, w)\n}\n", 1,
          floats({4}, std::move(w))};
}

TEST(FlushDenormals, operands) {
  auto r = sum({kTiny, -kTiny, 1.1754944e-38f, -1e-30f});
  const auto name = r.graph.value(r.graph.node(r.node).inputs[1]).name;
  EXPECT_EQ(to_string(flush_denormals(r.graph)),
            "2 of 4 numbers in 1 constant are denormal (below 1.18e-38) and count as 0");
  EXPECT_EQ(r.values(), (std::vector<float>{0, 0, 1.1754944e-38f, -1e-30f}));
  EXPECT_TRUE(std::signbit(r.values()[1]));
  EXPECT_EQ(r.graph.value(r.graph.node(r.node).inputs[1]).name, name);
}

TEST(FlushDenormals, nothing_to_do) {
  auto r = sum({0, -0.0f, INFINITY, NAN});
  EXPECT_FALSE(flush_denormals(r.graph));
  EXPECT_TRUE(std::isnan(r.values()[3]));
}

TEST(FlushDenormals, weights_wait_until_they_are_packed) {
  Reader r("graph (x: f32[1,2,1,3]) -> (y) {\n w = const f32[2,2,1,1] fill(1)\n y = Convolution(x, w)\n}\n",
           1, floats({2, 2, 1, 1}, {kTiny, 1, 2, 3}));
  EXPECT_FALSE(flush_denormals(r.graph));
}

TEST(FlushDenormals, what_keeps_from_zero_stays) {
  Reader r("graph (x: f32[4]) -> (y) {\n e = const f32[] {1}\n y = Maximum(x, e)\n}\n", 1,
           floats({}, {kTiny}));
  EXPECT_FALSE(flush_denormals(r.graph));
  EXPECT_EQ(r.values()[0], kTiny);
}

TEST(FlushDenormals, what_is_only_moved_stays) {
  Reader r(
      "graph (x: i64[3]) -> (y) {\n t = const f32[4] fill(1)\n a = const i64[] {0}\n y = Gather(t, x, "
      "a)\n}\n",
      0, floats({4}, {1, kTiny, 2, kTiny}));
  EXPECT_FALSE(flush_denormals(r.graph));
  EXPECT_EQ(r.values()[1], kTiny);
}

TEST(FlushDenormals, operands_of_stages) {
  auto g = parse_graph(R"(graph (x: f32[1,2,1,3]) -> (y) {
  w = const f32[2,2,1,1] fill(1)
  y = Convolution(x, w) {
    body graph (r: f32[1,2,1,3]) -> (q) {
      s = const f32[1,2,1,1] {1e-40,2}
      q = Multiply(r, s)
    }
  }
}
)",
                       operators());
  EXPECT_EQ(flush_denormals(g).numbers, 1u);
  const auto& body = g.node(g.order().at(0)).bodies[0];
  EXPECT_EQ(body.constant(body.node(body.order().at(0)).inputs[1])->data<float>()[0], 0);
}

}  // namespace
}  // namespace lamina::testing::flush_denormals_test
