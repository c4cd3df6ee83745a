#include "draw/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "draw/graph_draw.h"
#include "exec/runner.h"
#include "explain/drawing_plan.h"
#include "graph/text.h"
#include "ops/operators.h"
#include "ops/shaping.h"
#include "rules/optimize.h"

namespace lamina {
namespace {

constexpr const char* kNetwork = R"(
graph "net" (x: f32[1,3,8,8]) -> (y = m) {
  sources {
    0 "conv" "Conv"
    1 "relu" "Relu"
    2 "drop" "Dropout"
    3 "pool" "MaxPool"
  }
  w = const f32[4,3,3,3] seed(1)
  c: f32[1,4,8,8] = Convolution(x, w) pads_begin=[1,1] pads_end=[1,1] strides=[1,1] dilations=[1,1] @"conv" from [0]
  r = Relu(c) @"relu" from [1]
  d = Identity(r) @"drop" from [2]
  m = MaxPool(d) kernel=[2,2] strides=[2,2] pads_begin=[0,0] pads_end=[0,0] dilations=[1,1] @"pool" from [3]
}
)";

Graph network() { return parse_graph(kNetwork, operators()); }

const DrawingNode& node(const Drawing& p, const std::string& title) {
  const auto it =
      std::find_if(p.nodes.begin(), p.nodes.end(), [&](const auto& n) { return n.title == title; });
  if (it == p.nodes.end()) throw std::runtime_error("there is no " + title);
  return *it;
}

TEST(Drawing, ShowsWhatMatters) {
  const auto p = drawing_of(network());
  EXPECT_EQ(p.nodes.size(), 6u);  // four operators, an input and an output; no constants
  EXPECT_EQ(p.edges.size(), 5u);
  const auto& conv = node(p, "Convolution");
  EXPECT_EQ(conv.hue, Hue::convolution);
  EXPECT_EQ(conv.name, "conv");
  EXPECT_EQ(conv.lines[0],
            "3\xC3\x97"
            "3");
  EXPECT_EQ(conv.lines[1], "3 \xE2\x86\x92 4");
  EXPECT_EQ(conv.lines[2], "pad 1");
  EXPECT_EQ(conv.ports[0],
            "f32 1\xC3\x97"
            "4\xC3\x97"
            "8\xC3\x97"
            "8");
  for (const char* text : {"strides = [1,1]", "groups = 1", "layer of the file: conv (Conv)",
                           "input 1: w f32[4,3,3,3] (constant)"})
    EXPECT_NE(conv.tooltip.find(text), std::string::npos) << conv.tooltip;
}

TEST(Drawing, ComparisonMatchesBySources) {
  const auto before = network();
  auto after = before;
  Ledger ledger;
  optimize(after, {}, ledger);
  std::map<NodeId, std::size_t> before_nodes, after_nodes;
  auto a = drawing_of(before, &before_nodes), b = drawing_of(after, &after_nodes);
  match({a, before, before_nodes}, {b, after, after_nodes}, ledger);
  const auto& conv = node(b, "Convolution");
  ASSERT_EQ(conv.stages, std::vector<std::string>{"Relu"});
  EXPECT_EQ(node(a, "Convolution").group, conv.group);
  EXPECT_EQ(node(a, "Relu").group, conv.group);
  EXPECT_NE(node(a, "Relu").tooltip.find("fuse-conv-simple"), std::string::npos);
  EXPECT_TRUE(node(a, "Identity").faded);
  EXPECT_EQ(node(a, "MaxPool").group, node(b, "MaxPool").group);
  EXPECT_NE(node(a, "MaxPool").group, conv.group);
}

TEST(Drawing, DrawingsAreCompleteAndAlwaysTheSame) {
  const auto p = drawing_of(network());
  const auto svg = to_svg({p});
  EXPECT_EQ(svg, to_svg({drawing_of(network())}));
  for (const char* text : {"Convolution", "pool", "strides = [1,1]", "</svg>"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  const auto dot = to_dot({p});
  for (const char* text : {"digraph", "Convolution", "n0 -> n1"})
    EXPECT_NE(dot.find(text), std::string::npos) << text;
  const auto html = to_html({p});
  for (const char* text : {"<!DOCTYPE html>", "<svg", "</html>"})
    EXPECT_NE(html.find(text), std::string::npos) << text;
  EXPECT_EQ(html.find("<?xml"), std::string::npos);
}

TEST(Drawing, BodiesAreDrawnInside) {
  const auto g = parse_graph(R"(
graph "branch" (c: boolean[], x: f32[2]) -> (y = r) {
  r: f32[2] = If(c, x) {
    body graph (p: f32[2]) -> (q) {
      q: f32[2] = Relu(p)
    }
    body graph (p: f32[2]) -> (q) {
      q: f32[2] = Abs(p)
    }
  }
}
)",
                             operators());
  const auto p = drawing_of(g);
  ASSERT_EQ(node(p, "If").bodies.size(), 2u);
  EXPECT_EQ(node(p, "If").bodies[0].title, "then: 1 node");
  const auto svg = to_svg({p});
  EXPECT_NE(svg.find(">Relu<"), std::string::npos);
  EXPECT_NE(svg.find(">Abs<"), std::string::npos);
  EXPECT_NE(to_dot({p}).find("subgraph cluster_"), std::string::npos);
}

/// A chain of nodes for which nothing runs is as long as a file wants.
TEST(Drawing, LongChainsOfViewsInAPlan) {
  constexpr int kLength = 60000;
  Graph graph;
  auto value = graph.add_input("x", {ElementType::f32, Shape({Dim(2), Dim(3)})});
  const auto axis = graph.add_constant(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0}));
  for (int i = 0; i < kLength; ++i)
    value = graph.add(i % 2 == 0 ? Op(Unsqueeze{}) : Op(Squeeze{}), {value, axis});
  graph.add_result("y", value);
  Runner runner(std::make_shared<Program>(graph, ProgramOptions{}, std::make_shared<ModelWeights>()));
  runner.set_input(0, Tensor(ElementType::f32, {2, 3}));
  runner.run();
  EXPECT_GE(drawing_of(runner.plans(), nullptr).nodes.size(), kLength + 2u);
}

}  // namespace
}  // namespace lamina
