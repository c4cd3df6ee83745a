#include "ops/control.h"

#include "interpreter/interpreter.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

TensorType i64(Shape shape) { return {ElementType::i64, std::move(shape)}; }
TensorType boolean(Shape shape = Shape(std::vector<Dim>{})) {
  return {ElementType::boolean, std::move(shape)};
}
const Shape kScalar = Shape(std::vector<Dim>{});

/// x -> (x + 1), or x -> (x[0] on axis 0) when `shorter`.
Graph plus_one() {
  Graph g;
  const auto x = g.add_input("x", f32(Shape()));
  g.add_result("y", g.add(Add{}, {x, g.add_constant(Tensor::scalar(1.0f))}));
  return g;
}
Graph running_sum() {
  Graph g;
  const auto x = g.add_input("x", f32(Shape()));
  g.add_result("y", g.add(CumSum{}, {x, g.add_constant(ints({0}))}));
  return g;
}

/// A graph around one node: inputs of these types, results are the node's outputs.
Graph around(Op op, const std::vector<TensorType>& types, std::vector<Graph> bodies, int outputs) {
  Graph g;
  std::vector<ValueId> inputs;
  for (const auto& t : types)
    inputs.push_back(t.element == ElementType::undefined ? ValueId{} : g.add_input("", t));
  const auto node = g.add_node(std::move(op), inputs, "n", outputs, std::move(bodies));
  for (auto v : g.node(node).outputs) g.add_result("", v);
  return g;
}

std::string type_of(const Graph& g, std::size_t result = 0) {
  return to_string(g.type(g.results()[result].value));
}

TEST(If, takes_a_branch) {
  const auto g = around(If{}, {boolean(), f32({3})}, {plus_one(), running_sum()}, 1);
  EXPECT_EQ(type_of(g), "f32[3]");
  const auto x = floats({1, 2, 3});
  expect_values(interpret(g, {Tensor::scalar(true), x})[0], {3}, {2, 3, 4});
  expect_values(interpret(g, {Tensor::scalar(false), x})[0], {3}, {1, 3, 6});
}

Graph repeated() {
  Graph g;
  const auto x = g.add_input("x", f32(Shape()));
  g.add_result("y", g.add(Concat{0}, {x, x}));
  return g;
}

TEST(If, says_only_what_both_branches_say) {
  EXPECT_EQ(type_of(around(If{}, {boolean(), f32({3, 2})}, {plus_one(), repeated()}, 1)), "f32[?,2]");
  EXPECT_EQ(type_of(around(If{}, {boolean(), f32({dim("N")})}, {plus_one(), running_sum()}, 1)), "f32[N]");
  Graph other;
  other.add_input("x", f32(Shape()));
  other.add_result("y", other.add_constant(ints({1})));
  EXPECT_ERROR(around(If{}, {boolean(), f32({3})}, {plus_one(), other}, 1), "output 0 has types f32 and i64");
}

TEST(If, passes_over_a_branch_that_cannot_run) {
  Graph squeezed;
  const auto x = squeezed.add_input("x", f32(Shape()));
  squeezed.add_result("y", squeezed.add(Squeeze{}, {x, squeezed.add_constant(ints({0}))}));
  EXPECT_EQ(type_of(around(If{}, {boolean(), f32({3, 2})}, {squeezed, plus_one()}, 1)), "f32[3,2]");
  EXPECT_ERROR(around(If{}, {boolean(), f32({3, 2})}, {squeezed, squeezed}, 1), "neither branch");
}

TEST(If, refuses_wrong_bodies) {
  EXPECT_ERROR(around(If{}, {boolean(), f32({3})}, {plus_one()}, 1), "1 bodies");
  EXPECT_ERROR(around(If{}, {boolean()}, {plus_one(), plus_one()}, 1), "has 1 parameters, wanted 0");
  EXPECT_ERROR(around(If{}, {boolean(), f32({3})}, {plus_one(), plus_one()}, 2), "has 1 results, wanted 2");
  EXPECT_ERROR(around(If{}, {f32({2}), f32({3})}, {plus_one(), plus_one()}, 1), "the condition has type f32");
}

/// Body of: sum += step; goes on while sum < 10; the sum of each iteration is collected.
Graph summing_body(bool endless) {
  Graph g;
  g.add_input("i", i64(kScalar));
  const auto cond = g.add_input("cond", boolean());
  const auto sum = g.add_input("sum", f32(Shape())), step = g.add_input("step", f32(Shape()));
  const auto next = g.add(Add{}, {sum, step}, "next");
  const auto small = g.add(Less{}, {next, g.add_constant(Tensor::scalar(10.0f))});
  g.add_result("go", endless ? cond : small);
  g.add_result("sum", next);
  g.add_result("all", g.add(Unsqueeze{}, {next, g.add_constant(ints({0}))}));
  return g;
}

Loop summing_loop() {
  Loop op;
  op.carried = 1;
  op.concat_axes = {0};
  return op;
}

TEST(Loop, runs_until_its_condition_fails) {
  const auto g =
      around(summing_loop(), {i64(kScalar), boolean(), f32(kScalar), f32(kScalar)}, {summing_body(false)}, 2);
  EXPECT_EQ(type_of(g, 0), "f32[]");
  EXPECT_EQ(type_of(g, 1), "f32[?]");
  const auto run = [&](std::int64_t trips, bool first) {
    return interpret(
        g, {Tensor::scalar(trips), Tensor::scalar(first), Tensor::scalar(1.0f), Tensor::scalar(4.0f)});
  };
  auto out = run(-1, true);
  expect_values(out[0], {}, {13});
  expect_values(out[1], {3}, {5, 9, 13});
  out = run(2, true);
  expect_values(out[0], {}, {9});
  expect_values(out[1], {2}, {5, 9});
  out = run(5, false);
  expect_values(out[0], {}, {1});
  expect_values(out[1], {0}, {});
  EXPECT_EQ(run(0, true)[1].shape(), Dims{0});
}

TEST(Loop, knows_how_often_it_runs) {
  Graph g;
  const auto x = g.add_input("x", f32(kScalar));
  const auto trips = g.add_constant(Tensor::scalar<std::int64_t>(7));
  const auto node = g.add_node(summing_loop(), {trips, ValueId{}, x, x}, "n", 2, {summing_body(true)});
  EXPECT_EQ(to_string(g.type(g.node(node).outputs[1])), "f32[7]");
  const auto other = g.add_node(summing_loop(), {trips, ValueId{}, x, x}, "n", 2, {summing_body(false)});
  EXPECT_EQ(to_string(g.type(g.node(other).outputs[1])), "f32[0..7]");
}

/// Body over slices: carried += slice; collects 2 * slice and hands out the last slice.
Graph slicing_body() {
  Graph g;
  g.add_input("i", i64({1}));
  g.add_input("cond", boolean({1}));
  const auto sum = g.add_input("sum", f32(Shape())), x = g.add_input("x", f32(Shape()));
  g.add_result("go", g.add_constant(Tensor::of({1}, std::span<const bool>(std::array{true}))));
  g.add_result("sum", g.add(Add{}, {sum, x}));
  g.add_result("last", x);
  g.add_result("twice", g.add(Add{}, {x, x}));
  return g;
}

Loop slicing_loop() {
  Loop op;
  op.carried = op.last = 1;
  op.slice_axes = {1};
  op.concat_axes = {1};
  return op;
}

std::vector<Tensor> run_slices(const Loop& op, const Tensor& x, const Dims& sum) {
  const auto g = around(op, {{}, {}, f32(Shape::of(sum)), f32(Shape::of(x.shape()))}, {slicing_body()}, 3);
  return interpret(g, {Tensor(ElementType::f32, sum), x});
}

TEST(Loop, walks_over_slices_forwards_and_backwards) {
  auto op = slicing_loop();
  auto out = run_slices(op, counting({2, 3}), {2, 1});
  expect_values(out[0], {2, 1}, {3, 12});
  expect_values(out[1], {2, 1}, {2, 5});
  expect_values(out[2], {2, 3}, {0, 2, 4, 6, 8, 10});
  op.slice_strides = {-1};
  out = run_slices(op, counting({2, 3}), {2, 1});
  expect_values(out[1], {2, 1}, {0, 3});
  expect_values(out[2], {2, 3}, {4, 2, 0, 10, 8, 6});
  op.slice_starts = {-1};
  op.slice_ends = {0};
  op.concat_strides = {-1};
  out = run_slices(op, counting({2, 3}), {2, 1});
  expect_values(out[2], {2, 3}, {0, 2, 4, 6, 8, 10});
}

TEST(Loop, takes_parts_of_an_axis) {
  auto op = slicing_loop();
  op.slice_part_sizes = {2};
  auto out = run_slices(op, counting({1, 5}), {1, 2});  // the fifth is left over
  expect_values(out[0], {1, 2}, {2, 4});
  op.slice_part_sizes = {};
  op.slice_starts = {1};
  op.slice_ends = {-2};
  out = run_slices(op, counting({1, 5}), {1, 1});
  expect_values(out[2], {1, 3}, {2, 4, 6});
}

TEST(Loop, infers_through_slices) {
  EXPECT_EQ(
      type_of(around(slicing_loop(), {{}, {}, f32({2, 1}), f32({2, dim("T")})}, {slicing_body()}, 3), 2),
      "f32[2,T]");
  EXPECT_EQ(type_of(around(slicing_loop(), {i64({1}), {}, f32({2, 1}), f32({2, 6})}, {slicing_body()}, 3), 2),
            "f32[2,0..6]");
  EXPECT_EQ(type_of(around(slicing_loop(), {{}, {}, f32({2, 1}), f32(Shape())}, {slicing_body()}, 3), 2),
            "f32[...]");
}

TEST(Loop, widens_what_grows) {
  Graph body;
  body.add_input("i", i64(kScalar));
  const auto cond = body.add_input("cond", boolean()), x = body.add_input("x", f32(Shape()));
  body.add_result("go", cond);
  body.add_result("x", body.add(Concat{0}, {x, x}));
  Loop op;
  op.carried = 1;
  const auto g = around(op, {i64(kScalar), {}, f32({1, 4})}, {body}, 1);
  EXPECT_EQ(type_of(g), "f32[?,4]");
  EXPECT_EQ(interpret(g, {Tensor::scalar<std::int64_t>(3), counting({1, 4})})[0].shape(), (Dims{8, 4}));
}

TEST(Loop, refuses_wrong_declarations) {
  const std::vector<TensorType> types{{}, {}, f32({2, 1}), f32({2, 3})};
  auto op = slicing_loop();
  op.carried = -1;
  EXPECT_ERROR(around(op, types, {slicing_body()}, 3), "carried is -1");
  op.carried = 3;
  EXPECT_ERROR(around(op, types, {slicing_body()}, 3), "4 inputs, wanted at least 6");
  op = slicing_loop();
  op.slice_axes = {2};
  EXPECT_ERROR(around(op, types, {slicing_body()}, 3), "slice axis is 2");
  op.slice_axes = {1};
  op.slice_strides = {0};
  EXPECT_ERROR(around(op, types, {slicing_body()}, 3), "wanted the same size");
  op.slice_strides = {1, 1};
  EXPECT_ERROR(around(op, types, {slicing_body()}, 3), "for 1 sliced inputs");
  op.slice_strides = {};
  op.slice_ends = {9};
  EXPECT_ERROR(around(op, types, {slicing_body()}, 3), "leave an axis of 3");
  EXPECT_ERROR(around(slicing_loop(), types, {slicing_body()}, 2), "2 outputs, wanted 3");
  EXPECT_ERROR(around(slicing_loop(), types, {slicing_body(), slicing_body()}, 3), "2 bodies");
  EXPECT_ERROR(around(slicing_loop(), types, {plus_one()}, 3), "the body has 1 results, wanted 4");
}

/// `levels` branches in each other around plus_one().
Graph nested_branches(int levels) {
  Graph inner = plus_one();
  for (int i = 0; i < levels; ++i) {
    Graph outer;
    const auto x = outer.add_input("x", f32(Shape()));
    const auto condition = outer.add_input("c", {ElementType::boolean, Shape(std::vector<Dim>{})});
    std::vector<ValueId> inputs{condition, x};
    if (i > 0) inputs.push_back(condition);
    Graph other = plus_one();
    if (i > 0) other.add_input("c", {ElementType::boolean, Shape(std::vector<Dim>{})});
    const auto n = outer.add_node(If{}, inputs, "n", 1, {inner, other});
    outer.add_result("y", outer.node(n).outputs[0]);
    inner = std::move(outer);
  }
  return inner;
}

TEST(If, bodies_may_be_nested_deep_but_not_without_end) {
  EXPECT_EQ(nested_branches(30).results().size(), 1u);
  EXPECT_ERROR(nested_branches(70), "bodies are nested more than 64 deep");
}

TEST(ReadValue, gives_its_initial_value) {
  expect_values(evaluate(ReadValue{"a", Shape(), ElementType::undefined}, {floats({1, 2})}), {2}, {1, 2});
  expect_values(evaluate(ReadValue{"a", {2}, ElementType::f32}, {}), {2}, {0, 0});
  EXPECT_EQ(infer(ReadValue{"a", {dim("N"), 3}, ElementType::f32}, {}), "f32[N,3]");
  expect_values(evaluate(ReadValue{"a", {dim("N"), 3}, ElementType::f32}, {}), {0, 3}, {});
  EXPECT_ERROR(evaluate(ReadValue{"a", Shape(), ElementType::f32}, {}), "neither an initial value");
  EXPECT_EQ(infer(ReadValue{"a", Shape(), ElementType::undefined}, {f32({2})}), "f32[2]");
  EXPECT_EQ(infer(ReadValue{"a", {dim("N"), 3}, ElementType::f32}, {f32({0, 3})}), "f32[N,3]");
  EXPECT_EQ(infer(ReadValue{"a", Shape(), ElementType::f32}, {f32({0, 3})}), "f32[...]");
  EXPECT_ERROR(infer(ReadValue{"a", {3}, ElementType::f32}, {f32({2})}), "variable \"a\" has shape [3]");
  expect_values(evaluate(Assign{"a"}, {floats({1, 2})}), {2}, {1, 2});
}

TEST(Opaque, is_named_when_it_is_run) {
  const Opaque op{"com.example", "Magic", "3", {"a=1"}};
  EXPECT_EQ(Op(op).name(), "Magic");
  EXPECT_EQ(infer(op, {f32({2})}), "undefined[...]");
  EXPECT_ERROR(evaluate(op, {floats({1})}), "operator \"Magic\" of \"com.example\" is not known");
}

}  // namespace
}  // namespace lamina::testing
