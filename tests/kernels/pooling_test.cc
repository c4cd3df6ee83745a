/// Poolings against the reference: odd pads, dilations, roundings, indices, types, layouts.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Integers may differ by one: a mean next to the middle of two levels.
void check_within_one(const Graph& graph, std::uint64_t seed) {
  const auto inputs = random_inputs(graph, seed);
  const auto run = run_graph(graph, inputs);
  for (const auto& label : run.labels)
    EXPECT_TRUE(label != "reference" && label.find("elementwise") == label.npos) << label;
  const auto got = to_doubles(run.outputs[0]), wanted = to_doubles(interpret(graph, inputs)[0]);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_LE(std::fabs(got[i] - wanted[i]), 1) << i;
}

const std::string kWindows[] = {
    "kernel=[2,2] strides=[2,2]",
    "kernel=[3,3] strides=[2,2] pads_begin=[1,1] pads_end=[1,1]",
    "kernel=[3,3] strides=[1,1] pads_begin=[0,2] pads_end=[2,1]",
    "kernel=[3,3] strides=[2,2] rounding_type=ceil",
    "kernel=[3,3] strides=[2,2] rounding_type=ceil pads_begin=[1,1] pads_end=[1,1]",
    "kernel=[2,3] strides=[3,1] dilations=[2,3]",
    "kernel=[3,2] strides=[2,3] dilations=[2,1] pads_begin=[2,1] pads_end=[1,0]",
    "kernel=[5,5] strides=[1,1] pads_begin=[2,2] pads_end=[2,2]",
    "kernel=[2,2] strides=[2,2] auto_pad=same_upper",
    "kernel=[3,3] strides=[2,2] rounding_type=ceil_torch pads_begin=[1,1] pads_end=[1,1]",
    "kernel=[2,2] strides=[1,1] pads_begin=[3,0] pads_end=[0,3]"};

/// Sums of floats one after the other would be a few percent off, and end at 2^24.
TEST(Pooling, means_of_large_windows) {
  for (const std::string tail :
       {"y = AvgPool(x) kernel=[1000,1000]", "y = AvgPool(x) kernel=[998,999]",
        "a = const i64[2] {2, 3}\n y = ReduceMean(x, a) keep_dims=true",
        "s = const i64[3] {1, -1, 1000000}\n r = Reshape(x, s)\n y = AvgPool(r) kernel=[999999]"})
    for (const int channels : {1, 5}) {
      const auto g =
          parse(fmt::format("graph (x: f32[1,{},1000,1000]) -> (y) {{\n {}\n}}\n", channels, tail));
      Tensor x(ElementType::f32, g.type(g.inputs()[0]).shape.sizes());
      std::ranges::fill(x.data<float>(), 0.1f);
      for (std::uint64_t any_kernels = 0; any_kernels < 6; ++any_kernels) {
        ProgramOptions options;
        options.any_kernels = any_kernels;
        Runner runner(std::make_shared<Program>(g, options, std::make_shared<ModelWeights>()));
        runner.set_input(0, x);
        runner.run();
        EXPECT_NEAR(runner.output(0).data<float>()[0], 0.1, 1e-5)
            << tail << " " << runner.plans()[0]->steps.back().label;
      }
    }
}

/// Rows of large windows are found in pieces; some begin or end among windows that reach into the pads.
TEST(Pooling, rows_in_pieces) {
  std::uint64_t seed = 50;
  for (const std::string kind : {"MaxPool(x)", "AvgPool(x) exclude-pad=true"})
    for (const auto& [shape, window] : std::vector<std::pair<std::string, std::string>>{
             {"1,1,300,703", "kernel=[300,400]"},
             {"1,1,300,1203", "kernel=[300,400] strides=[1,2] pads_begin=[0,399] pads_end=[0,7]"},
             {"1,1,300,1303", "kernel=[300,200] dilations=[1,3] pads_begin=[0,9] pads_end=[0,90]"},
             {"1,17,100,401", "kernel=[100,200] pads_begin=[0,150] pads_end=[0,30]"}})
      check_kernels(fmt::format("graph (x: f32[{}]) -> (y) {{\n y = {} {}\n}}\n", shape, kind, window),
                    ++seed);
}

TEST(Pooling, windows) {
  std::uint64_t seed = 0;
  for (const std::string kind : {"MaxPool", "AvgPool", "AvgPool exclude-pad=true"})
    for (const std::string shape : {"1,1,9,8", "2,3,7,57", "1,16,9,11", "1,20,12,7"})
      for (const auto& w : kWindows) {
        const auto space = kind.find(' ');
        check_kernels(
            fmt::format("graph (x: f32[{}]) -> (y) {{\n y = {}(x) {}{}\n}}\n", shape, kind.substr(0, space),
                        w, space == std::string::npos ? "" : kind.substr(space)),
            ++seed);
      }
}

TEST(Pooling, channels_and_types) {
  std::uint64_t seed = 100;
  for (const int c : {1, 3, 4, 5, 8, 9, 15, 17, 24, 33, 64, 70, 130})
    for (const std::string type : {"f32", "u8", "i8"})
      check_kernels(
          fmt::format("graph (x: {}[1,{},7,6]) -> (y) {{\n y = MaxPool(x) kernel=[3,3] strides=[2,1] "
                      "pads_begin=[1,0] pads_end=[0,1]\n}}\n",
                      type, c),
          ++seed);
  for (const std::string type : {"i32", "i64", "f64", "i16"})
    check_kernels(
        fmt::format("graph (x: {}[2,5,7,6]) -> (y) {{\n y = MaxPool(x) kernel=[3,3] strides=[2,1]\n}}\n",
                    type),
        ++seed);
}

/// Lines of 8 bits: shorter than a vector, as long, longer; strides with loops of their own and without.
TEST(Pooling, lines_of_integers) {
  std::uint64_t seed = 150;
  for (const std::string type : {"u8", "i8"})
    for (const int columns : {1, 5, 9, 17, 33, 70, 131, 300})
      for (const auto& w : kWindows) {
        const auto graph = parse(
            fmt::format("graph (x: {}[2,3,9,{}]) -> (y) {{\n y = MaxPool(x) {}\n}}\n", type, columns + 8, w));
        check_all_offers(graph, ++seed);
      }
}

/// Sums of up to 257 numbers stay in 16 bits, larger ones go on in 32.
TEST(Pooling, means_of_integers) {
  std::uint64_t seed = 700;
  const auto check = [&](const std::string& x, const std::string& tail) {
    const auto graph = parse(fmt::format("graph (x: {}) -> (y) {{\n{}\n}}\n", x, tail));
    SCOPED_TRACE(print_graph(graph).text);
    check_all_offers(graph, ++seed);
    for (const auto& label : run_graph(graph, random_inputs(graph, seed)).labels)
      EXPECT_NE(label, "reference");
  };
  for (const std::string type : {"u8", "i8"}) {
    for (const std::string pad : {"", " exclude-pad=true"})
      for (const auto& w : kWindows)
        for (const int channels : {3, 8, 21, 64})
          check(fmt::format("{}[2,{},9,8]", type, channels),
                fmt::format("y = AvgPool(x) {} sums=f32{}", w, pad));
    for (const int channels : {1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 128, 200, 515})
      check(fmt::format("{}[1,{},5,7]", type, channels),
            "y = AvgPool(x) kernel=[3,2] strides=[2,1] sums=f32");
    for (const std::string size : {"16,16", "257,1", "43,6", "64,65"})
      check(fmt::format("{}[1,36,{}]", type, size), fmt::format("y = AvgPool(x) kernel=[{}] sums=f32", size));
    check(type + "[2,20,9,8]", "s = const i64[2] {3, 5}\n y = AdaptiveAvgPool(x, s) sums=f32");
    check(type + "[1,20,40]", "y = AvgPool(x) kernel=[3] strides=[2] sums=f32");
    check(type + "[1,20,4,5,6]", "y = AvgPool(x) kernel=[2,3,2] sums=f32");
  }
}

/// The largest sums: all numbers at an end of their range.
TEST(Pooling, means_of_the_largest_integers) {
  for (const auto type : {ElementType::u8, ElementType::i8})
    for (const double number : {-128, 127, 255}) {
      const auto graph =
          parse(fmt::format("graph (x: {}[1,40,90,50]) -> (y) {{\n y = AvgPool(x) kernel=[90,50] "
                            "sums=f32\n}}\n",
                            name_of(type)));
      const Dims dims{1, 40, 90, 50};
      const auto x = from_doubles(type, dims, std::vector<double>(element_count(dims), number));
      const auto wanted = to_doubles(x)[0];
      for (const double y : to_doubles(run_graph(graph, {x}).outputs[0])) ASSERT_EQ(y, wanted);
    }
}

TEST(Pooling, means_of_integers_to_integers) {
  std::uint64_t seed = 800;
  for (const std::string type : {"u8", "i8"})
    for (const std::string shape : {"1,3,5,7", "2,16,6,5", "1,130,4,70", "1,4000,3,4"}) {
      auto graph = parse(fmt::format(
          "graph (x: {0}[{1}]) -> (y) {{\n s = const f32[] {{0.5}}\n t = const f32[] {{0.3}}\n z = const "
          "{0}[] {{20}}\n d = Dequantize(x, s, z)\n p = AvgPool(d) kernel=[3,3] strides=[1,1] "
          "pads_begin=[1,1] pads_end=[1,1] exclude-pad=true\n y = Quantize(p, t, z) "
          "destination_type={0}\n}}\n",
          type, shape));
      Ledger ledger;
      optimize(graph, {}, ledger);
      EXPECT_EQ(graph.node_count(), 1u) << print_graph(graph).text;
      check_within_one(graph, ++seed);
    }
}

TEST(Pooling, one_and_three_dimensions) {
  std::uint64_t seed = 200;
  for (const std::string kind : {"MaxPool", "AvgPool"}) {
    check_kernels("graph (x: f32[2,5,30]) -> (y) {\n y = " + kind +
                      "(x) kernel=[3] strides=[2] pads_begin=[1] "
                      "pads_end=[1]\n}\n",
                  ++seed);
    check_kernels("graph (x: f32[1,6,5,8,9]) -> (y) {\n y = " + kind +
                      "(x) kernel=[2,3,3] strides=[1,2,2] "
                      "pads_begin=[1,0,1] pads_end=[0,1,1]\n}\n",
                  ++seed);
  }
}

TEST(Pooling, indices) {
  std::uint64_t seed = 300;
  for (const std::string type : {"f32", "u8", "i64"})
    for (const std::string more : {"", " axis=2", " index_element_type=i32", " storage_order=1 axis=0"})
      for (const auto& w : kWindows)
        check_kernels(
            fmt::format("graph (x: {}[2,3,9,8]) -> (y, i) {{\n y, i = MaxPool(x) {}{}\n}}\n", type, w, more),
            ++seed);
}

TEST(Pooling, adaptive) {
  std::uint64_t seed = 400;
  for (const std::string shape : {"1,3,9,8", "2,16,7,13", "1,5,3,2"})
    for (const std::string out : {"1, 1", "3, 4", "7, 2", "9, 13"}) {
      check_kernels(
          fmt::format(
              "graph (x: f32[{}]) -> (y) {{\n s = const i64[2] {{{}}}\n y = AdaptiveAvgPool(x, s)\n}}\n",
              shape, out),
          ++seed);
      check_kernels(
          fmt::format("graph (x: f32[{}]) -> (y, i) {{\n s = const i64[2] {{{}}}\n y, i = AdaptiveMaxPool(x, "
                      "s)\n}}\n",
                      shape, out),
          ++seed);
    }
}

TEST(Pooling, epilogues) {
  std::uint64_t seed = 500;
  for (const std::string kind : {"MaxPool", "AvgPool"})
    for (const int c : {3, 16})
      check_kernels(
          fmt::format(
              "graph (x: f32[1,{0},9,8]) -> (y) {{\n y = {1}(x) kernel=[3,3] strides=[1,1] {{\n body graph "
              "(p: f32[1,{0},7,6]) -> (r) {{\n g = const f32[{0},1,1] seed(3)\n s = Multiply(p, g)\n r = "
              "Relu(s)\n }}\n }}\n}}\n",
              c, kind),
          ++seed);
}

/// Stages whose results have another size go through pieces: lines longer than one, channels of a few pieces.
TEST(Pooling, epilogues_to_integers) {
  std::uint64_t seed = 550;
  for (const std::string kind : {"MaxPool", "AvgPool"})
    for (const std::string shape :
         {"1,3,5,7", "2,16,6,5", "1,1,4,5000", "1,130,4,70", "1,4000,3,4", "1,9,40"})
      for (const std::string type : {"u8", "i8"}) {
        const bool line = shape == "1,9,40";
        auto graph = parse(fmt::format(
            "graph (x: f32[{0}]) -> (y) {{\n s = const f32[] {{0.015}}\n z = const {2}[] {{20}}\n p = {1}(x) "
            "kernel={3} strides={4} pads_begin={4} pads_end={4}\n r = Abs(p)\n y = Quantize(r, s, z) "
            "destination_type={2}\n}}\n",
            shape, kind, type, line ? "[3]" : "[3,3]", line ? "[1]" : "[1,1]"));
        Ledger ledger;
        optimize(graph, {}, ledger);
        EXPECT_EQ(graph.node_count(), 1u);
        SCOPED_TRACE(print_graph(graph).text);
        check_within_one(graph, ++seed);
      }
}

TEST(Pooling, quantise_steps) {
  std::uint64_t seed = 590;
  for (const std::string kind : {"MaxPool", "AvgPool"})
    for (const std::string range : {"[] {1}", "[1,6,1,1] {1, 2, 3, 1, 2, 0.5}"}) {
      auto graph =
          parse(fmt::format("graph (x: f32[2,6,9,8]) -> (y) {{\n l = const f32[] {{-2}}\n h = const f32{1}\n "
                            "p = {0}(x) kernel=[2,2] "
                            "strides=[2,1]\n y = FakeQuantize(p, l, h, l, h) levels=1024\n}}\n",
                            kind, range));
      Ledger ledger;
      optimize(graph, {}, ledger);
      EXPECT_EQ(graph.node_count(), 1u);
      const auto inputs = random_inputs(graph, ++seed);
      const auto run = run_graph(graph, inputs);
      for (const auto& label : run.labels) EXPECT_EQ(label.find("elementwise"), label.npos) << label;
      const auto got = to_doubles(run.outputs[0]), wanted = to_doubles(interpret(graph, inputs)[0]);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 6.0 / 1023);
    }
}

TEST(Pooling, windows_far_larger_than_the_picture) {
  for (const char* kernel : {"[1,2147483647]", "[1073741824,4]"})
    check_all_offers(parse("graph (x: f32[1,3,4,6]) -> (y) {\n y = AvgPool(x) kernel=" + std::string(kernel) +
                           " auto_pad=same_upper exclude-pad=false\n}\n"),
                     1);
}

TEST(Pooling, large_on_threads) {
  check_kernels(
      "graph (x: f32[1,32,80,90]) -> (y) {\n y = MaxPool(x) kernel=[3,3] strides=[2,2] dilations=[2,2]\n}\n",
      600);
  check_kernels(
      "graph (x: f32[2,3,200,300]) -> (y) {\n y = AvgPool(x) kernel=[3,3] strides=[1,1] pads_begin=[1,1] "
      "pads_end=[1,1]\n}\n",
      601);
}

/// A sum in f32 of as many positions would be off by percents: the numbers get lost beside it.
TEST(Pooling, means_of_large_windows_on_every_offer) {
  for (const std::string shape : {"1,9,1024,1024", "1,3,64,20000", "1,16,1,1000000"}) {
    const auto dims = shape.substr(shape.find(',', 2) + 1);
    for (const std::string pool :
         {"AvgPool(x) strides=[1,1] kernel=", "AvgPool(x) strides=[2,2] kernel=", "AdaptiveAvgPool(x, s)"})
      check_all_offers(parse("graph (q: f32[1]) -> (y) {\n x = const f32[" + shape +
                             "] fill(0.1)\n s = const i64[2] {1, 1}\n y = " + pool +
                             (pool.back() == '=' ? "[" + dims + "]" : "") + "\n}\n"),
                       1);
  }
}

}  // namespace
}  // namespace lamina::testing
