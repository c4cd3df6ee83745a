// What lamina's operators have beyond OpenVINO's, spelled out in IR.
#include <gtest/gtest.h>

#include "tests/formats/spelled_examples.h"
#include "tests/support/run_graph.h"
#include "tests/support/written_ir.h"

namespace lamina::testing {
namespace {

TEST(IrSpelling, gives_the_same) {
  for (const int version : {11, 10}) {
    std::uint64_t seed = 0;
    for (const auto text : kSpelledExamples) {
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

}  // namespace
}  // namespace lamina::testing
