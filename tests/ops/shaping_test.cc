#include "ops/shaping.h"

#include "graph/text.h"
#include "graph/verify.h"
#include "op_testing.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/operators.h"

namespace lamina::testing {
namespace {

TEST(Reshape, Infers) {
  const auto n = dim("N"), h = dim("H");
  const auto reshape = [](Shape x, const Ints& pattern, bool special_zero = false) {
    return infer(Reshape{.special_zero = special_zero}, {f32(std::move(x)), ints(pattern)});
  };
  EXPECT_EQ(reshape({2, 3, 4}, {6, -1}), "f32[6,4]");
  EXPECT_EQ(reshape({2, 3, 4}, {0, -1}, true), "f32[2,12]");
  EXPECT_EQ(reshape({n, 3, 4}, {0, -1}, true), "f32[N,12]");
  EXPECT_EQ(reshape({n, 3, 4}, {-1, 12}), "f32[N,12]");
  EXPECT_EQ(reshape({n, h, 4}, {0, 0, 2, -1}, true), "f32[N,H,2,2]");
  EXPECT_EQ(reshape({n, 3, 4}, {-1}), "f32[?]");
  EXPECT_EQ(reshape(Shape(), {0, 3}, true), "f32[?,3]");
  EXPECT_EQ(reshape({0, 4}, {0, -1}), "f32[0,4]");
  EXPECT_EQ(reshape({2, 0}, {-1, 2}), "f32[0,2]");
  EXPECT_EQ(infer(Reshape{}, {f32({2, 3}), TensorType{ElementType::i64, {3}}}), "f32[?,?,?]");
  EXPECT_EQ(infer(Reshape{}, {f32({2, 3}), TensorType{ElementType::i64, Shape()}}), "f32[...]");
  EXPECT_EQ(infer(Reshape{}, {f32({1}), Tensor::of<std::int64_t>({0}, Ints{})}), "f32[]");
}

TEST(Reshape, FollowsShapeArithmetic) {
  Graph g;
  const auto x = g.add_input("x", f32({dim("N"), 3, 4}));
  const auto y = g.add_input("y", f32({dim("N"), 2}));
  const auto shape = g.add(ShapeOf{}, {y});
  const auto flat = g.add(Reshape{}, {x, shape});
  EXPECT_EQ(to_string(g.type(flat)), "f32[N,2]");
  EXPECT_EQ(to_string(g.type(shape)), "i64[2]");
}

/// "To the end", as PyTorch writes it.
TEST(ShapeArithmetic, SlicesToTheLargestInteger) {
  Graph g;
  const auto x = g.add_input("x", f32({dim("N"), 6, dim("H")}));
  const auto number = [&](std::int64_t n) { return g.add_constant(Tensor::of({1}, std::vector{n})); };
  const auto shape = g.add(ShapeOf{}, {x});
  for (const auto end : {INT64_MAX, std::int64_t{7}, std::int64_t{3}}) {
    const auto known = dims_of_value(g, g.add(Slice{}, {shape, number(1), number(end), number(1)}));
    ASSERT_TRUE(known.has_value());
    ASSERT_EQ(known->size(), 2u);
    EXPECT_EQ(known->at(0), Dim(6));
  }
}

/// The sizes of a scalar are no numbers at all: so are their sums and products with a single number.
TEST(ShapeArithmetic, CombinesEmptyListsWithSingleNumbers) {
  for (const auto& op : {Op(Add{}), Op(Subtract{}), Op(Multiply{}), Op(Divide{})}) {
    Graph g;
    const auto sizes = g.add(ShapeOf{}, {g.add_input("x", f32(Shape(std::vector<Dim>())))});
    const auto number = g.add_constant(ints({1}));
    const auto scalar = g.add_constant(Tensor::scalar<std::int64_t>(2));
    const auto three = g.add(ShapeOf{}, {g.add_input("y", f32({5, 6, 7}))});
    for (const auto& [a, b] :
         {std::pair(sizes, number), {number, sizes}, {sizes, scalar}, {scalar, sizes}, {sizes, sizes}})
      EXPECT_EQ(dims_of_value(g, g.add(op, {a, b})), std::vector<Dim>()) << op.name();
    EXPECT_EQ(dims_of_value(g, g.add(op, {number, number})).value().size(), 1U) << op.name();
    EXPECT_EQ(dims_of_value(g, g.add(op, {three, scalar})).value().size(), 3U) << op.name();
    EXPECT_ERROR(g.add(op, {sizes, three}), "broadcast");
  }
}

/// A list is not one that the shape of the value has no room for.
TEST(ShapeArithmetic, KnowsNothingOfWhatItsShapeContradicts) {
  Graph g;
  const auto sizes = g.add(ShapeOf{}, {g.add_input("x", f32({5, 6}))});
  const auto open = g.add(Identity{}, {sizes});
  g.set_type(open, {ElementType::i64, Shape::of_rank(1)});
  EXPECT_EQ(dims_of_value(g, open).value().size(), 2U);
  for (const auto& shape : {Shape(std::vector<Dim>()), Shape({3}), Shape({Dim(3, 8)}), Shape({1, 2})}) {
    g.set_type(open, {ElementType::i64, shape});
    EXPECT_FALSE(dims_of_value(g, open).has_value()) << to_string(shape);
  }
}

TEST(ShapeArithmetic, KnowsNothingOfWhatItsTypeCutsOff) {
  Graph g;
  const auto x = g.add_input("x", f32({300, 4, dim("N")}));
  const auto shape = g.add(ShapeOf{}, {x});
  const auto as = [&](ElementType type) { return dims_of_value(g, g.add(Convert{type}, {shape})); };
  EXPECT_EQ(as(ElementType::i32).value(), (std::vector<Dim>{300, 4, dim("N")}));
  EXPECT_FALSE(as(ElementType::u8).has_value());  // 300 becomes 44
  const auto far = g.add_constant(ints({std::int64_t{1} << 62})), four = g.add_constant(ints({4}));
  EXPECT_FALSE(dims_of_value(g, g.add(Multiply{}, {far, four})).has_value());
  EXPECT_EQ(dims_of_value(g, g.add(Add{}, {four, four})).value(), std::vector<Dim>{8});
  const auto u32 = [&](std::int64_t v) { return g.add_constant(of_type(ElementType::u32, {1}, {v})); };
  EXPECT_FALSE(dims_of_value(g, g.add(Subtract{}, {u32(3), u32(5)})).has_value());  // wraps
  EXPECT_EQ(dims_of_value(g, g.add(Subtract{}, {u32(5), u32(3)})).value(), std::vector<Dim>{2});
  const auto most = g.add_constant(Tensor::of({1}, std::vector<std::uint64_t>{UINT64_MAX}));
  EXPECT_FALSE(dims_of_value(g, most).has_value());
}

TEST(ShapeArithmetic, KnowsNothingOfWhatMayBeNegative) {
  Graph g;
  const auto x = g.add_input("x", f32({dim("N"), Dim(2, 5), Dim(2, 5)}));
  const auto shape = g.add(ShapeOf{}, {x});
  const auto number = [&](std::int64_t n) { return g.add_constant(ints({n})); };
  const auto known = [&](ValueId v) {
    const auto dims = dims_of_value(g, v);
    return dims && std::any_of(dims->begin(), dims->end(), [](const Dim& d) { return d.known(); });
  };
  const auto minus = g.add(Multiply{}, {shape, number(-1)}),
             second = g.add(Slice{}, {shape, number(1), number(2), number(1)}),
             third = g.add(Slice{}, {shape, number(2), number(3), number(1)});
  EXPECT_FALSE(known(g.add(Subtract{}, {number(0), shape})));
  EXPECT_FALSE(known(g.add(Subtract{}, {second, number(5)})));
  EXPECT_FALSE(known(g.add(Divide{}, {g.add(Subtract{}, {number(3), second}), number(4)})));
  EXPECT_FALSE(known(minus));
  EXPECT_FALSE(known(g.add(Add{}, {third, g.add(Multiply{}, {second, number(-1)})})));
  EXPECT_FALSE(known(g.add(Divide{}, {g.add(Add{}, {second, number(-3)}), number(9)})));
  EXPECT_EQ(dims_of_value(g, g.add(Subtract{}, {number(7), second})).value(), std::vector<Dim>{Dim(2, 5)});
  EXPECT_EQ(dims_of_value(g, g.add(Add{}, {second, number(3)})).value(), std::vector<Dim>{Dim(5, 8)});
}

/// Where there are no elements a size of the pattern that is not known may be any.
TEST(Reshape, LeavesSizesOpenBesideZero) {
  const auto made = [](const std::string& type, const std::string& rest) {
    const auto g = parse_graph("graph (x: " + type + ", w: f32[8]) -> (y) {\n" +
                                   "  nz = NonZero(w)\n  s = ShapeOf(nz)\n  rest = const i64" + rest +
                                   "\n  one = const i64[1] {1}\n  zero = const i64[] {0}\n"
                                   "  count = Gather(s, one, zero)\n  p = Concat(count, rest) axis=0\n"
                                   "  y = Reshape(x, p)\n}\n",
                               operators());
    return to_string(g.type(g.results()[0].value));
  };
  EXPECT_EQ(made("f32[6]", "[1] {3}"), "f32[2,3]");
  EXPECT_EQ(made("f32[0,6]", "[1] {3}"), "f32[0,3]");
  EXPECT_EQ(made("f32[0,6]", "[2] {0, 3}"), "f32[0..8,0,3]");
  EXPECT_EQ(made("f32[0,3]", "[1] {0}"), "f32[0..8,0]");
  EXPECT_EQ(made("f32[0]", "[2] {0, 3}"), "f32[0..8,0,3]");
  EXPECT_EQ(made("f32[0,4]", "[2] {0, 3}"), "f32[0..8,0,3]");
  EXPECT_EQ(infer(Reshape{}, {f32({5, 0}), ints({-1, 0})}), "f32[5,0]");
  EXPECT_EQ(infer(Reshape{}, {f32({0}), ints({-1, 0, 3})}), "f32[0,0,3]");
}

/// A size that cancels may be 0 when the model runs: only then it fits.
TEST(Reshape, MayFitWithoutElementsOnly) {
  const auto made = [](const std::string& before, const std::string& rest) {
    const auto g = parse_graph(
        "graph (x: f32[N,2]) -> (y) {\n  s = ShapeOf(x)\n  zero = const i64[] {0}\n"
        "  first = const i64[1] {0}\n  n = Gather(s, first, zero)\n  before = const i64" +
            before + "\n  rest = const i64" + rest +
            "\n  p = Concat(before, n, rest) axis=0\n  y = Reshape(x, p)\n}\n",
        operators());
    return to_string(g.type(g.results()[0].value));
  };
  EXPECT_EQ(made("[1] {6}", "[1] {-1}"), "f32[6,N,?]");
  EXPECT_EQ(made("[1] {0}", "[1] {-1}"), "f32[0,N,?]");
  EXPECT_EQ(infer(Reshape{}, {f32({0, 2}), ints({6, 0, -1})}), "f32[6,0,0]");
  EXPECT_EQ(infer(Reshape{}, {f32({0, 6}), ints({0, 0, -1})}), "f32[0,0,6]");
  EXPECT_EQ(infer(Reshape{}, {f32({2, 0}), ints({0, 0, -1})}), "f32[0,0,2]");
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(infer(Reshape{}, {f32({2, 3}), ints({4, 2})}), "6 elements");
  EXPECT_ERROR(infer(Reshape{}, {f32({2, 3}), ints({4, -1})}), "not a multiple of 4");
  EXPECT_ERROR(infer(Reshape{}, {f32({2, 3}), ints({-1, -1})}), "more than one -1");
  EXPECT_ERROR(infer(Reshape{}, {f32({2, 3}), ints({-2, 3})}), "dimension -2");
  EXPECT_ERROR(infer(Reshape{}, {f32({2, 3}), ints({0, -1})}), "dimension of 0");
  EXPECT_ERROR(infer(Reshape{.special_zero = true}, {f32({6}), ints({6, 0})}), "keeps dimension 1");
  EXPECT_ERROR(infer(Reshape{}, {f32({6}), floats({6})}), "wanted integers");
  EXPECT_ERROR(infer(Reshape{}, {f32({6}), Tensor::of<std::int64_t>({1, 1}, Ints{6})}), "rank 0 to 1");
  EXPECT_ERROR(infer(Reshape{}, {f32({6}), ints({INT64_MAX, INT64_MAX})}), "");
}

TEST(Reshape, KeepsTheElements) {
  expect_values(evaluate(Reshape{}, {counting({2, 3}), ints({3, -1})}), {3, 2}, {0, 1, 2, 3, 4, 5});
}

TEST(Squeeze, Infers) {
  const auto n = dim("N");
  EXPECT_EQ(infer(Squeeze{}, {f32({1, n, 1}), ints({0, -1})}), "f32[N]");
  EXPECT_EQ(infer(Squeeze{}, {f32({1, n, 1}), ints({1})}), "f32[1,1]");
  EXPECT_EQ(infer(Squeeze{}, {f32({1, 3, 1})}), "f32[3]");
  EXPECT_EQ(infer(Squeeze{}, {f32({1, n, 1})}), "f32[...]");
  EXPECT_EQ(infer(Squeeze{}, {f32({1, dim("M", 2), 1})}), "f32[M:2..]");
  EXPECT_EQ(infer(Squeeze{.allow_axis_skip = true}, {f32({1, 3}), ints({0, 1})}), "f32[3]");
  EXPECT_EQ(infer(Squeeze{.allow_axis_skip = true}, {f32({1, n}), ints({0, 1})}), "f32[...]");
  EXPECT_ERROR(infer(Squeeze{}, {f32({1, 3}), ints({1})}), "wanted a dimension of 1");
  EXPECT_ERROR(infer(Squeeze{}, {f32({1, 3}), ints({2})}), "axes is 2");
  expect_values(evaluate(Squeeze{}, {counting({1, 2, 1})}), {2}, {0, 1});
}

TEST(Unsqueeze, Infers) {
  EXPECT_EQ(infer(Unsqueeze{}, {f32({dim("N"), 3}), ints({0, -1})}), "f32[1,N,3,1]");
  EXPECT_EQ(infer(Unsqueeze{}, {f32({3}), Tensor::scalar<std::int64_t>(1)}), "f32[3,1]");
  EXPECT_EQ(infer(Unsqueeze{}, {f32({3}), TensorType{ElementType::i64, {2}}}), "f32[?,?,?]");
  EXPECT_ERROR(infer(Unsqueeze{}, {f32({3}), ints({0, 0})}), "twice");
  EXPECT_ERROR(infer(Unsqueeze{}, {f32({3}), ints({2})}), "axes is 2");
  expect_values(evaluate(Unsqueeze{}, {counting({2}), ints({1})}), {2, 1}, {0, 1});
}

TEST(Transpose, PermutesAxes) {
  const Tensor x = counting({2, 3});
  expect_values(evaluate(Transpose{}, {x, ints({1, 0})}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_values(evaluate(Transpose{}, {x}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_values(evaluate(Transpose{}, {x, Tensor::of<std::int64_t>({0}, Ints{})}), {3, 2},
                {0, 3, 1, 4, 2, 5});
  expect_values(evaluate(Transpose{}, {counting({2, 2, 2}), ints({0, 2, 1})}), {2, 2, 2},
                {0, 2, 1, 3, 4, 6, 5, 7});
  for (auto type : {ElementType::i8, ElementType::f16, ElementType::f64, ElementType::boolean})
    expect_values(evaluate(Transpose{}, {of_type(type, {2, 2}, {0, 1, 1, 1})}), {2, 2}, {0, 1, 1, 1});
}

TEST(Reshape, RefusesAScalarOfSeveralElementsWhateverThePatternHolds) {
  const TensorType empty{ElementType::i64, {0}};
  EXPECT_EQ(infer(Reshape{}, {f32({1, dim("N")}), empty}), "f32[]");
  EXPECT_ERROR(infer(Reshape{}, {f32({2, 3}), empty}), "[2,3] has more than the one element of a scalar");
}

TEST(Transpose, VerifyFindsOrdersThatAreNone) {
  Graph g;
  const auto x = g.add_input("x", f32({2, 3}));
  const auto y = g.add(Transpose{}, {x, g.add_constant(ints({1, 0}))}, "turn");
  g.add_result("y", y);
  EXPECT_EQ(verify(g), std::vector<std::string>());
  g.set_input(g.producer(y), 1, g.add_constant(ints({-1, 0})));
  const auto found = verify(g);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("order has -1, wanted 0 to 1"), std::string::npos) << found[0];
}

TEST(Transpose, Infers) {
  const auto n = dim("N");
  EXPECT_EQ(infer(Transpose{}, {f32({n, 3, 4}), ints({2, 0, 1})}), "f32[4,N,3]");
  EXPECT_EQ(infer(Transpose{}, {f32({n, 3, 4})}), "f32[4,3,N]");
  EXPECT_EQ(infer(Transpose{}, {f32({n, 3}), TensorType{ElementType::i64, {2}}}), "f32[?,?]");
  EXPECT_EQ(infer(Transpose{}, {f32(Shape()), ints({1, 0})}), "f32[?,?]");
  EXPECT_ERROR(infer(Transpose{}, {f32({n, 3}), ints({0, 0})}), "twice");
  EXPECT_ERROR(infer(Transpose{}, {f32({n, 3}), ints({0, 2})}), "order has 2, wanted 0 to 1");
  EXPECT_ERROR(infer(Transpose{}, {f32({n, 3}), ints({0, -1})}), "order has -1, wanted 0 to 1");
  EXPECT_ERROR(infer(Transpose{}, {f32(Shape()), ints({-1, -2})}), "order has -1");
  EXPECT_ERROR(evaluate(Transpose{}, {counting({2, 3}), ints({-1, 0})}), "order has -1");
  EXPECT_ERROR(infer(Transpose{}, {f32({n, 3}), ints({0})}), "rank 2");
}

TEST(ShapeOf, GivesTheSizes) {
  expect_values(evaluate(ShapeOf{}, {counting({2, 3})}), {2}, {2, 3});
  EXPECT_EQ(evaluate(ShapeOf{.output_type = ElementType::i32}, {counting({2})}).element_type(),
            ElementType::i32);
  EXPECT_EQ(infer(ShapeOf{}, {f32(Shape())}), "i64[?]");
  EXPECT_ERROR(infer(ShapeOf{.output_type = ElementType::f32}, {f32({1})}), "wanted i64 or i32");
}

TEST(Broadcast, Modes) {
  const Tensor x = floats({2, 1}, {1, 2});
  expect_values(evaluate(Broadcast{}, {x, ints({2, 2, 2})}), {2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2});
  const Broadcast both{.mode = BroadcastMode::bidirectional}, mapped{.mode = BroadcastMode::explicit_};
  expect_values(evaluate(both, {x, ints({1, 3})}), {2, 3}, {1, 1, 1, 2, 2, 2});
  expect_values(evaluate(both, {x, ints({1})}), {2, 1}, {1, 2});
  expect_values(evaluate(mapped, {floats({1, 2}), ints({2, 3}), ints({0})}), {2, 3}, {1, 1, 1, 2, 2, 2});
  expect_values(evaluate(mapped, {Tensor::scalar(7.0f), ints({2}), Tensor::of<std::int64_t>({0}, Ints{})}),
                {2}, {7, 7});
}

TEST(Broadcast, Infers) {
  const auto n = dim("N");
  Graph g;
  const auto like = g.add_input("like", f32({n, 4}));
  const auto shape = g.add(ShapeOf{}, {like});
  const auto wide = g.add(Broadcast{}, {g.add_input("x", f32({1, 4})), shape});
  EXPECT_EQ(to_string(g.type(wide)), "f32[N,4]");
  EXPECT_EQ(infer(Broadcast{}, {f32({n, 1}), ints({5, 3, 7})}), "f32[5,3,7]");
  EXPECT_EQ(infer(Broadcast{}, {f32({n, 1}), TensorType{ElementType::i64, {3}}}), "f32[?,?,?]");
  const Broadcast both{.mode = BroadcastMode::bidirectional}, mapped{.mode = BroadcastMode::explicit_};
  EXPECT_ERROR(infer(mapped, {f32({3, 3}), ints({3, 3}), ints({1, 0})}), "does not transpose");
  EXPECT_EQ(infer(both, {f32({n, 1}), ints({1, 7})}), "f32[N,7]");
  EXPECT_EQ(infer(both, {f32({n, 1}), TensorType{ElementType::i64, {3}}}), "f32[?,?,?]");
  EXPECT_ERROR(infer(Broadcast{}, {f32({2}), ints({3})}), "does not broadcast");
  EXPECT_ERROR(infer(Broadcast{}, {f32({2, 2}), ints({2})}), "does not broadcast");
  EXPECT_ERROR(infer(Broadcast{}, {f32({1}), ints({-1})}), "dimension -1");
  EXPECT_ERROR(infer(mapped, {f32({2}), ints({2})}), "no input axes");
  EXPECT_ERROR(infer(mapped, {f32({2}), ints({2, 2}), ints({0, 1})}), "rank 1");
  EXPECT_ERROR(infer(mapped, {f32({2}), ints({2, 2}), ints({5})}), "axes is 5");
}

TEST(Tile, Repeats) {
  expect_values(evaluate(Tile{}, {counting({2, 2}), ints({1, 2})}), {2, 4}, {0, 1, 0, 1, 2, 3, 2, 3});
  expect_values(evaluate(Tile{}, {counting({2}), ints({2, 2})}), {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
  expect_values(evaluate(Tile{}, {counting({2, 1}), ints({2})}), {2, 2}, {0, 0, 1, 1});
  expect_values(evaluate(Tile{}, {counting({2}), ints({0})}), {0}, {});
  EXPECT_EQ(infer(Tile{}, {f32({dim("N"), 3}), ints({1, 2})}), "f32[N,6]");
  EXPECT_EQ(infer(Tile{}, {f32({dim("N"), 3}), TensorType{ElementType::i64, {3}}}), "f32[?,?,?]");
  EXPECT_ERROR(infer(Tile{}, {f32({2}), ints({-1})}), "wanted 0 or more");
  EXPECT_ERROR(evaluate(Tile{}, {counting({2}), ints({INT64_MAX})}), "");
}

TEST(DepthToSpace, BothModes) {
  const Tensor x = counting({1, 8, 1, 2});
  expect_values(evaluate(DepthToSpace{.block_size = 2}, {x}), {1, 2, 2, 4},
                {0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15});
  expect_values(evaluate(DepthToSpace{.mode = DepthMode::depth_first, .block_size = 2}, {x}), {1, 2, 2, 4},
                {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15});
  for (auto mode : {DepthMode::blocks_first, DepthMode::depth_first}) {
    const Tensor space = counting({2, 3, 4, 6, 2}), depth = evaluate(SpaceToDepth{mode, 2}, {space});
    EXPECT_EQ(depth.shape(), (Dims{2, 24, 2, 3, 1}));
    EXPECT_TRUE(evaluate(DepthToSpace{mode, 2}, {depth}).same_as(space));
  }
}

TEST(SpaceToDepth, BlocksFirst) {
  expect_values(evaluate(SpaceToDepth{.block_size = 2}, {counting({1, 1, 2, 4})}), {1, 4, 1, 2},
                {0, 2, 1, 3, 4, 6, 5, 7});
}

TEST(DepthToSpace, Infers) {
  const auto n = dim("N"), h = dim("H");
  EXPECT_EQ(infer(DepthToSpace{.block_size = 2}, {f32({n, 8, 3, 3})}), "f32[N,2,6,6]");
  EXPECT_EQ(infer(SpaceToDepth{.block_size = 2}, {f32({n, 2, 6, h})}), "f32[N,8,3,?]");
  EXPECT_EQ(infer(DepthToSpace{}, {f32({n, 8, h, 3})}), "f32[N,8,H,3]");
  EXPECT_ERROR(infer(DepthToSpace{.block_size = 2}, {f32({n, 6, 3, 3})}), "multiple of 4");
  EXPECT_ERROR(infer(SpaceToDepth{.block_size = 2}, {f32({n, 6, 3, 4})}), "multiple of 2");
  EXPECT_ERROR(infer(DepthToSpace{.block_size = 0}, {f32({n, 6, 3, 4})}), "block_size is 0");
  EXPECT_ERROR(infer(DepthToSpace{.block_size = INT64_MAX}, {f32({n, 6, 3, 4})}), "too large");
  EXPECT_ERROR(infer(DepthToSpace{.block_size = 2}, {f32({n, 6})}), "rank 2");
}

TEST(ShuffleChannels, Interleaves) {
  expect_values(evaluate(ShuffleChannels{.group = 2}, {counting({1, 4, 2})}), {1, 4, 2},
                {0, 1, 4, 5, 2, 3, 6, 7});
  expect_values(evaluate(ShuffleChannels{.axis = -1, .group = 3}, {counting({6})}), {6}, {0, 2, 4, 1, 3, 5});
  EXPECT_ERROR(infer(ShuffleChannels{.group = 3}, {f32({1, 4})}), "multiple of 3");
  EXPECT_ERROR(infer(ShuffleChannels{.axis = 2}, {f32({1, 4})}), "axis is 2");
  EXPECT_ERROR(infer(ShuffleChannels{.group = 0}, {f32({1, 4})}), "group is 0");
}

TEST(BatchToSpace, UndoesSpaceToBatch) {
  const Tensor block = ints({1, 1, 2, 2}), none = ints({0, 0, 0, 0});
  expect_values(evaluate(BatchToSpace{}, {counting({4, 1, 1, 2}), block, none, none}), {1, 1, 2, 4},
                {0, 2, 1, 3, 4, 6, 5, 7});
  expect_values(evaluate(SpaceToBatch{}, {counting({1, 1, 2, 4}), block, none, none}), {4, 1, 1, 2},
                {0, 2, 1, 3, 4, 6, 5, 7});
  const Tensor x = counting({2, 3, 5, 7}), blocks = ints({1, 1, 3, 2}), begin = ints({0, 0, 3, 1}),
               end = ints({0, 0, 1, 2});
  const Tensor batches = evaluate(SpaceToBatch{}, {x, blocks, begin, end});
  EXPECT_EQ(batches.shape(), (Dims{12, 3, 3, 5}));
  EXPECT_TRUE(evaluate(BatchToSpace{}, {batches, blocks, begin, end}).same_as(x));
}

TEST(SpaceToBatch, PadsWithZeros) {
  expect_values(
      evaluate(SpaceToBatch{}, {floats({1, 3}, {1, 2, 3}), ints({1, 2}), ints({0, 1}), ints({0, 0})}), {2, 2},
      {0, 2, 1, 3});
}

TEST(BatchToSpace, Infers) {
  const auto x = f32({dim("N"), 4, dim("H")});
  const Tensor block = ints({1, 2, 1}), none = ints({0, 0, 0});
  EXPECT_EQ(infer(BatchToSpace{}, {x, block, none, ints({0, 1, 0})}), "f32[?,7,H]");
  EXPECT_EQ(infer(SpaceToBatch{}, {x, block, none, none}), "f32[?,2,H]");
  EXPECT_EQ(infer(SpaceToBatch{}, {x, TensorType{ElementType::i64, {3}}, none, none}), "f32[?,?,?]");
  EXPECT_ERROR(infer(BatchToSpace{}, {f32({3, 4, 1}), block, none, none}), "multiple of 2");
  EXPECT_ERROR(infer(BatchToSpace{}, {f32({2, 1, 1}), block, none, ints({0, 3, 0})}), "cropped by 3");
  EXPECT_ERROR(infer(BatchToSpace{}, {f32({2, 1, 1}), ints({2, 1, 1}), none, none}), "the batch");
  EXPECT_ERROR(infer(BatchToSpace{}, {f32({2, 1, 1}), ints({1, 0, 1}), none, none}), "block_shape has 0");
  EXPECT_ERROR(infer(BatchToSpace{}, {f32({2, 1, 1}), ints({1, 1}), none, none}), "rank 3");
  EXPECT_ERROR(infer(SpaceToBatch{}, {f32({2, 3, 1}), block, none, none}), "multiple of 2");
  EXPECT_ERROR(infer(SpaceToBatch{}, {f32({2, 3, 1}), block, ints({0, -1, 0}), none}), "pads_begin has -1");
}

}  // namespace
}  // namespace lamina::testing
