/// Softmax and LogSoftmax along any axis in any layout, against the reference.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

TEST(Softmax, axes_and_sizes) {
  std::uint64_t seed = 0;
  for (const std::string kind : {"Softmax", "LogSoftmax"})
    for (const std::string shape :
         {"1",      "7",     "5,2",    "37,3",    "4,8",       "33,9",     "3,16",
          "3,15",   "3,31",  "2,32",   "3,49",    "2,64",      "3,77",     "3,97",
          "2,113",  "3,128", "3,129",  "70,2",    "35,3",      "67,4",     "2,57",
          "1,1000", "2,3,5", "2,17,4", "1,5,7,9", "2,16,3,20", "1,21,1,1", "2,3,1,4,33"})
      for (int axis = 0; axis < static_cast<int>(std::count(shape.begin(), shape.end(), ',')) + 1; ++axis) {
        SCOPED_TRACE(kind + " " + shape);
        check_all_offers(
            parse(fmt::format("graph (x: f32[{}]) -> (y) {{\n y = {}(x) axis={}\n}}\n", shape, kind, axis)),
            ++seed);
      }
}

/// A sum of floats one after the other would be some percents off.
TEST(Softmax, lines_of_millions) {
  for (const std::string kind : {"Softmax", "LogSoftmax"})
    for (const int axis : {0, 1}) {
      const std::string op = fmt::format("{}(x) axis={}", kind, axis),
                        shape = axis == 0 ? "4000000,2" : "1,4000000";
      const auto g = parse(fmt::format("graph (x: f32[{}]) -> (y) {{\n y = {}\n}}\n", shape, op));
      Tensor x(ElementType::f32, g.type(g.inputs()[0]).shape.sizes());
      for (std::size_t i = 0; i < x.size(); ++i) x.data<float>()[i] = i % 7 == 0 ? 0.15f : 0.1f;
      const auto got = run_graph(g, {x}).outputs[0], wanted = interpret(g, {x})[0];
      EXPECT_NEAR(got.data<float>()[0] / wanted.data<float>()[0], 1, 2e-4) << op;
    }
}

/// Infinities and NaN as the reference has them.
TEST(Softmax, extremes) {
  for (const std::string kind : {"Softmax", "LogSoftmax"})
    for (const int axis : {0, 1}) {
      SCOPED_TRACE(kind);
      check_all_offers(parse(fmt::format("graph (x: f32[6,6]) -> (y) {{\n b = const f32[6,6] {{"
                                         "0, -inf, 3, 100, -100, 88, nan, 1, 2, 3, 4, 5, -inf, -inf, -inf, "
                                         "-inf, -inf, -inf, inf, 0, 1, 2, 3, 4, 1000, 999, 998, 0, 0, 0, "
                                         "-1000, -1001, -1002, -1003, -1004, -1005}}\n"
                                         " y = {}(b) axis={}\n}}\n",
                                         kind, axis)),
                       1);
    }
}

/// Extremes in lines of one to nine vectors, of which some are whole.
TEST(Softmax, extremes_in_long_lines) {
  for (const std::string kind : {"Softmax", "LogSoftmax"})
    for (const int size : {7, 15, 16, 20, 32, 33, 77, 112, 128, 140}) {
      SCOPED_TRACE(fmt::format("{} {}", kind, size));
      std::string values;
      for (const std::string special : {"-inf", "nan", "inf", "-1000", "1000"})
        for (const int at : {0, size / 2, size - 1, -1})
          for (int i = 0; i < size; ++i)
            values +=
                (values.empty() ? "" : ", ") + (i == at || at < 0 ? special : std::to_string(i % 13 - 6));
      check_all_offers(parse(fmt::format("graph (x: f32[1]) -> (y) {{\n b = const f32[20,{}] {{{}}}\n"
                                         " y = {}(b) axis=1\n}}\n",
                                         size, values, kind)),
                       1);
    }
}

}  // namespace
}  // namespace lamina::testing
