// TensorFlow graphs that are damaged or mean harm: an Error each, in time and without much memory.
#include <gtest/gtest.h>

#include <random>

#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "tests/support/soak.h"
#include "tests/support/tensorflow_graph.h"

namespace lamina::testing::tf::tensorflow_hostile_test {
namespace {

/// A little of everything.
TensorflowGraph sample() {
  TensorflowGraph g;
  g.function("twice", {"v"}, {tf::node("Add", "sum", {"v", "v"})}, {{"u", "sum:z:0"}});
  g.input("x", {-1, 6, 6, 2}).input("c", {}, 10).constant("w", Tensor(ElementType::f32, {3, 3, 2, 4}));
  g.node("Conv2D", "conv", {"x", "w"}, {list("strides", {1, 2, 2, 1}), word("padding", "SAME")});
  g.node("MaxPool", "pool", {"conv"},
         {list("ksize", {1, 2, 2, 1}), list("strides", {1, 1, 1, 1}), word("padding", "VALID")});
  g.node("Const", "k", {}, {type("dtype", 1), tensor("value", repeated_float({4}, {1, 2}))});
  g.node("BiasAdd", "bias", {"pool", "k"})
      .node("PartitionedCall", "call", {"bias"}, {tf::function("f", "twice")});
  g.node("Switch", "s", {"call", "c"}).node("Merge", "m", {"s", "s:1"});
  g.node("Shape", "shape", {"m"}).constant("two", integers({1}, {2})).constant("one", integers({1}, {1}));
  g.node("StridedSlice", "part", {"shape", "one", "two", "one"}, {integer("shrink_axis_mask", 1)});
  g.node("Pack", "sizes", {"part", "part"}, {integer("N", 2)});
  g.node("ResizeBilinear", "large", {"m", "sizes"}, {flag("half_pixel_centers", true)});
  g.constant("zero", Tensor::scalar<std::int32_t>(0)).constant("more", Tensor::scalar<std::int32_t>(1));
  g.node("TensorArrayV3", "list", {"part"}, {type("dtype", 1)});
  for (const auto* name : {"zero", "list:1"}) {
    const std::string v(name == std::string("zero") ? "i" : "l");
    g.node("Enter", v + "e", {name}, {word("frame_name", "w")}).node("Merge", v + "m", {v + "e", v + "n"});
    g.node("Switch", v + "s", {v + "m", "cond"})
        .node("Identity", v, {v + "s:1"})
        .node("Exit", v + "x", {v + "s"});
  }
  g.node("Enter", "n", {"part"}, {word("frame_name", "w"), flag("is_constant", true)});
  g.node("Enter", "xs", {"shape"}, {word("frame_name", "w"), flag("is_constant", true)});
  g.node("Less", "less", {"im", "n"}).node("LoopCond", "cond", {"less"}).node("Add", "next", {"i", "more"});
  g.node("NextIteration", "in", {"next"}).node("Cast", "item", {"xs"}, {type("DstT", 1)});
  g.node("TensorArrayWriteV3", "set", {"list", "i", "item", "l"}).node("NextIteration", "ln", {"set"});
  g.node("TensorArrayGatherV3", "all", {"list", "one", "lx"}).node("Identity", "last", {"ix"});
  g.constant("axis", Tensor::scalar<std::int32_t>(3));
  g.node("ArgMax", "best", {"large", "axis"}).node("Conv5D", "odd", {"large"}, {number("f", 2)});
  return g;
}

constexpr const char* kText =
    R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
node { name: "w" op: "Const" attr { key: "value" value { tensor { dtype: DT_FLOAT
  tensor_shape { dim { size: 3 } dim { size: 2 } } float_val: [1, 2.5, -3e0] } } } }
node { name: "m" op: "MatMul" input: "x" input: "w" attr { key: "transpose_a" value { b: false } } }
versions { producer: 21 })";

/// Reads; true when that worked. Any exception but Error fails the test.
bool reads(std::string_view bytes, const char* name = "m.pb") {
  try {
    read_bytes(bytes, {}, name);
    return true;
  } catch (const Error& e) {
    EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
    EXPECT_NE(e.code(), ErrorCode::bad_input) << e.what();
    return false;
  }
}

TEST(TensorflowHostile, TruncatedAtEveryLength) {
  const auto whole = sample().bytes();
  ASSERT_TRUE(reads(whole)) << refusal(whole);
  for (std::size_t length = 0; length < whole.size(); ++length) reads(whole.substr(0, length));
}

std::string damaged(std::string bytes, std::mt19937& random) {
  const auto whole = bytes;
  for (auto changes = 1 + random() % 3; changes > 0 && !bytes.empty(); --changes) {
    const auto at = random() % bytes.size();
    if (random() % 4 == 0)
      bytes.erase(at, 1 + random() % 8);
    else if (random() % 3 == 0)
      bytes.insert(at, whole.substr(random() % whole.size(), random() % 16));
    else
      bytes[at] ^= static_cast<char>(1 << (random() % 8));
  }
  return bytes;
}

TEST(TensorflowHostile, BytesChangedInsertedRemoved) {
  std::mt19937 random(20261126);
  int read = 0;
  for (int round = 0; round < 3000; ++round) read += reads(damaged(sample().bytes(), random));
  EXPECT_GT(read, 0);
  for (int round = 0; round < 1000; ++round) reads(damaged(kText, random), "m.pbtxt");
}

TEST(TensorflowHostile, soak) {
  soak_until_failure([](std::mt19937& random) {
    return random() % 2 ? reads(damaged(sample().bytes(), random)) : reads(damaged(kText, random), "m.pbtxt");
  });
}

TEST(TensorflowHostile, NamesAndReferences) {
  const auto refuses = [](const TensorflowGraph& g, const std::string& why) {
    EXPECT_NE(refusal(g.bytes()).find(why), std::string::npos) << refusal(g.bytes());
  };
  refuses(TensorflowGraph().input("x", {1}).node("Relu", "x", {"x"}), "two nodes have the name \"x\"");
  refuses(TensorflowGraph().node("Relu", "y", {"q"}), "reads \"q\", which no node makes");
  refuses(TensorflowGraph().node("Relu", "y", {"^q"}), "reads \"^q\", which no node makes");
  refuses(TensorflowGraph().input("x", {1}).node("Relu", "y", {"x:1"}), "reads output 1 of \"x\"");
  refuses(TensorflowGraph().input("x", {1}).node("Relu", "y", {"x:k"}), "output number");
  refuses(TensorflowGraph().input("x", {1}).node("Relu", "y", {"x:99999999999"}), "output number");
  refuses(TensorflowGraph().node("Relu", "a", {"b"}).node("Relu", "b", {"a"}), "cycle");
  refuses(TensorflowGraph().node("Relu", "a", {"a"}), "cycle");
  refuses(TensorflowGraph().input("x", {1}).node("Relu", "a", {"x", "^b"}).node("Relu", "b", {"a"}), "cycle");
  refuses(TensorflowGraph().input("x", {1}), "no results");
  refuses(TensorflowGraph().input("x", {1}).node("Relu", "y"), "input 0 is missing");
  refuses(TensorflowGraph().input("x", {1, 2, 2, 1}).node("Conv2D", "y", {"x", "x"}), "has no strides");
  refuses(TensorflowGraph().input("x", {-2}).node("Relu", "y", {"x"}), "has the size -2");
}

TEST(TensorflowHostile, ChainsAreNotWalkedByRecursion) {
  for (const char* op : {"Relu", "Identity", "Switch"}) {
    TensorflowGraph g;
    g.input("x", {2}).input("c", {}, 10);
    std::string before = "x";
    for (int i = 0; i < 100'000; ++i) {
      const auto name = "n" + std::to_string(i);
      if (op[0] == 'S')
        g.node(op, name, {before, "c"});
      else
        g.node(op, name, {before});
      before = name;
    }
    EXPECT_EQ(refusal(g.bytes()), "") << op;
  }
}

TEST(TensorflowHostile, ManyConditionsAreRefused) {
  TensorflowGraph g;
  g.input("x", {2});
  std::string before = "x";
  for (int i = 0; i < 3000; ++i) {
    const auto n = std::to_string(i);
    g.input("c" + n, {}, 10).node("Switch", "s" + n, {before, "c" + n});
    before = "s" + n;
  }
  EXPECT_NE(refusal(g.bytes()).find("conditions"), std::string::npos);
}

TEST(TensorflowHostile, ManyPathsAreWalkedOnce) {
  TensorflowGraph g;
  g.input("x", {2});
  std::string before = "x";
  for (int i = 0; i < 60; ++i) {
    const auto name = "n" + std::to_string(i);
    g.node("Add", name, {before, before});
    before = name;
  }
  EXPECT_EQ(refusal(g.bytes()), "");
}

TEST(TensorflowHostile, DoublingsEndAtTheLimit) {
  TensorflowGraph g;
  g.input("x", {2}).constant("axis", Tensor::scalar<std::int32_t>(0));
  std::string before = "x";
  for (int i = 0; i < 60; ++i) {
    const auto name = "n" + std::to_string(i);
    g.node("ConcatV2", name, {before, before, "axis"});
    before = name;
  }
  EXPECT_NE(refusal(g.bytes()).find("2^40"), std::string::npos) << refusal(g.bytes());
}

TEST(TensorflowHostile, HugeConstantsAreNotExpanded) {
  const auto huge = [](const std::vector<std::int64_t>& sizes, const std::vector<float>& values) {
    TensorflowGraph g;
    g.input("x", {1}).node("Const", "k", {}, {tensor("value", repeated_float(sizes, values))});
    g.node("Add", "y", {"x", "k"});
    return refusal(g.bytes());
  };
  EXPECT_EQ(huge({1 << 20, 1 << 20}, {1}), "");  // 2^40: fits, and nobody has asked for it yet
  EXPECT_NE(huge({1 << 20, 1 << 20}, {1, 2}), "");
  EXPECT_NE(huge({1 << 20, 1 << 20, 2}, {1}), "");
  EXPECT_NE(huge({INT64_MAX, INT64_MAX, INT64_MAX}, {1}), "");
  EXPECT_NE(huge({-1}, {1}), "");
}

TEST(TensorflowHostile, HugeResultsAreRefusedBeforeMemory) {
  const auto million = integers({2}, {1 << 21, 1 << 21});
  TensorflowGraph fill;
  fill.constant("dims", million).constant("v", floats({}, {1})).node("Fill", "y", {"dims", "v"});
  EXPECT_NE(refusal(fill.bytes()).find("2^40"), std::string::npos);
  TensorflowGraph tile;
  tile.input("x", {1, 1}).constant("n", million).node("Tile", "y", {"x", "n"});
  EXPECT_NE(refusal(tile.bytes()).find("2^40"), std::string::npos);
  TensorflowGraph hot;
  hot.input("x", {1 << 21}, 3)
      .constant("d", Tensor::scalar<std::int32_t>(1 << 21))
      .constant("v", floats({}, {1}));
  hot.node("OneHot", "y", {"x", "d", "v", "v"});
  EXPECT_NE(refusal(hot.bytes()).find("2^40"), std::string::npos);
  TensorflowGraph pad;
  pad.input("x", {1, 1})
      .constant("p", integers({2, 2}, {1 << 21, 0, 0, 1 << 21}))
      .node("Pad", "y", {"x", "p"});
  EXPECT_NE(refusal(pad.bytes()).find("2^40"), std::string::npos);
}

TEST(TensorflowHostile, ManyOutputsAreRefused) {
  TensorflowGraph split, odd;
  split.input("x", {100'000}).constant("axis", Tensor::scalar<std::int32_t>(0));
  odd.input("x", {1});
  for (int i = 0; i < 20; ++i) {
    const auto n = std::to_string(i);
    split.node("Split", "s" + n, {"axis", "x"}, {integer("num_split", 100'000)});
    odd.node("Odd", "o" + n, {"x"}).node("Relu", "r" + n, {"o" + n + ":99999"});
  }
  EXPECT_NE(refusal(split.bytes()).find("too many"), std::string::npos);
  EXPECT_NE(refusal(odd.bytes()).find("too many"), std::string::npos);
}

TEST(TensorflowHostile, FunctionsThatCallThemselvesOrDoubleEnd) {
  TensorflowGraph self;
  self.function("f", {"v"}, {tf::node("f", "again", {"v"})}, {{"u", "again:u:0"}});
  self.input("x", {1}).node("f", "y", {"x"});
  EXPECT_NE(refusal(self.bytes()).find("48 deep"), std::string::npos);
  TensorflowGraph doubling;
  for (int i = 0; i < 40; ++i) {
    const auto called = "f" + std::to_string(i + 1);
    doubling.function(
        "f" + std::to_string(i), {"v"},
        {tf::node(i == 39 ? "Relu" : called, "a", {"v"}), tf::node(i == 39 ? "Relu" : called, "b", {"v"})},
        {{"u", "b:u:0"}});
  }
  doubling.input("x", {1}).node("f0", "y", {"x"});
  EXPECT_NE(refusal(doubling.bytes()).find("expand to more than"), std::string::npos);
}

TEST(TensorflowHostile, AttributesOfOtherKinds) {
  TensorflowGraph g;
  g.input("x", {1, 2, 2, 1});
  EXPECT_NE(refusal(TensorflowGraph(g)
                        .node("Softmax", "s", {"x"})
                        .node("Squeeze", "y", {"s"}, {integer("squeeze_dims", 1)})
                        .bytes()),
            "");
  EXPECT_NE(
      refusal(TensorflowGraph(g)
                  .node("MaxPool", "y", {"x"},
                        {list("ksize", {1, 0, 2, 1}), list("strides", {1, 1, 1, 1}), word("padding", "SAME")})
                  .bytes()),
      "");
  EXPECT_NE(refusal(TensorflowGraph(g)
                        .node("MaxPool", "y", {"x"},
                              {list("ksize", {1, 2}), list("strides", {1, 1, 1, 1}), word("padding", "SAME")})
                        .bytes()),
            "");
  EXPECT_NE(
      refusal(
          TensorflowGraph(g).node("DepthToSpace", "y", {"x"}, {integer("block_size", INT64_MIN)}).bytes()),
      "");
  EXPECT_NE(refusal(TensorflowGraph(g).node("LRN", "y", {"x"}, {integer("depth_radius", INT64_MAX)}).bytes()),
            "");
}

}  // namespace
}  // namespace lamina::testing::tf::tensorflow_hostile_test
