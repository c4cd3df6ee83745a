// TensorIterator, Loop and If of IR: port maps, back edges, slices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/ir_text.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Longs = std::vector<std::int64_t>;

std::string input(int external, int internal, const std::string& more = {}) {
  return fmt::format("<input external_port_id=\"{}\" internal_layer_id=\"{}\" {}/>", external, internal,
                     more);
}
std::string output(int external, int internal, const std::string& more = {}) {
  return fmt::format("<output external_port_id=\"{}\" internal_layer_id=\"{}\" {}/>", external, internal,
                     more);
}
std::string port_map(const std::string& lines, const std::string& tag = "port_map") {
  return fmt::format("<{0}>{1}</{0}>", tag, lines);
}
std::string back_edge(int result, int parameter) {
  return fmt::format("<back_edges><edge from-layer=\"{}\" to-layer=\"{}\"/></back_edges>", result, parameter);
}

/// state + slice, step by step along axis 1 of x [1, n]; outputs: last state, all states.
struct Accumulation {
  IrText ir;
  int state, slice, result;
  std::string body;

  Accumulation() {
    IrText inside;
    state = inside.parameter("state", "1,1");
    slice = inside.parameter("slice", "1,1");
    const int sum = inside.layer("Add", "opset1", "auto_broadcast=\"numpy\"", {{state}, {slice}});
    result = inside.result({sum});
    body = "<body>" + inside.body() + "</body>";
  }

  /// `slicing`: attributes of the sliced input, `joining`: of the output that collects.
  void finish(const std::string& slicing, const std::string& joining) {
    const int x = ir.parameter("x", "1,4"), initial = ir.parameter("s", "1,1");
    const std::string map =
        port_map(input(0, slice, slicing) + input(1, state) + output(2, result) + output(3, result, joining));
    const int loop =
        ir.layer("TensorIterator", "opset1", "", {{x}, {initial}}, 2, map + back_edge(result, state) + body);
    ir.result({loop, 2});
    ir.result({loop, 3});
  }
};

TEST(IrControl, TensorIterator) {
  Accumulation a;
  a.finish("axis=\"1\"", "axis=\"1\"");
  const auto out = run(a.ir, {floats({1, 4}, {1, 2, 3, 4}), floats({1, 1}, {100})});
  EXPECT_EQ(values(out.at(0)), (Values{110}));
  EXPECT_EQ(out.at(1).shape(), (Dims{1, 4}));
  EXPECT_EQ(values(out.at(1)), (Values{101, 103, 106, 110}));
}

TEST(IrControl, TensorIteratorBackwards) {
  Accumulation a;
  a.finish(R"(axis="1" start="-1" end="0" stride="-1" part_size="1")",
           R"(axis="1" start="-1" end="0" stride="-1" part_size="1")");
  const auto out = run(a.ir, {floats({1, 4}, {1, 2, 3, 4}), floats({1, 1}, {0})});
  EXPECT_EQ(values(out.at(0)), (Values{10}));
  EXPECT_EQ(values(out.at(1)), (Values{10, 9, 7, 4}));
}

TEST(IrControl, TensorIteratorOverPart) {
  Accumulation a;
  a.finish(R"(axis="1" start="1" end="3")", "axis=\"1\"");
  const auto out = run(a.ir, {floats({1, 4}, {1, 2, 3, 4}), floats({1, 1}, {0})});
  EXPECT_EQ(values(out.at(1)), (Values{2, 5}));
}

TEST(IrControl, TensorIteratorRefusals) {
  const auto refused = [](const std::string& map, const std::string& back) {
    Accumulation a;
    const int x = a.ir.parameter("x", "1,4"), initial = a.ir.parameter("s", "1,1");
    const int loop =
        a.ir.layer("TensorIterator", "opset1", "", {{x}, {initial}}, 2, port_map(map) + back + a.body);
    a.ir.result({loop, 2});
    return refusal(a.ir.text());
  };
  const Accumulation a;
  const std::string good = input(0, a.slice, "axis=\"1\"") + input(1, a.state) + output(2, a.result);
  const std::string back = back_edge(a.result, a.state);
  EXPECT_EQ(refused(good, back), "");
  const auto expect = [&](const std::string& map, const std::string& edges, const std::string& part) {
    const auto what = refused(map, edges);
    EXPECT_NE(what.find(part), std::string::npos) << "wanted \"" << part << "\", got \"" << what << "\"";
  };
  expect(good + input(1, 77), back, "the body has no such layer");
  expect(good + input(1, a.state), back, "mapped twice");
  expect(good + input(9, a.result), back, "is a Result, wanted a Parameter");
  expect(input(0, a.slice, "axis=\"1\" stride=\"0\"") + input(1, a.state) + output(2, a.result), back,
         "stride 0");
  expect(input(0, a.slice, "axis=\"1\" part_size=\"0\"") + input(1, a.state) + output(2, a.result), back,
         "part_size 0");
  expect(input(0, a.slice, "axis=\"7\"") + input(1, a.state) + output(2, a.result), back, "axis");
  expect(input(8, a.slice, "axis=\"1\"") + input(1, a.state) + output(2, a.result), back, "input port 8");
  expect(input(0, a.slice, "axis=\"1\"") + output(2, a.result), "",
         "parameter 'state' of the body gets no value");
  expect(good + output(2, a.result), back, "two results are mapped to output port 2");
  expect(good + output(44, a.result), back, "output port 44");
  expect(good, back_edge(a.state, a.result), "wanted a");
  expect(good, back_edge(55, a.state), "the body has no such layer");
  expect(input(0, a.slice, "axis=\"1\"") + input(1, a.state), back, "no output 0");
}

TEST(IrControl, BodyWithoutResult) {
  IrText inside;
  inside.parameter("p", "1");
  IrText ir;
  const int x = ir.parameter("x", "1");
  ir.result({ir.layer("TensorIterator", "opset1", "", {{x}}, 1,
                      port_map(input(0, 0)) + "<body>" + inside.body() + "</body>")});
  EXPECT_NE(refusal(ir.text()).find("has no Result"), std::string::npos);
}

TEST(IrControl, SlicesThatDisagree) {
  IrText inside;
  const int a = inside.parameter("a", "1,1"), b = inside.parameter("b", "1,1");
  const int r = inside.result({inside.layer("Add", "opset1", "", {{a}, {b}})});
  IrText ir;
  const int x = ir.parameter("x", "1,4"), y = ir.parameter("y", "1,5");
  ir.result({ir.layer("TensorIterator", "opset1", "", {{x}, {y}}, 1,
                      port_map(input(0, a, "axis=\"1\"") + input(1, b, "axis=\"1\"") + output(2, r)) +
                          "<body>" + inside.body() + "</body>")});
  EXPECT_NE(refusal(ir.text()), "");
}

TEST(IrControl, LoopCountsAndStops) {
  IrText ir;
  const int trips = ir.parameter("trips", "", "i64"),
            go = ir.constant("boolean", "", std::string_view("\1", 1));
  const int start = ir.parameter("start", "1");
  IrText inside = ir.body_of_this();
  const int i = inside.parameter("i", "", "i64"), v = inside.parameter("v", "1");
  const int as_float = inside.layer("Convert", "opset1", "destination_type=\"f32\"", {{i}});
  const int sum = inside.layer("Add", "opset1", "", {{v}, {as_float}});
  const int limit = inside.constant("1", Values{9});
  const int less = inside.layer("Less", "opset1", "", {{sum}, {limit}});
  const int next = inside.result({sum}), goes_on = inside.result({less});
  ir.bin = inside.bin;
  const std::string map =
      port_map(input(-1, i, "purpose=\"current_iteration\"") + input(2, v) + output(3, next) +
               output(4, next, "axis=\"0\"") + output(-1, goes_on, "purpose=\"execution_condition\""));
  const int loop = ir.layer("Loop", "opset5", "", {{trips}, {go}, {start}}, 2,
                            map + back_edge(next, v) + "<body>" + inside.body() + "</body>");
  ir.result({loop, 3});
  ir.result({loop, 4});
  const auto three = run(ir, {integers({}, {3}), floats({1}, {0})});
  EXPECT_EQ(values(three.at(0)), (Values{3}));
  EXPECT_EQ(values(three.at(1)), (Values{0, 1, 3}));
  const auto unlimited = run(ir, {integers({}, {-1}), floats({1}, {0})});
  EXPECT_EQ(values(unlimited.at(1)), (Values{0, 1, 3, 6, 10}));
}

TEST(IrControl, IfTakesABranch) {
  IrText ir;
  const int condition = ir.parameter("c", "", "boolean"), x = ir.parameter("x", "2"),
            y = ir.parameter("y", "2");
  IrText then_body, else_body;
  const int a = then_body.parameter("a", "2"), b = then_body.parameter("b", "2");
  const int sum = then_body.result({then_body.layer("Add", "opset1", "", {{b}, {a}})});
  const int q = else_body.parameter("q", "2");
  const int negative = else_body.result({else_body.layer("Negative", "opset1", "", {{q}})});
  const std::string inside = port_map(input(1, a) + input(2, b) + output(3, sum), "then_port_map") +
                             port_map(input(2, q) + output(3, negative), "else_port_map") + "<then_body>" +
                             then_body.body() + "</then_body><else_body>" + else_body.body() + "</else_body>";
  ir.result({ir.layer("If", "opset8", "", {{condition}, {x}, {y}}, 1, inside)});
  const std::vector<Tensor> rest = {floats({2}, {1, 2}), floats({2}, {10, 20})};
  EXPECT_EQ(values(run(ir, {Tensor::scalar(true), rest[0], rest[1]}).at(0)), (Values{11, 22}));
  EXPECT_EQ(values(run(ir, {Tensor::scalar(false), rest[0], rest[1]}).at(0)), (Values{-10, -20}));
}

TEST(IrControl, BodiesTakeTheSizesThatEnter) {
  // Parameters of bodies keep the sizes of the file when the inputs of the model are given others.
  Accumulation a;
  a.finish("axis=\"1\"", "axis=\"1\"");
  const auto out = run(a.ir, {floats({2, 2}, {1, 2, 3, 4}), floats({2, 1}, {100, 200})},
                       {.shapes = {{"x", Shape{2, 2}}, {"s", Shape{2, 1}}}});
  EXPECT_EQ(values(out.at(0)), (Values{103, 207}));
  EXPECT_EQ(values(out.at(1)), (Values{101, 103, 203, 207}));

  IrText ir;
  const int condition = ir.parameter("c", "", "boolean"), x = ir.parameter("x", "2");
  IrText then_body, else_body;
  const int p = then_body.parameter("p", "2"), q = else_body.parameter("q", "2");
  const int yes = then_body.result({then_body.layer("Abs", "opset1", "", {{p}})});
  const int no = else_body.result({else_body.layer("Negative", "opset1", "", {{q}})});
  const std::string inside = port_map(input(1, p) + output(2, yes), "then_port_map") +
                             port_map(input(1, q) + output(2, no), "else_port_map") + "<then_body>" +
                             then_body.body() + "</then_body><else_body>" + else_body.body() + "</else_body>";
  ir.result({ir.layer("If", "opset8", "", {{condition}, {x}}, 1, inside)});
  const auto three = floats({3}, {1, -2, 3});
  const ReadSettings of_three = {.shapes = {{"x", Shape{3}}}};
  EXPECT_EQ(values(run(ir, {Tensor::scalar(true), three}, of_three).at(0)), (Values{1, 2, 3}));
  EXPECT_EQ(values(run(ir, {Tensor::scalar(false), three}, of_three).at(0)), (Values{-1, 2, -3}));
}

TEST(IrControl, CarriedSizesThatTheBackEdgeGivesOtherwise) {
  // The first state is broadcast: the file says so at the port of what goes around.
  Accumulation a;
  const std::string port = "<output><port id=\"2\"/>";
  a.body.replace(a.body.find(port), port.size(), "<output><port id=\"2\"><dim>-1</dim><dim>1</dim></port>");
  a.finish("axis=\"1\"", "axis=\"1\"");
  const auto out = run(a.ir, {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({1, 1}, {100})},
                       {.shapes = {{"x", Shape{2, 3}}}});
  EXPECT_EQ(out.at(0).shape(), (Dims{2, 1}));
  EXPECT_EQ(values(out.at(0)), (Values{106, 115}));
  EXPECT_EQ(values(out.at(1)), (Values{101, 103, 106, 104, 109, 115}));
}

TEST(IrControl, UnsupportedLayersInBodiesAreListed) {
  IrText inside;
  const int p = inside.parameter("p", "1,1");
  const int r = inside.result({inside.layer("Wonder", "opset1", "", {{p}})});
  IrText ir;
  const int x = ir.parameter("x", "1,4");
  ir.result(
      {ir.layer("TensorIterator", "opset1", "", {{x}}, 1,
                port_map(input(0, p, "axis=\"1\"") + output(1, r)) + "<body>" + inside.body() + "</body>")});
  const auto loaded = read(ir);
  ASSERT_EQ(loaded.unsupported.size(), 1U);
  EXPECT_EQ(loaded.unsupported[0].type, "Wonder");
}

}  // namespace
}  // namespace lamina::testing
