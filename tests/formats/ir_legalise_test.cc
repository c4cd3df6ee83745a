// What lamina's operators have beyond OpenVINO's, legalised for IR.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/formats/legalised_examples.h"
#include "tests/support/mismatch.h"
#include "tests/support/run_graph.h"
#include "tests/support/written_ir.h"

namespace lamina::testing {
namespace {

TEST(IrLegalise, gives_the_same) {
  for (const int version : {11, 10}) {
    std::uint64_t seed = 0;
    for (const auto text : kLegalisedExamples) {
      SCOPED_TRACE(fmt::format("IR {} of\n{}", version, text));
      const Graph graph = parse(std::string(text));
      try {
        EXPECT_EQ(difference_when_written(graph, {version}, ++seed), "");
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("IR 10 has the operators up to opset8"), std::string::npos)
            << error.what();
      }
    }
  }
}

constexpr std::string_view kPoolingsOfAnySize[] = {
    R"(graph (x: f32[1,2,H,W]) -> (y) {
  y = AvgPool(x) kernel=[3,2] strides=[3,3] pads_begin=[1,1] pads_end=[2,1] rounding_type=ceil_torch
})",
    R"(graph (x: f32[1,2,H,W]) -> (y) {
  y = AvgPool(x) kernel=[3,2] strides=[3,3] pads_begin=[1,1] pads_end=[2,1] rounding_type=ceil_torch exclude-pad=true
})",
    R"(graph (x: f32[1,2,H,W]) -> (y) {
  y = AvgPool(x) kernel=[3,2] strides=[2,3] pads_begin=[1,1] pads_end=[2,1] rounding_type=ceil
})",
    R"(graph (x: f32[1,2,H,8]) -> (y) {
  y = MaxPool(x) kernel=[3,2] strides=[3,3] pads_begin=[1,1] pads_end=[2,1] rounding_type=ceil_torch
})"};

TEST(IrLegalise, poolings_of_unknown_sizes) {
  for (const int version : {11, 10})
    for (const auto text : kPoolingsOfAnySize) {
      SCOPED_TRACE(fmt::format("IR {} of\n{}", version, text));
      const Graph graph = parse(std::string(text));
      const auto again = written_and_read(graph, {version});
      for (const std::int64_t size : {5, 6, 7, 8}) {
        Tensor x(ElementType::f32, {1, 2, size, 8});
        std::iota(x.data<float>().begin(), x.data<float>().end(), 1.0F);
        EXPECT_EQ(mismatch(interpret(again.loaded.graph, {x}).at(0), interpret(graph, {x}).at(0)), "")
            << size;
      }
    }
}

}  // namespace
}  // namespace lamina::testing
