// Loops of TensorFlow graphs, of both spellings.
#include "tests/formats/tensorflow_loops.h"

#include <gtest/gtest.h>

#include "lamina/error.h"
#include "ops/control.h"
#include "ops/eval.h"

namespace lamina::testing::tf {
namespace {

/// y = x doubled as often as n says.
TensorflowGraph doubled() {
  TensorflowGraph g;
  g.input("x", {2}).input("n", {}, 3);
  count(g, "n");
  carry(g, "v", "x", "v/twice");
  g.node("Add", "v/twice", {"v", "v"}).node("Exit", "y", {"v/switch"});
  return g;
}

std::size_t loops(const Graph& graph) {
  std::size_t found = 0;
  for (auto id : graph.order()) {
    found += graph.node(id).op.is<Loop>();
    for (const auto& body : graph.node(id).bodies) found += loops(body);
  }
  return found;
}

TEST(TensorflowLoops, GoOnAsLongAsTheConditionHolds) {
  const auto g = doubled();
  EXPECT_EQ(values(run(g, {floats({2}, {3, 4}), whole(3)}).at(0)), (List{24, 32}));
  EXPECT_EQ(values(run(g, {floats({2}, {3, 4}), whole(0)}).at(0)), (List{3, 4}));
}

TEST(TensorflowLoops, WhatIsLeftOverIsNoOutput) {
  auto g = doubled();
  g.node("Exit", "left", {"while/i/switch"});
  EXPECT_EQ(read_bytes(g.bytes()).graph.results().size(), 2u);  // neither is read
  g.node("Relu", "z", {"y"});
  const auto m = read_bytes(g.bytes());
  ASSERT_EQ(m.graph.results().size(), 1u);
  EXPECT_EQ(m.graph.results()[0].name, "z");
}

TEST(TensorflowLoops, PlaceholdersThatFreezingLeavesAreNoInputs) {
  auto g = doubled();
  g.node("Placeholder", "unused_control_flow_input_1", {}, {type("dtype", 21)});
  EXPECT_EQ(read_bytes(g.bytes()).graph.inputs().size(), 2u);
  g.node("Identity", "z", {"unused_control_flow_input_1"});
  EXPECT_EQ(read_bytes(g.bytes()).graph.inputs().size(), 3u);
}

TEST(TensorflowLoops, ConditionsThatNeverHoldLeaveNoLoop) {
  TensorflowGraph g;
  g.input("x", {2}).constant("n", whole(0));
  count(g, "n");
  carry(g, "v", "x", "v/twice");
  g.node("Add", "v/twice", {"v", "v"}).node("Exit", "y", {"v/switch"});
  const auto graph = read_bytes(g.bytes()).graph;
  EXPECT_EQ(loops(graph), 0u);
  EXPECT_TRUE(graph.find_value("x").valid());
  EXPECT_EQ(values(run(g, {floats({2}, {3, 4})}).at(0)), (List{3, 4}));
}

TEST(TensorflowLoops, SizesMayGrow) {
  TensorflowGraph g;
  g.input("x", {2}).input("n", {}, 3).constant("axis", whole(0));
  count(g, "n");
  carry(g, "v", "x", "v/longer");
  g.node("ConcatV2", "v/longer", {"v", "v", "axis"}).node("Exit", "y", {"v/switch"});
  EXPECT_EQ(to_string(read_bytes(g.bytes()).graph.type(read_bytes(g.bytes()).graph.results()[0].value)),
            "f32[?]");
  EXPECT_EQ(values(run(g, {floats({2}, {3, 4}), whole(2)}).at(0)), (List{3, 4, 3, 4, 3, 4, 3, 4}));
}

TEST(TensorflowLoops, InEachOther) {
  TensorflowGraph g;
  g.input("x", {1}).input("n", {}, 3);
  count(g, "n", "out");
  carry(g, "v", "x", "w/exit", "out");
  count(g, "out/i", "in");  // 0, 1, 2, ... times
  carry(g, "w", "v", "w/twice", "in");
  g.node("Add", "w/twice", {"w", "w"}).node("Exit", "w/exit", {"w/switch"}).node("Exit", "y", {"v/switch"});
  EXPECT_EQ(loops(read_bytes(g.bytes()).graph), 2u);
  EXPECT_EQ(values(run(g, {floats({1}, {1}), whole(4)}).at(0)), (List{64}));
}

TEST(TensorflowLoops, ConditionsInside) {
  TensorflowGraph g;
  g.input("x", {}).input("n", {}, 3).constant("limit", Tensor::scalar<float>(5));
  count(g, "n");
  carry(g, "v", "x", "m");
  g.node("Greater", "big", {"v", "limit"}).node("Switch", "s", {"v", "big"});
  g.node("Add", "small/twice", {"s", "s"}).node("Sub", "big/less", {"s:1", "limit"});
  g.node("Merge", "m", {"small/twice", "big/less"}).node("Exit", "y", {"v/switch"});
  EXPECT_EQ(values(run(g, {floats({}, {3}), whole(4)}).at(0)), (List{4}));  // 6, 1, 2, 4
}

/// A Switch of the loop may send on the condition itself, which is true in the body.
TEST(TensorflowLoops, ConditionsAreDataInTheBody) {
  TensorflowGraph g;
  g.input("x", {2}).input("n", {}, 3);
  count(g, "n");
  carry(g, "v", "x", "v/more");
  g.node("Switch", "goes/on", {"while/cond", "while/cond"}).node("Identity", "is/on", {"goes/on:1"});
  g.node("Cast", "number", {"is/on"}, {type("DstT", 1)}).node("Add", "v/more", {"v", "number"});
  g.node("Exit", "y", {"v/switch"});
  EXPECT_EQ(values(run(g, {floats({2}, {3, 4}), whole(3)}).at(0)), (List{6, 7}));
  EXPECT_EQ(values(run(g, {floats({2}, {3, 4}), whole(0)}).at(0)), (List{3, 4}));
}

/// What a Switch sends on may have become the condition, which is no number to count with.
TEST(TensorflowLoops, ConditionsInPlaceOfCarriedValuesAreRefused) {
  for (const auto* decides : {"while/cond", "while/i/merge"}) {
    TensorflowGraph g;
    g.input("x", {2}).input("n", {}, 3).constant("while/zero", whole(0)).constant("while/one", whole(1));
    g.node("Enter", "while/limit", {"n"}, {of("while"), flag("is_constant", true)});
    g.node("Enter", "while/i/enter", {"while/zero"}, {of("while")});
    g.node("Merge", "while/i/merge", {"while/i/enter", "while/i/next"});
    g.node("Switch", "while/i/switch", {"while/cond", decides});
    g.node("Identity", "while/i", {"while/i/switch:1"}).node("NextIteration", "while/i/next", {"more"});
    g.node("Add", "more", {"while/i", "while/one"}).node("Less", "less", {"while/i/merge", "while/limit"});
    g.node("LoopCond", "while/cond", {"less"});
    carry(g, "v", "x", "v/twice");
    g.node("Add", "v/twice", {"v", "v"}).node("Exit", "y", {"v/switch"});
    EXPECT_EQ(refusal(g.bytes()),
              "node \"more\" (Add): inputs 0 and 1 are boolean and i32, wanted equal element types")
        << decides;
  }
}

TEST(TensorflowLoops, FunctionsAsConditionAndBody) {
  TensorflowGraph g;
  g.function("less", {"i", "n", "l", "v"}, {tf::node("Less", "r", {"i", "n"})}, {{"r", "r:z:0"}});
  g.function("step", {"i", "n", "l", "v"},
             {tf::node("Const", "one", {}, {type("dtype", 3), tensor("value", tensor_proto(whole(1)))}),
              tf::node("Add", "more", {"i", "one:output:0"}), tf::node("Add", "twice", {"v", "v"}),
              tf::node("TensorListSetItem", "set", {"l", "i", "v"})},
             {{"i", "more:z:0"}, {"n", "n"}, {"l", "set:output_handle:0"}, {"v", "twice:z:0"}});
  g.input("x", {2}).constant("n", whole(3)).constant("zero", whole(0)).constant("any", whole(-1));
  g.node("TensorListReserve", "made", {"any", "n"}, {type("element_dtype", 1)});
  g.node("StatelessWhile", "loop", {"zero", "n", "made", "x"},
         {tf::function("cond", "less"), tf::function("body", "step")});
  g.node("TensorListStack", "all", {"loop:2", "any"}).node("Identity", "last", {"loop:3"});
  const auto m = read_bytes(g.bytes());
  EXPECT_EQ(to_string(m.graph.type(m.graph.results()[0].value)), "f32[3,2]");
  const auto out = run(g, {floats({2}, {1, 2})});
  EXPECT_EQ(values(out.at(0)), (List{1, 2, 2, 4, 4, 8}));
  EXPECT_EQ(values(out.at(1)), (List{8, 16}));
}

TEST(TensorflowLoops, DamagedOnesAreRefused) {
  auto frameless = doubled();
  frameless.node("Enter", "odd", {"x"});
  EXPECT_EQ(refusal(frameless.bytes()), "node \"odd\" (Enter) has no frame_name");
  auto twice = doubled();
  twice.node("LoopCond", "again", {"while/less"});
  EXPECT_EQ(refusal(twice.bytes()), "the loop \"while\" has two conditions, \"while/cond\" and \"again\"");
  auto elsewhere = doubled();
  elsewhere.node("Enter", "a", {"x"}, {of("another")}).node("Enter", "odd", {"v"}, {of("other")});
  elsewhere.node("Enter", "odd2", {"a"}, {of("other")});
  EXPECT_EQ(refusal(elsewhere.bytes()),
            "node \"odd2\" (Enter) enters the loop \"other\" from elsewhere than others do");
  TensorflowGraph deep;
  deep.input("e0", {});
  for (int i = 1; i <= 9; ++i)
    deep.node("Enter", "e" + std::to_string(i), {"e" + std::to_string(i - 1)}, {of("f" + std::to_string(i))});
  EXPECT_EQ(refusal(deep.bytes()), "loops are nested more than 8 deep");
}

TEST(TensorflowLoops, WhatCannotBeIsListed) {
  TensorflowGraph g;
  g.input("x", {2}).input("n", {}, 3);
  count(g, "n");
  carry(g, "v", "x", "v/whole");
  g.node("Cast", "v/whole", {"v"}, {type("DstT", 3)}).node("Exit", "y", {"v/switch"});
  const auto m = read_bytes(g.bytes());
  ASSERT_EQ(m.unsupported.size(), 1u);
  EXPECT_EQ(m.unsupported[0].reason, "a loop whose \"v/merge\" is f32 and becomes i32");
  TensorflowGraph stray;
  stray.input("x", {2}).node("Exit", "y", {"x"});
  EXPECT_EQ(read_bytes(stray.bytes()).unsupported.at(0).type, "Exit");
}

/// Each loop is read again when types change: in each other that is a power, and ends at the budget.
TEST(TensorflowLoops, ManyInEachOtherEnd) {
  TensorflowGraph g;
  g.input("x", {2}).input("n", {}, 3).constant("axis", whole(0));
  for (int i = 0; i < 8; ++i) {
    const auto f = "f" + std::to_string(i), v = "v" + std::to_string(i);
    count(g, i == 0 ? "n" : "f" + std::to_string(i - 1) + "/i", f);
    carry(g, v, i == 0 ? "x" : "v" + std::to_string(i - 1),
          i == 7 ? "longer" : "v" + std::to_string(i + 1) + "/exit", f);
    g.node("Exit", v + "/exit", {v + "/switch"});
  }
  g.node("ConcatV2", "longer", {"v7", "v7", "axis"});
  const auto said = refusal(g.bytes());
  EXPECT_TRUE(said.empty() || said.find("too many nodes") != std::string::npos) << said;
}

TEST(TensorflowLoops, ManyVariablesAndManyLoopsAreReadInTime) {
  TensorflowGraph wide;
  wide.input("x", {2}).input("n", {}, 3);
  count(wide, "n");
  for (int i = 0; i < 5000; ++i) {
    const auto v = "v" + std::to_string(i);
    carry(wide, v, "x", v + "/twice");
    wide.node("Add", v + "/twice", {v, v}).node("Exit", v + "/exit", {v + "/switch"});
  }
  EXPECT_EQ(read_bytes(wide.bytes()).graph.results().size(), 5000u);
  TensorflowGraph many;
  many.input("x", {2}).input("n", {}, 3);
  for (int i = 0; i < 2000; ++i) {
    const auto f = "f" + std::to_string(i), v = "v" + std::to_string(i);
    count(many, "n", f);
    carry(many, v, i == 0 ? "x" : "v" + std::to_string(i - 1) + "/exit", v + "/twice", f);
    many.node("Add", v + "/twice", {v, v}).node("Exit", v + "/exit", {v + "/switch"});
  }
  EXPECT_EQ(loops(read_bytes(many.bytes()).graph), 2000u);
}

}  // namespace
}  // namespace lamina::testing::tf
