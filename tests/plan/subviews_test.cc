/// Concat written and Split read in place.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Runs it twice with other inputs and compares; returns the labels of the steps.
std::vector<std::string> labels_of(const std::string& text) {
  const auto g = parse(text);
  std::vector<std::string> labels;
  for (const std::uint64_t seed : {1, 50}) {
    const auto in = random_inputs(g, seed);
    const auto wanted = interpret(g, in);
    const auto got = run_graph(g, in);
    for (std::size_t r = 0; r < wanted.size(); ++r)
      expect_close(got.outputs[r], wanted[r], g.results()[r].name);
    labels = got.labels;
  }
  check_all_offers(g, 7);
  return labels;
}

std::size_t copies(const std::vector<std::string>& labels) {
  return static_cast<std::size_t>(std::count_if(labels.begin(), labels.end(), [](const std::string& l) {
    return l.find("copy") != std::string::npos;
  }));
}

const std::string kTwo =
    "graph (x: f32[1,3,5,4], z: f32[1,4,5,4]) -> (y) {\n a = Softmax(x) axis=3\n b = Softmax(z) axis=3\n";

TEST(Subviews, of_a_concat_are_written_in_their_place) {
  EXPECT_EQ(copies(labels_of(kTwo + " y = Concat(a, b) axis=1\n}\n")), 0u);
  EXPECT_EQ(
      copies(labels_of(kTwo + " c = Concat(a, b) axis=1\n i = const i64[1] {1}\n y = ReduceSum(c, i)\n}\n")),
      0u);
}

TEST(Subviews, that_are_read_elsewhere_too) {
  labels_of(kTwo + " c = Concat(a, b) axis=1\n d = Concat(b, a) axis=1\n y = Add(c, d)\n}\n");
  labels_of(kTwo +
            " c = Concat(a, b, a) axis=1\n r = Relu(a)\n i = const i64[1] {1}\n q = ReduceSum(r, i)\n y = "
            "Add(c, q)\n}\n");
}

TEST(Subviews, that_are_results_inputs_or_constants_are_copied) {
  EXPECT_EQ(copies(labels_of("graph (x: f32[1,3,5,4]) -> (y, a) {\n a = Softmax(x) axis=3\n k = const "
                             "f32[1,2,5,4] seed(1)\n y = Concat(a, x, k) axis=1\n}\n")),
            1u);
}

TEST(Subviews, along_an_axis_that_is_not_the_outermost_are_copied) {
  EXPECT_EQ(
      copies(labels_of("graph (x: f32[2,3,5,4], z: f32[2,4,5,4]) -> (y) {\n a = Softmax(x) axis=3\n b = "
                       "Softmax(z) axis=3\n y = Concat(a, b) axis=1\n}\n")),
      1u);
}

TEST(Subviews, of_parts) {
  EXPECT_EQ(
      copies(labels_of(kTwo + " c = Concat(a, b) axis=1\n d = Softmax(c) axis=3\n e = Concat(c, d) axis=1\n"
                              " f = Softmax(e) axis=2\n y = Concat(e, f) axis=1\n}\n")),
      0u);
}

TEST(Subviews, in_rows_of_wider_channels) {
  const std::string convolutions =
      " w = const f32[24,16,3,3] seed(1)\n v = const f32[40,16,3,3] seed(2)\n"
      " a = Convolution(x, w)\n b = Convolution(x, v)\n c = Concat(a, b) axis=1\n";
  for (const int batch : {1, 3}) {
    const auto head = fmt::format("graph (x: f32[{},16,9,8]) -> (y) {{\n", batch) + convolutions;
    // The inner concat writes into rows of the outer one.
    labels_of(head +
              " p = MaxPool(b) kernel=[1,1] strides=[1,1]\n d = Concat(c, p) axis=1\n"
              " o = const f32[8,104,3,3] seed(3)\n y = Convolution(d, o)\n}\n");
    // A split of channels, concatenated anew.
    labels_of(head +
              " i = const i64[] {1}\n s, t = Split(c, i) num_splits=2\n"
              " p = MaxPool(a) kernel=[1,1] strides=[1,1]\n d = Concat(t, s, p) axis=1\n"
              " o = const f32[8,88,3,3] seed(3)\n y = Convolution(d, o)\n}\n");
  }
}

TEST(Subviews, of_bytes_in_rows_of_wider_channels) {
  const auto depthwise = [](const std::string& y, const std::string& x, int channels, int seed) {
    return fmt::format(
        " w{0} = const i8[{2},1,3,3] seed({3})\n {0} = Convolution({1}, w{0}) pads_begin=[1,1] "
        "pads_end=[1,1] "
        "groups={2} {{\n body graph (r: i32[2,{2},20,18]) -> (q) {{\n t = Convert(r) destination_type=f32\n"
        " m = const f32[] {{0.01}}\n u = Multiply(t, m)\n s = const f32[] {{1}}\n"
        " q = Quantize(u, s) destination_type=u8\n }}\n }}\n",
        y, x, channels, seed);
  };
  EXPECT_EQ(copies(labels_of("graph (x: u8[2,24,20,18]) -> (y) {\n" + depthwise("a", "x", 24, 1) +
                             depthwise("b", "x", 24, 2) + " c = Concat(a, b) axis=1\n" +
                             depthwise("y", "c", 48, 3) + "}\n")),
            0u);
}

TEST(Subviews, of_a_split_are_read_where_they_are) {
  EXPECT_EQ(copies(labels_of(
                "graph (x: f32[1,8,5,4]) -> (y) {\n a = Softmax(x) axis=3\n i = const i64[] {1}\n s, t = "
                "Split(a, i) num_splits=2\n p = Softmax(s) axis=3\n q = Softmax(t) axis=2\n y = Add(p, "
                "q)\n}\n")),
            0u);
  // Overwriting one part must not touch the other.
  labels_of(
      "graph (x: f32[1,8,5,4]) -> (y, z) {\n a = Softmax(x) axis=3\n i = const i64[] {1}\n s, t = Split(a, "
      "i) "
      "num_splits=2\n p = Relu(s)\n y = Add(p, t)\n z = Multiply(t, t)\n}\n");
}

}  // namespace
}  // namespace lamina::testing
