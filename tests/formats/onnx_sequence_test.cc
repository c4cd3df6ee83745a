// Sequences are lists while a model is read.
#include <gtest/gtest.h>

#include "ops/control.h"
#include "ops/eval.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;

Tensor index(std::int64_t v) { return Tensor::scalar<std::int64_t>(v); }

OnnxGraph two() {
  OnnxGraph g;
  g.input("a", ElementType::f32, {"2"}).input("b", ElementType::f32, {"2"});
  g.initializer("first", index(0)).initializer("last", index(-1)).initializer("far", index(3));
  return g.node("SequenceConstruct", {"a", "b"}, {"s"});
}

std::vector<Tensor> run(const OnnxGraph& g) {
  return run_onnx(g, {floats({2}, {1, 2}), floats({2}, {3, 4})});
}

TEST(OnnxSequences, ElementsComeAndGo) {
  auto g = two();
  g.node("SequenceInsert", {"s", "b", "first"}, {"t"}).node("SequenceErase", {"t", "last"}, {"u"});
  g.node("Identity", {"u"}, {"v"}).node("SequenceLength", {"t"}, {"n"});
  g.node("ConcatFromSequence", {"v"}, {"y"}, {attribute("axis", 0)});
  g.node("ConcatFromSequence", {"v"}, {"z"}, {attribute("axis", -1), attribute("new_axis", 1)});
  g.output("y").output("z").output("n");
  const auto out = run(g);
  EXPECT_EQ(values(out[0]), (List{3, 4, 1, 2}));
  EXPECT_EQ(values(out[1]), (List{3, 1, 4, 2}));
  EXPECT_EQ(out[1].shape(), (Dims{2, 2}));
  EXPECT_EQ(to_ints(out[2]), Ints{3});
  const auto m = read_onnx_bytes(onnx_model(g));
  EXPECT_FALSE(m.graph.find_value("s").valid());
  EXPECT_FALSE(m.graph.find_value("u").valid());
}

TEST(OnnxSequences, TensorsAreSplit) {
  OnnxGraph g;
  g.input("a", ElementType::f32, {"2"}).input("b", ElementType::f32, {"2"});
  g.initializer("last", index(-1)).initializer("three", index(3));
  g.node("Concat", {"a", "b"}, {"x"}, {attribute("axis", 0)});
  g.node("SplitToSequence", {"x", "three"}, {"s"}).node("SequenceAt", {"s", "last"}, {"y"});
  g.node("SplitToSequence", {"x"}, {"t"}, {attribute("keepdims", 0)});
  g.node("SequenceAt", {"t", "three"}, {"z"}).output("y").output("z");
  const auto out = run(g);
  EXPECT_EQ(values(out[0]), List{4});
  EXPECT_EQ(out[0].shape(), Dims{1});
  EXPECT_EQ(values(out[1]), List{4});
  EXPECT_EQ(out[1].shape(), Dims{});
}

TEST(OnnxSequences, Refusals) {
  const auto refused = [](const OnnxGraph& g) { return onnx_refusal(onnx_model(g)); };
  EXPECT_EQ(refused(two().node("SequenceAt", {"s", "far"}, {"y"}).output("y")),
            "node \"y\" (SequenceAt, opset 13): position 3 is outside of a sequence of 2 elements");
  EXPECT_EQ(refused(two().node("SequenceAt", {"a", "first"}, {"y"}).output("y")),
            "node \"y\" (SequenceAt, opset 13): input 0 is a tensor, wanted a sequence");
  EXPECT_EQ(refused(two().node("SequenceEmpty", {}, {"e"}).node("SequenceErase", {"e"}, {"y"}).output("y")),
            "node \"y\" (SequenceErase, opset 13): the sequence is empty");
  EXPECT_EQ(refused(two().node("SequenceConstruct", {"a", "s"}, {"t"}).output("a")), "");
}

TEST(OnnxSequences, WhatTheyCannotDoIsListed) {
  const auto reasons = [](const OnnxGraph& g) {
    Strings out;
    for (const auto& u : read_onnx_bytes(onnx_model(g)).unsupported) out.push_back(u.type + ": " + u.reason);
    return out;
  };
  EXPECT_EQ(reasons(two().node("Relu", {"s"}, {"y"}).output("y")), Strings{"Relu: a sequence as an input"});
  EXPECT_EQ(reasons(two().output("s")), Strings{"output of type sequence: "});
  EXPECT_EQ(reasons(two().node("SequenceConstruct", {"a", "s"}, {"t"}).output("t")),
            Strings{"SequenceConstruct: a sequence as an input"});
  auto mixed = two();
  mixed.input("i", ElementType::i64, {}).initializer("one", floats({1, 1}, {1}));
  mixed.node("SequenceInsert", {"s", "one"}, {"t"}).node("SequenceAt", {"t", "i"}, {"y"}).output("y");
  EXPECT_EQ(reasons(mixed),
            Strings{"SequenceAt: a sequence of a length known at run time, with elements of different or "
                    "unknown ranks"});
  OnnxGraph some, none;
  some.output("a");
  none.node("Optional", {}, {"nothing"}).output("nothing");
  auto sometimes = two().input("c", ElementType::boolean, {});
  sometimes.node(
      "If", {"c"}, {"o"},
      {graph_attribute("then_branch", some.bytes()), graph_attribute("else_branch", none.bytes())});
  EXPECT_EQ(reasons(sometimes.node("OptionalHasElement", {"o"}, {"y"}).output("y")),
            Strings{"If: branches of which one returns a sequence or nothing, the other a tensor"});
}

TEST(OnnxSequences, PositionsMayBeComputed) {
  auto g = two();
  g.input("i", ElementType::i64, {}).node("SequenceAt", {"s", "i"}, {"y"}).output("y");
  const auto at = [&](std::int64_t i) {
    return values(run_onnx(g, {floats({2}, {1, 2}), floats({2}, {3, 4}), index(i)})[0]);
  };
  EXPECT_EQ(at(0), (List{1, 2}));
  EXPECT_EQ(at(-1), (List{3, 4}));
  EXPECT_THROW(at(2), Error);
  EXPECT_THROW(at(-3), Error);
}

TEST(OnnxSequences, LengthsMayShowAtRunTime) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n", "2"}).initializer("one", index(1)).initializer("two", index(2));
  g.node("SplitToSequence", {"x", "two"}, {"s"}).node("SequenceLength", {"s"}, {"n"});
  g.node("SequenceAt", {"s", "one"}, {"y"}).node("SequenceErase", {"s", "one"}, {"t"});
  g.node("ConcatFromSequence", {"t"}, {"z"}, {attribute("axis", 0)}).output("n").output("y").output("z");
  const auto out = run_onnx(g, {floats({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})});
  EXPECT_EQ(to_ints(out[0]), Ints{3});
  EXPECT_EQ(values(out[1]), (List{4, 5, 6, 7}));
  EXPECT_EQ(values(out[2]), (List{0, 1, 2, 3, 8, 9}));
  EXPECT_THROW(run_onnx(g, {floats({2, 2}, {0, 1, 2, 3})}), Error);  // there is no element 1
}

TEST(OnnxSequences, ComputedLengthsBelowZeroAreErrors) {
  for (const auto* size : {"n", "2"}) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"n"}).input("p", ElementType::i64, {size}).initializer("one", index(1));
    g.node("SplitToSequence", {"x", "p"}, {"s"}).node("SequenceAt", {"s", "one"}, {"y"}).output("y");
    const auto part = [&](const List& lengths) {
      const Tensor p = Tensor::of<std::int64_t>({2}, Ints(lengths.begin(), lengths.end()));
      return values(run_onnx(g, {floats({4}, {0, 1, 2, 3}), p})[0]);
    };
    EXPECT_EQ(part({3, 1}), List{3});
    for (const auto& wrong : {List{5, -1}, List{-1, 3}, List{6, -2}, List{-1, 5}, List{2, 1}})
      EXPECT_THROW(part(wrong), Error) << size << " " << wrong[0];
  }
}

/// The error's text; empty if there is none.
template <class F>
std::string error_of(const F& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// The number of parts is an error, too, where the parts cannot be made: nobody reads these.
TEST(OnnxSequences, LengthsAreCheckedWhereOnlyTheirNumberIsRead) {
  const struct { const char *axis, *lengths; } cases[] = {{"n", "2"}, {"n", "m"}, {"4", "2"}, {"4", "m"}};
  for (const auto& [axis, lengths] : cases)
    for (const bool inserted : {false, true}) {
      if (inserted && lengths[0] == 'm') continue;  // a position in parts that are packed anew
      SCOPED_TRACE(fmt::format("{} {} {}", axis, lengths, inserted));
      OnnxGraph g;
      g.input("x", ElementType::f32, {axis}).input("p", ElementType::i64, {lengths});
      g.node("SplitToSequence", {"x", "p"}, {"s"}).node("SequenceInsert", {"s", "x"}, {"t"});
      g.node("SequenceLength", {inserted ? "t" : "s"}, {"y"}).output("y");
      const auto number = [&](const Ints& parts) {
        return to_ints(run_onnx(g, {floats({4}, {0, 1, 2, 3}), Tensor::of<std::int64_t>({2}, parts)})[0])[0];
      };
      EXPECT_EQ(number({3, 1}), inserted ? 3 : 2);
      for (const auto& wrong : {Ints{5, -1}, Ints{-1, 3}, Ints{2, 1}, Ints{4, 1}}) {
        const auto text = error_of([&] { number(wrong); });
        EXPECT_NE(text.find(fmt::format("split is [{},{}]", wrong[0], wrong[1])), std::string::npos) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      }
    }
  OnnxGraph g;  // lengths of the file, of an axis that is open
  g.input("x", ElementType::f32, {"n"}).initializer("p", integers({2}, {3, 1}));
  g.node("SplitToSequence", {"x", "p"}, {"s"}).node("SequenceLength", {"s"}, {"y"}).output("y");
  EXPECT_EQ(to_ints(run_onnx(g, {floats({4}, {0, 1, 2, 3})})[0]), Ints{2});
  const auto text = error_of([&] { run_onnx(g, {floats({3}, {0, 1, 2})}); });
  EXPECT_NE(text.find("split is [3,1], wanted numbers that add up to 3"), std::string::npos) << text;
}

TEST(OnnxSequences, ErrorsNameTheLengthsOfTheModel) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n"}).input("p", ElementType::i64, {"2"}).initializer("one", index(1));
  g.node("SplitToSequence", {"x", "p"}, {"s"}).node("SequenceAt", {"s", "one"}, {"y"}).output("y");
  const auto x = floats({4}, {0, 1, 2, 3});
  const auto lengths = error_of([&] { run_onnx(g, {x, integers({2}, {5, -1})}); });
  EXPECT_NE(lengths.find("split is [5,-1], wanted 0 or more"), std::string::npos) << lengths;
  OnnxGraph even;
  even.input("x", ElementType::f32, {"n"}).input("q", ElementType::i64, {"1"}).initializer("one", index(1));
  even.initializer("none", Tensor(ElementType::i64, {0})).node("Reshape", {"q", "none"}, {"p"});
  even.node("SplitToSequence", {"x", "p"}, {"s"}).node("SequenceAt", {"s", "one"}, {"y"}).output("y");
  EXPECT_EQ(values(run_onnx(even, {x, integers({1}, {3})})[0]), List{3});
  for (const std::int64_t wrong : {0, -3}) {
    const auto text = error_of([&] { run_onnx(even, {x, integers({1}, {wrong})}); });
    EXPECT_NE(text.find(fmt::format("split is {}, wanted 1 or more", wrong)), std::string::npos) << text;
  }
  OnnxGraph split;
  split.input("x", ElementType::f32, {"n"}).input("p", ElementType::i64, {"2"});
  split.node("Split", {"x", "p"}, {"y", "z"}).output("y").output("z");
  const auto text = error_of([&] { run_onnx(split, {x, integers({2}, {-1, 5})}); });
  EXPECT_NE(text.find("split is [-1,5], wanted 0 or more"), std::string::npos) << text;
}

TEST(OnnxSequences, ElementsOfDifferentSizesAreNotJoined) {
  const auto join = [](const Texts& attributes, const Dims& first, const Dims& second) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"a", "b"}).input("z", ElementType::f32, {"c", "d"});
    g.input("i", ElementType::i64, {}).node("SequenceConstruct", {"x"}, {"s"});
    g.node("SequenceInsert", {"s", "z", "i"}, {"t"}).node("ConcatFromSequence", {"t"}, {"y"}, attributes);
    g.output("y");
    return run_onnx(g, {Tensor(ElementType::f32, first), Tensor(ElementType::f32, second), index(0)})[0]
        .shape();
  };
  const Texts rows{attribute("axis", 0)}, stack{attribute("axis", 0), attribute("new_axis", 1)};
  EXPECT_EQ(join(rows, {0, 5}, {2, 5}), (Dims{2, 5}));
  EXPECT_EQ(join(stack, {0, 5}, {0, 5}), (Dims{2, 0, 5}));
  EXPECT_THROW(join(rows, {0, 5}, {2, 3}), Error);
  EXPECT_THROW(join(rows, {0, 5}, {0, 3}), Error);
  EXPECT_THROW(join(stack, {0, 5}, {0, 3}), Error);
  EXPECT_THROW(join(stack, {2, 3}, {3, 2}), Error);
}

TEST(OnnxSequences, NothingIsNotJoined) {
  OnnxGraph body;
  body.input("i", ElementType::i64, {}).input("c", ElementType::boolean, {}).input("q", ElementType::f32, {});
  body.node("Identity", {"c"}, {"d"}).node("SequenceInsert", {"q", "x"}, {"r"}).output("d").output("r");
  const std::vector<Texts> ways = {
      {attribute("axis", 0)}, {attribute("axis", 1)}, {attribute("axis", 0), attribute("new_axis", 1)}};
  for (const auto* const columns : {"2", "m"})
    for (const auto& way : ways) {
      OnnxGraph g;
      g.input("x", ElementType::f32, {"1", columns}).input("n", ElementType::i64, {});
      g.node("SequenceEmpty", {}, {"e"});
      g.node("Loop", {"n", "", "e"}, {"l"}, {graph_attribute("body", body.bytes())});
      g.node("ConcatFromSequence", {"l"}, {"y"}, way).output("y");
      const auto joined = [&](std::int64_t times) {
        return values(run_onnx(g, {floats({1, 2}, {1, 2}), index(times)})[0]);
      };
      EXPECT_EQ(joined(1), (List{1, 2}));
      EXPECT_EQ(joined(2), (List{1, 2, 1, 2}));
      const auto text = error_of([&] { joined(0); });
      EXPECT_NE(text.find("number of elements of a sequence to join is 0, wanted 1 or more"),
                std::string::npos)
          << text;
    }
}

/// A loop of n iterations that carries the sequence s.
OnnxGraph looping(const OnnxGraph& nodes) {
  OnnxGraph body = nodes, g = two();
  body.input("i", ElementType::i64, {}).input("c", ElementType::boolean, {}).input("q", ElementType::f32, {});
  body.node("Identity", {"c"}, {"d"}).output("d").output("r");
  g.input("n", ElementType::i64, {}).node("SequenceEmpty", {}, {"e"});
  return g.node("Loop", {"n", "", "s"}, {"l"}, {graph_attribute("body", body.bytes())})
      .node("ConcatFromSequence", {"l"}, {"y"}, {attribute("axis", 0)})
      .output("y");
}

std::vector<float> looped(const OnnxGraph& nodes, std::int64_t times) {
  return values(run_onnx(looping(nodes), {floats({2}, {1, 2}), floats({2}, {3, 4}), index(times)})[0]);
}

/// How many tensors the graph's loop carries.
std::int64_t carried_by(const OnnxGraph& g) {
  const auto m = read_onnx_bytes(onnx_model(g));
  for (auto n : m.graph.order()) {
    const auto* loop = m.graph.node(n).op.as<Loop>();
    if (loop != nullptr) return loop->carried;
  }
  return -1;
}

TEST(OnnxSequences, LoopsCarryLists) {
  OnnxGraph turns;  // the first one doubled goes to the end: the length stays
  turns.node("SequenceAt", {"q", "first"}, {"f"}).node("Add", {"f", "f"}, {"g"});
  turns.node("SequenceErase", {"q", "first"}, {"p"}).node("SequenceInsert", {"p", "g"}, {"r"});
  EXPECT_EQ(looped(turns, 3), (List{6, 8, 4, 8}));
  EXPECT_EQ(looped(turns, 0), (List{1, 2, 3, 4}));
  EXPECT_EQ(carried_by(looping(turns)), 2);
}

TEST(OnnxSequences, LoopsAppend) {
  OnnxGraph appends;
  appends.node("Cast", {"i"}, {"f"}, {attribute("to", 1)}).node("Add", {"a", "f"}, {"g"});
  appends.node("SequenceInsert", {"q", "g"}, {"r"});
  EXPECT_EQ(looped(appends, 2), (List{1, 2, 3, 4, 1, 2, 2, 3}));
  EXPECT_EQ(looped(appends, 0), (List{1, 2, 3, 4}));
  EXPECT_EQ(carried_by(looping(appends)), 0);  // nothing grows
}

TEST(OnnxSequences, LoopsReadWhatTheyGrow) {
  OnnxGraph grows;
  grows.node("SequenceAt", {"q", "last"}, {"f"}).node("Add", {"f", "b"}, {"g"});
  grows.node("SequenceInsert", {"q", "g", "first"}, {"r"});
  EXPECT_EQ(looped(grows, 2), (List{6, 8, 6, 8, 1, 2, 3, 4}));
}

TEST(OnnxSequences, BranchesReadAndReturnThem) {
  OnnxGraph yes, no;
  yes.node("SequenceInsert", {"s", "a"}, {"t"}).output("t");
  no.node("SequenceErase", {"s", "last"}, {"u"}).output("u");
  auto g = two().input("c", ElementType::boolean, {});
  g.node("If", {"c"}, {"v"},
         {graph_attribute("then_branch", yes.bytes()), graph_attribute("else_branch", no.bytes())});
  g.node("ConcatFromSequence", {"v"}, {"y"}, {attribute("axis", 0)}).output("y");
  const auto chosen = [&](bool c) {
    return values(run_onnx(g, {floats({2}, {1, 2}), floats({2}, {3, 4}), Tensor::scalar<bool>(c)})[0]);
  };
  EXPECT_EQ(chosen(true), (List{1, 2, 3, 4, 1, 2}));
  EXPECT_EQ(chosen(false), (List{1, 2}));
}

TEST(OnnxSequences, MapsRunOnEachElement) {
  OnnxGraph body;
  body.input("e", ElementType::f32, {"?"}).node("Add", {"e", "b"}, {"o"}).output("o");
  for (const bool listed : {true, false}) {
    auto g = two().initializer("one", index(1));
    if (!listed) g.input("n", ElementType::i64, {}).node("SequenceInsert", {"s", "b", "n"}, {"list"});
    g.node("SequenceMap", {listed ? "s" : "list"}, {"m"}, {graph_attribute("body", body.bytes())});
    g.node("ConcatFromSequence", {"m"}, {"y"}, {attribute("axis", 0)}).output("y");
    std::vector<Tensor> inputs{floats({2}, {1, 2}), floats({2}, {3, 4})};
    if (!listed) inputs.push_back(index(0));
    EXPECT_EQ(values(run_onnx(g, inputs, 17)[0]), listed ? (List{4, 6, 6, 8}) : (List{6, 8, 4, 6, 6, 8}));
  }
}

TEST(OnnxSequences, OptionalsAreKnown) {
  auto g = two();
  g.node("Optional", {"s"}, {"o"}).node("OptionalHasElement", {"o"}, {"has"}).output("has");
  g.node("OptionalGetElement", {"o"}, {"t"}).node("SequenceLength", {"t"}, {"n"}).output("n");
  g.node("Optional", {}, {"nothing"}).node("OptionalHasElement", {"nothing"}, {"hasnt"}).output("hasnt");
  const auto out = run_onnx(g, {floats({2}, {1, 2}), floats({2}, {3, 4})}, 18);
  EXPECT_EQ(values(out[0]), List{1});
  EXPECT_EQ(to_ints(out[1]), Ints{2});
  EXPECT_EQ(values(out[2]), List{0});
  EXPECT_EQ(onnx_refusal(onnx_model(
                two().node("Optional", {}, {"o"}).node("OptionalGetElement", {"o"}, {"y"}).output("y"))),
            "node \"y\" (OptionalGetElement, opset 13): the optional has no value");
}

}  // namespace
}  // namespace lamina::testing
