// Lists of tensors in TensorFlow graphs: TensorArrays and TensorLists, in loops and by themselves.
#include <gtest/gtest.h>

#include "lamina/error.h"
#include "ops/eval.h"
#include "tests/formats/tensorflow_loops.h"

namespace lamina::testing::tf {
namespace {

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

TEST(TensorflowLists, ArraysOfTensors) {
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

TEST(TensorflowLists, ArraysOfDifferentLengthsAreJoined) {
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

TEST(TensorflowLists, ListsOfDifferentLengthsAreJoined) {
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

TEST(TensorflowLists, ArraysGrowPastTheirEndByZeros) {
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

TEST(TensorflowLists, ListsThatGrowAndShrink) {
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

TEST(TensorflowLists, ScalarsAreNoLists) {
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

}  // namespace
}  // namespace lamina::testing::tf
