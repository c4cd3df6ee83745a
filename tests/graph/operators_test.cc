/// The text form with the real operators.
#include "ops/operators.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/text.h"
#include "graph/verify.h"

namespace lamina {
namespace {

TEST(Operators, AttributesHaveNamesOfTheirOwn) {
  for (const auto& name : operators().names()) {
    std::set<std::string> seen;
    for (const auto& a : operators().find(name)->attributes()) {
      EXPECT_FALSE(a.name.empty()) << name;
      EXPECT_TRUE(seen.insert(a.name).second) << name << " " << a.name;
    }
    EXPECT_TRUE(operators().find(name)->changed_attributes().empty()) << name;
    EXPECT_EQ(operators().find(name)->info().name, name);
  }
}

TEST(Operators, SmallGraphPrints) {
  const auto g = parse_graph(R"(graph (x: f32[1,8,N,56]) -> (y) {
  w = const f32[16,8,3,3] seed(1)
  c = Convolution(x, w) strides=[1,1] pads_begin=[1,1] pads_end=[1,1]
  y = Relu(c)
}
)",
                             operators());
  EXPECT_EQ(verify(g), Strings{});
  const auto printed = print_graph(g);
  EXPECT_EQ(printed.text, R"(graph (x: f32[1,8,N,56]) -> (y) {
  w = const f32[16,8,3,3] data(0)
  c: f32[1,16,?,56] = Convolution(x, w) strides=[1,1] pads_begin=[1,1] pads_end=[1,1]
  y: f32[1,16,?,56] = Relu(c)
}
)");
  EXPECT_EQ(print_graph(parse_graph(printed.text, operators(), printed.data)).text, printed.text);
}

TEST(Operators, MisspeltNames) {
  try {
    parse_graph("graph (x: f32[1]) -> (y) {\n  y = MaxPol(x)\n}", operators());
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "line 2: operator \"MaxPol\" is not known, did you mean \"MaxPool\"?");
  }
}

}  // namespace
}  // namespace lamina
