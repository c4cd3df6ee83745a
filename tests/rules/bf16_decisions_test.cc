/// Values that decide stay f32 with bf16: about control flow, about sizes, in this run or a later one.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/decompose.h"
#include "tests/rules/by_value.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// "Convolution+Relu+Convert bf16": each node with the type of what it reads first.
std::vector<std::string> nodes_with_bf16(Graph g, std::vector<Carried> carried = {}) {
  RuleOptions options;
  options.carried = std::move(carried);
  options.bf16 = options.verify = true;
  Ledger ledger;
  optimize(g, options, ledger);
  std::vector<std::string> out;
  for (const auto id : g.order()) {
    const Node& n = g.node(id);
    out.push_back(fmt::format("{} {}", operators_of(n), name_of(g.type(n.inputs[0]).element)));
  }
  return out;
}

/// What the convolutions read of a graph that begins with a = Convolution(x, w).
std::string read_by_products(const std::string& rest) {
  std::string out;
  for (const auto& node : nodes_with_bf16(
           parse("graph (x: f32[1,32,16,16], q: boolean[]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n"
                 " k = const f32[] {0.5}\n axes = const i64[4] {0, 1, 2, 3}\n a = Convolution(x, w)\n" +
                 rest + "}\n")))
    if (node.starts_with("Convolution")) out += node.substr(node.find(' '));
  return out;
}

const std::string kBranches =
    " {\n body graph (p: f32[1,32,14,14]) -> (r) {\n r = Tanh(p)\n }\n"
    " body graph (p: f32[1,32,14,14]) -> (r) {\n r = Sinh(p)\n }\n }\n";

/// Branches with the shape of x.
const std::string kWide =
    " {\n body graph (p: f32[1,32,16,16]) -> (r) {\n r = Tanh(p)\n }\n"
    " body graph (p: f32[1,32,16,16]) -> (r) {\n r = Sinh(p)\n }\n }\n";

TEST(Bf16Decisions, what_decides_about_control_flow_is_f32) {
  const std::string decision =
      " s = Sigmoid(a)\n m = ReduceMax(s, axes)\n g = Greater(m, k)\n c = LogicalAnd(g, q)\n";
  EXPECT_EQ(read_by_products(decision + " y = If(c, a)" + kBranches), " f32");
  EXPECT_EQ(read_by_products(decision + " y = If(q, a)" + kBranches), " bf16");
  EXPECT_EQ(read_by_products(decision + " y = Select(c, a, k)\n"), " bf16");
  EXPECT_EQ(read_by_products(" b = Convolution(a, w)\n m = ReduceMax(b, axes)\n g = Greater(m, k)\n"
                             " y = If(g, a)" +
                             kBranches),
            " f32 f32");  // all products before it decide
}

TEST(Bf16Decisions, what_decides_in_bodies_is_f32) {
  const auto loop = [](const std::string& condition, const std::string& more = "") {
    return " n = const i64[] {4}\n y, z = Loop(n, _, a, k, a) carried=2 {\n"
           " body graph (i: i64[], c: boolean[], p: f32[1,32,14,14], d: f32[], e: f32[1,32,14,14]) -> (t, r, "
           "s) "
           "{\n axes = const i64[4] {0, 1, 2, 3}\n t = " +
           condition + "\n r = Tanh(p)\n" + more + " }\n }\n";
  };
  EXPECT_EQ(read_by_products(loop("Less(i, i)", " s = ReduceMax(e, axes)\n")), " bf16");
  EXPECT_EQ(read_by_products(loop("Greater(d, d)", " s = ReduceMax(e, axes)\n")),
            " f32");  // an iteration later
  EXPECT_EQ(read_by_products(loop("Greater(d, d)", " s = Tanh(d)\n")), " bf16");
}

TEST(Bf16Decisions, what_decides_about_shapes_is_f32) {
  EXPECT_EQ(
      read_by_products(" g = Sigmoid(a)\n b = Convolution(g, w)\n n = NonZero(b)\n zero = const i64[] {0}\n"
                       " y = ReduceSum(n, zero)\n"),
      " f32 f32");
  EXPECT_EQ(
      read_by_products(" m = ReduceMean(a, axes)\n s = Exp(m)\n one = const f32[] {1}\n y = Range(k, s, one) "
                       "output_type=f32\n"),
      " f32");
  EXPECT_EQ(read_by_products(" g = Greater(a, k)\n y = Select(g, a, k)\n"), " bf16");
}

TEST(Bf16Decisions, sizes_that_come_from_the_first_input_are_f32) {
  const std::string number =
      " m = ReduceMean(a, axes)\n i = Convert(m) destination_type=i64\n"
      " n = const i64[] {3}\n zero = const i64[] {0}\n";
  EXPECT_EQ(read_by_products(number + " y = Eye(i, n, zero) output_type=f32\n"), " f32");
  EXPECT_EQ(read_by_products(number + " y = Eye(n, n, i) output_type=f32\n"), " bf16");  // its diagonal
}

TEST(Bf16Decisions, scales_of_what_has_no_known_size_are_f32) {
  const auto resized = [](const std::string& size) {
    return " n = NonZero(x)\n f = Convert(n) destination_type=f32\n z = const i64[] {0}\n"
           " l = Gather(n, z, z)\n d = " +
           size +
           "\n one = const f32[1] {1}\n o = const i64[1] {1}\n m = ReduceMean(a, axes)\n"
           " e = Exp(m)\n s = Reshape(e, o)\n t = Concat(one, s) axis=0\n ax = const i64[2] {0, 1}\n"
           " y = Interpolate(d, t, ax) mode=nearest shape_calculation_mode=scales\n";
  };
  EXPECT_EQ(read_by_products(resized("Identity(f)")), " f32");
  EXPECT_EQ(read_by_products(resized("Reshape(f, l)")), " f32");  // nor a rank
}

TEST(Bf16Decisions, operands_beside_what_has_no_known_size_are_no_sizes) {
  EXPECT_EQ(read_by_products(" n = NonZero(x)\n f = Convert(n) destination_type=f32\n"
                             " z = const i64[2] {4, 32}\n b = ReduceMean(a, axes)\n e = Exp(b)\n"
                             " v = Broadcast(e, z)\n y = MatMul(f, v) transpose_a=true\n"),
            " bf16");
}

/// Boxes chosen by a Softmax of a: o.
const std::string kBoxes =
    " s = Softmax(a) axis=1\n t = const i64[3] {1, 1568, 4}\n b = Reshape(s, t)\n"
    " two = const i64[] {2}\n m = ReduceMax(b, two)\n one = const i64[] {1}\n"
    " u = Unsqueeze(m, one)\n most = const i64[] {20}\n n, o, p = NonMaxSuppression(b, u, most)\n h = "
    "ShapeOf(o)\n";

TEST(Bf16Decisions, how_many_boxes_are_chosen_is_no_shape) {
  EXPECT_EQ(read_by_products(kBoxes + " r = Broadcast(k, h)\n y = Add(o, r)\n"), " bf16");
}

TEST(Bf16Decisions, how_many_boxes_are_chosen_may_decide_about_control_flow) {
  const std::string many = " zero = const i64[] {0}\n i = Gather(h, zero, zero)\n c = Greater(i, zero)\n";
  EXPECT_EQ(read_by_products(kBoxes + many + " y = If(c, x)" + kWide), " f32");
  EXPECT_EQ(read_by_products(kBoxes + many + " y = Select(c, x, k)\n"), " bf16");
  // Values computed from the boxes, moved or cut by what they say.
  EXPECT_EQ(read_by_products(kBoxes +
                             " r = Relu(o)\n f = ShapeOf(r)\n zero = const i64[] {0}\n"
                             " i = Gather(f, zero, zero)\n c = Greater(i, zero)\n y = If(c, x)" +
                             kWide),
            " f32");
  EXPECT_EQ(read_by_products(kBoxes +
                             " y = If(q, o, x) {\n body graph (e: f32[?,3], x: f32[1,32,16,16]) -> (r) {\n"
                             " zero = const i64[] {0}\n f = ShapeOf(e)\n i = Gather(f, zero, zero)\n"
                             " c = Greater(i, zero)\n r = If(c, x)" +
                             kWide +
                             " }\n"
                             " body graph (e: f32[?,3], x: f32[1,32,16,16]) -> (r) {\n r = Exp(x)\n }\n }\n"),
            " f32");  // in a body
}

TEST(Bf16Decisions, what_decides_in_a_later_run_is_f32) {
  const auto read = [](std::vector<Carried> carried, const std::string& decision) {
    const auto nodes = nodes_with_bf16(
        parse("graph (x: f32[1,32,16,16], s: f32[], t: f32[]) -> (y, u, v) {\n w = const f32[32,32,3,3] "
              "seed(1)\n k = const f32[] {0.5}\n axes = const i64[4] {0, 1, 2, 3}\n a = Convolution(x, w)\n"
              " u = ReduceMax(a, axes)\n v = Tanh(s)\n" +
              decision + "}\n"),
        std::move(carried));
    return std::find(nodes.begin(), nodes.end(), "Convolution bf16") != nodes.end() ? "bf16" : "f32";
  };
  const auto by = [](const std::string& what) {
    return " c = Greater(" + what + ", k)\n y = If(c, x)" + kWide;
  };
  EXPECT_STREQ(read({{1, 1}}, by("s")), "f32");
  EXPECT_STREQ(read({{1, 1}}, by("t")), "bf16");
  EXPECT_STREQ(read({{1, 1}, {2, 2}}, by("t")), "f32");  // two runs later
  EXPECT_STREQ(read({}, by("s")), "bf16");
  EXPECT_STREQ(read({{{}, 1}}, " y = Exp(x)\n"), "f32");  // nobody knows
  EXPECT_STREQ(read({{1, 1}}, " one = const f32[] {1}\n y = Range(k, s, one) output_type=f32\n"), "f32");
}

TEST(Bf16Decisions, what_decides_is_not_stored_as_bf16) {
  const auto nodes = [](bool decides) {
    return nodes_with_bf16(
        parse("graph (x: f32[1,32,16,16], q: boolean[]) -> (y, z) {\n w = const f32[32,32,3,3] seed(1)\n"
              " k = const f32[] {0.5}\n axes = const i64[4] {0, 1, 2, 3}\n a = Convolution(x, w)\n"
              " v = Tanh(x)\n b = Convolution(v, w)\n z = ReduceMax(b, axes)\n u = Exp(v)\n"
              " g = Greater(u, k)\n c = ReduceLogicalOr(g, axes)\n y = If(" +
              std::string(decides ? "c" : "q") + ", a)" + kBranches + "}\n"));
  };
  const auto narrow = nodes(false), wide = nodes(true);
  for (const auto& n : wide) EXPECT_FALSE(n.starts_with("Tanh+Convert")) << n;
  EXPECT_EQ(std::count_if(wide.begin(), wide.end(), [](auto& n) { return n == "Convolution bf16"; }), 2);
}

}  // namespace
}  // namespace lamina::testing
