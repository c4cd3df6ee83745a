/// Inputs whose value inference wanted and did not get: results depend on them (InferContext::lacks).
#include "graph/infer.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// The inputs of y's producer, by index.
std::vector<std::size_t> lacking(const std::string& text) {
  const auto g = parse(text);
  const auto& node = g.node(g.producer(g.find_value("y")));
  InferContext c(g, node);
  node.op->infer(c);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (c.lacks(i)) out.push_back(i);
  return out;
}

using Inputs = std::vector<std::size_t>;

TEST(Lacks, what_is_computed_when_the_model_runs) {
  EXPECT_EQ(lacking("graph (x: f32[2,6], s: i64[2]) -> (y) {\n y = Reshape(x, s)\n}\n"), Inputs{1});
  EXPECT_EQ(lacking("graph (x: f32[2,6], s: i64[2]) -> (y) {\n y = Tile(x, s)\n}\n"), Inputs{1});
  EXPECT_EQ(lacking("graph (a: i64[], b: i64[], c: i64[]) -> (y) {\n y = Range(a, b, c)\n}\n"),
            (Inputs{0, 1, 2}));
}

TEST(Lacks, also_where_nothing_else_is_known) {
  EXPECT_EQ(lacking("graph (n: i64[], m: i64[], d: i64[], b: i64[?]) -> (y) {\n y = Eye(n, m, d, b)\n}\n"),
            (Inputs{0, 1, 2, 3}));
  EXPECT_EQ(lacking("graph (x: f32[...], s: i64[?]) -> (y) {\n y = Interpolate(x, s) "
                    "shape_calculation_mode=sizes\n}\n"),
            Inputs{1});
}

TEST(Lacks, not_constants) {
  EXPECT_EQ(lacking("graph (x: f32[2,6]) -> (y) {\n s = const i64[2] {3, 4}\n y = Reshape(x, s)\n}\n"),
            Inputs{});
}

TEST(Lacks, not_what_follows_from_known_sizes) {
  EXPECT_EQ(lacking("graph (x: f32[2,6], z: f32[3,4]) -> (y) {\n s = ShapeOf(z)\n y = Reshape(x, s)\n}\n"),
            Inputs{});
}

TEST(Lacks, what_follows_from_unknown_sizes) {
  EXPECT_EQ(lacking("graph (x: f32[2,6], z: f32[?,4]) -> (y) {\n s = ShapeOf(z)\n y = Reshape(x, s)\n}\n"),
            Inputs{1});
}

TEST(Lacks, nothing_where_only_elements_depend) {
  EXPECT_EQ(lacking("graph (x: f32[2,6], z: f32[6]) -> (y) {\n y = Add(x, z)\n}\n"), Inputs{});
  EXPECT_EQ(
      lacking("graph (x: f32[2,6], i: i64[3]) -> (y) {\n a = const i64[] {0}\n y = Gather(x, i, a)\n}\n"),
      Inputs{});
}

}  // namespace
}  // namespace lamina::testing
