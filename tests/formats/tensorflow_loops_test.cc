// Loops of TensorFlow graphs, of both spellings, and lists of tensors.
#include <gtest/gtest.h>

#include "lamina/error.h"
#include "ops/control.h"
#include "ops/eval.h"
#include "tests/support/tensorflow_graph.h"

namespace lamina::testing::tf {
namespace {

using List = std::vector<float>;
using Names = std::vector<std::string>;

Tensor whole(std::int32_t v) { return Tensor::scalar<std::int32_t>(v); }

Tensor shape_of(std::initializer_list<std::int32_t> sizes) {
  return Tensor::of<std::int32_t>({std::ssize(sizes)}, std::vector<std::int32_t>(sizes));
}

Attr of(std::string_view frame) { return word("frame_name", frame); }

/// What goes around: `name`/merge before the loop's Switch, `name` behind it, `next` closes it.
void carry(TensorflowGraph& g, const std::string& name, const std::string& initial, const std::string& next,
           std::string_view frame = "while") {
  g.node("Enter", name + "/enter", {initial}, {of(frame)});
  g.node("Merge", name + "/merge", {name + "/enter", name + "/next"});
  g.node("Switch", name + "/switch", {name + "/merge", std::string(frame) + "/cond"});
  g.node("Identity", name, {name + "/switch:1"}).node("NextIteration", name + "/next", {next});
}

/// i from 0, as long as it is less than `limit`.
void count(TensorflowGraph& g, const std::string& limit, std::string_view frame = "while") {
  const std::string f(frame);
  g.constant(f + "/zero", whole(0)).constant(f + "/one", whole(1));
  g.node("Enter", f + "/limit", {limit}, {of(frame), flag("is_constant", true)});
  carry(g, f + "/i", f + "/zero", f + "/i/more", frame);
  g.node("Add", f + "/i/more", {f + "/i", f + "/one"})
      .node("Less", f + "/less", {f + "/i/merge", f + "/limit"});
  g.node("LoopCond", f + "/cond", {f + "/less"});
}

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

/// Squares of x's rows, by a list that is read and one that is written.
TensorflowGraph squares(const std::vector<Attr>& written = {}) {
  TensorflowGraph g;
  g.input("x", {-1, 2})
      .constant("first", whole(0))
      .constant("step", whole(1))
      .constant("front", shape_of({0}));
  g.constant("behind", shape_of({1}));
  g.node("Shape", "shape", {"x"})
      .node("StridedSlice", "n", {"shape", "front", "behind", "behind"}, {integer("shrink_axis_mask", 1)});
  g.node("Range", "all", {"first", "n", "step"});
  auto attributes = written;
  attributes.push_back(type("dtype", 1));
  g.node("TensorArrayV3", "rows", {"n"}, {type("dtype", 1)}).node("TensorArrayV3", "made", {"n"}, attributes);
  g.node("TensorArrayScatterV3", "rows/flow", {"rows", "all", "x", "rows:1"});
  count(g, "n");
  for (const auto* name : {"rows", "made"})
    g.node("Enter", std::string(name) + "/in", {name}, {of("while"), flag("is_constant", true)});
  g.node("Enter", "flow/in", {"rows/flow"}, {of("while"), flag("is_constant", true)});
  g.node("TensorArrayReadV3", "row", {"rows/in", "while/i", "flow/in"}).node("Mul", "square", {"row", "row"});
  carry(g, "list", "made:1", "list/more");
  g.node("TensorArrayWriteV3", "list/more", {"made/in", "while/i", "square", "list"});
  g.node("Exit", "list/exit", {"list/switch"}).node("TensorArraySizeV3", "size", {"made", "list/exit"});
  g.node("Range", "list/all", {"first", "size", "step"});
  g.node("TensorArrayGatherV3", "y", {"made", "list/all", "list/exit"}, {type("dtype", 1)});
  return g;
}

TEST(TensorflowLoops, ArraysOfTensors) {
  const auto x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  for (const auto& g :
       {squares(), squares({shape("element_shape", {2})}), squares({flag("dynamic_size", true)})}) {
    EXPECT_TRUE(read_bytes(g.bytes()).unsupported.empty());
    const auto y = run(g, {x}).at(0);
    EXPECT_EQ(y.shape(), (Dims{3, 2}));
    EXPECT_EQ(values(y), (List{1, 4, 9, 16, 25, 36}));
  }
}

/// The first 1, 2, ... rows of x, n times, one behind the other, by an array that a loop writes.
TensorflowGraph longer_and_longer(bool reads_elements) {
  TensorflowGraph g;
  g.input("x", {-1, 2}).input("n", {}, 3).constant("front", shape_of({0})).constant("step", shape_of({1}));
  g.node("TensorArrayV3", "made", {"n"}, {type("dtype", 1)});
  count(g, "n");
  g.node("Enter", "made/in", {"made"}, {of("while"), flag("is_constant", true)});
  g.node("Enter", "x/in", {"x"}, {of("while"), flag("is_constant", true)});
  g.constant("axis", whole(0)).node("ExpandDims", "end", {"while/i/more", "axis"});
  g.node("StridedSlice", "rows", {"x/in", "front", "end", "step"}, {integer("begin_mask", 1)});
  carry(g, "list", "made:1", "list/more");
  g.node("TensorArrayWriteV3", "list/more", {"made/in", "while/i", "rows", "list"});
  g.node("Exit", "list/exit", {"list/switch"}).node("TensorArraySizeV3", "size", {"made", "list/exit"});
  g.node("TensorArrayConcatV3", "joined", {"made", "list/exit"}, {type("dtype", 1)});
  g.node("Identity", "y", {"joined"}).node("Identity", "lengths", {"joined:1"});
  g.node("Identity", "count", {"size"});
  if (reads_elements) g.node("TensorArrayReadV3", "first", {"made", "while/zero", "list/exit"});
  return g;
}

TEST(TensorflowLoops, ArraysOfDifferentLengthsAreJoined) {
  const auto g = longer_and_longer(false);
  EXPECT_TRUE(read_bytes(g.bytes()).unsupported.empty());
  const auto x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto out = run(g, {x, whole(3)});
  EXPECT_EQ(out.at(0).shape(), (Dims{6, 2}));
  EXPECT_EQ(values(out[0]), (List{1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(to_ints(out.at(1)), (Ints{1, 2, 3}));
  EXPECT_EQ(to_ints(out.at(2)), Ints{3});
  // An element that is read by itself has one shape.
  EXPECT_THROW(run(longer_and_longer(true), {x, whole(3)}), Error);
  EXPECT_EQ(values(run(longer_and_longer(true), {x, whole(1)}).at(0)), (List{1, 2}));
}

TEST(TensorflowLoops, ListsOfDifferentLengthsAreJoined) {
  TensorflowGraph g;
  g.function("less", {"i", "n", "l", "v"}, {tf::node("Less", "r", {"i", "n"})}, {{"r", "r:z:0"}});
  const auto number = [](const char* name, std::int32_t v) {
    return tf::node("Const", name, {}, {type("dtype", 3), tensor("value", tensor_proto(whole(v)))});
  };
  g.function("step", {"i", "n", "l", "v"},
             {number("one", 1), number("axis", 0), tf::node("Add", "more", {"i", "one:output:0"}),
              tf::node("ConcatV2", "twice", {"v", "v", "axis:output:0"}, {integer("N", 2)}),
              tf::node("TensorListSetItem", "set", {"l", "i", "v"})},
             {{"i", "more:z:0"}, {"n", "n"}, {"l", "set:output_handle:0"}, {"v", "twice:output:0"}});
  g.input("x", {2}).constant("n", whole(3)).constant("zero", whole(0)).constant("any", whole(-1));
  g.node("TensorListReserve", "made", {"any", "n"}, {type("element_dtype", 1)});
  g.node("StatelessWhile", "loop", {"zero", "n", "made", "x"},
         {tf::function("cond", "less"), tf::function("body", "step")});
  g.node("TensorListConcatV2", "all", {"loop:2", "any", "any"}).node("Identity", "y", {"all"});
  g.node("Identity", "lengths", {"all:1"});
  const auto out = run(g, {floats({2}, {1, 2})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(values(out[0]), (List{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(to_ints(out[1]), (Ints{2, 4, 8}));
}

TEST(TensorflowLoops, ArraysGrowPastTheirEndByZeros) {
  TensorflowGraph g;
  g.input("x", {2}).constant("none", whole(0)).constant("place", whole(2));
  g.node("TensorArrayV3", "made", {"none"}, {type("dtype", 1), flag("dynamic_size", true)});
  g.node("TensorArrayWriteV3", "list", {"made", "place", "x", "made:1"});
  g.node("TensorArraySizeV3", "size", {"made", "list"}).constant("one", whole(1));
  g.node("Range", "all", {"none", "size", "one"});
  g.node("TensorArrayGatherV3", "y", {"made", "all", "list"}, {type("dtype", 1)});
  const auto y = run(g, {floats({2}, {3, 4})}).at(0);
  EXPECT_EQ(y.shape(), (Dims{3, 2}));
  EXPECT_EQ(values(y), (List{0, 0, 0, 0, 3, 4}));
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

TEST(TensorflowLoops, ListsThatGrowAndShrink) {
  TensorflowGraph g;
  g.input("x", {2}).input("y", {2}).constant("none", shape_of({-1})).constant("most", whole(-1));
  g.node("EmptyTensorList", "l0", {"none", "most"}, {type("element_dtype", 1)});
  g.node("TensorListPushBack", "l1", {"l0", "x"}).node("TensorListPushBack", "l2", {"l1", "y"});
  g.node("TensorListPushBack", "l3", {"l2", "x"}).node("TensorListPopBack", "pop", {"l3", "none"});
  g.node("TensorListLength", "length", {"pop"}).node("TensorListStack", "all", {"pop", "none"});
  g.node("TensorListConcatV2", "flat", {"l3", "none", "none"}).node("Identity", "last", {"pop:1"});
  const auto out = run(g, {floats({2}, {1, 2}), floats({2}, {3, 4})});
  EXPECT_EQ(to_ints(out.at(0)), (Ints{2}));
  EXPECT_EQ(values(out.at(1)), (List{1, 2, 3, 4}));
  EXPECT_EQ(values(out.at(2)), (List{1, 2, 3, 4, 1, 2}));
  EXPECT_EQ(to_ints(out.at(3)), (Ints{2, 2, 2}));
  EXPECT_EQ(values(out.at(4)), (List{1, 2}));
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

TEST(TensorflowLoops, ScalarsAreNoLists) {
  struct Reader {
    std::string op;
    std::vector<std::string> inputs;
    std::string list;
  };
  const std::vector<Reader> readers{{"TensorArrayScatterV3", {"s", "all", "x", "s"}, "3"},
                                    {"TensorArrayWriteV3", {"made", "s", "x", "s"}, "3"},
                                    {"TensorArrayReadV3", {"s", "s", "s"}, "2"},
                                    {"TensorArrayGatherV3", {"s", "all", "s"}, "2"},
                                    {"TensorArraySizeV3", {"s", "s"}, "1"},
                                    {"TensorArrayConcatV3", {"s", "s"}, "1"},
                                    {"TensorListFromTensor", {"s", "all"}, "0"},
                                    {"TensorListStack", {"s", "all"}, "0"},
                                    {"TensorListSetItem", {"s", "s", "x"}, "0"},
                                    {"TensorListGetItem", {"s", "s", "all"}, "0"},
                                    {"TensorListLength", {"s"}, "0"},
                                    {"TensorListGather", {"s", "all", "all"}, "0"},
                                    {"TensorListConcatV2", {"s", "all", "all"}, "0"},
                                    {"TensorListScatterIntoExistingList", {"s", "x", "all"}, "0"},
                                    {"TensorListPushBack", {"s", "x"}, "0"},
                                    {"TensorListPopBack", {"s", "all"}, "0"}};
  for (const auto& r : readers) {
    TensorflowGraph g;
    g.input("x", {2}).constant("s", whole(0)).constant("all", shape_of({0, 1}));
    g.node("TensorArrayV3", "made", {"s"}, {type("dtype", 1), flag("dynamic_size", true)});
    g.node(r.op, "y", r.inputs);
    EXPECT_EQ(refusal(g.bytes()),
              "node \"y\" (" + r.op + "): input " + r.list + " is a scalar, wanted a list of tensors");
  }
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
