#include "ops/convolution_depthwise.h"

#include <gtest/gtest.h>

#include "graph/same.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "interpreter/interpreter.h"
#include "op_testing.h"
#include "ops/decompose.h"
#include "ops/operators.h"

namespace lamina {
namespace {

using namespace testing;

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

/// w = 1, b = `bias`, then nine ones with padding; what stands between passes `stage`.
std::string ones_behind(int bias, const std::string& stage) {
  return fmt::format(R"(graph (x: f32[1,1,2,2]) -> (y) {{
  v = const f32[1,1,3,3] fill(1)
  y = ConvolutionDepthwise(x, v) pads_begin=[1,1] pads_end=[1,1] {{
    body graph (r: f32[1,1,2,2]) -> (q) {{
      q = Negative(r)
    }}
    body graph (x: f32[1,1,2,2]) -> (t) {{
      w = const f32[1,1,1,1] fill(1)
      b = const f32[1] fill({})
      t = Convolution(x, w, b) {{
        body graph (a: f32[1,1,2,2]) -> (s) {{
          s = {}(a)
        }}
      }}
    }}
  }}
}}
)",
                     bias, stage);
}

TEST(ConvolutionDepthwise, pads_what_the_first_epilogue_made) {
  const auto zeros = floats({1, 1, 2, 2}, {0, 0, 0, 0});
  // Four of nine taps see 5, the others zeros: not 5, and not sigmoid(0).
  expect_values(interpret(parse(ones_behind(5, "Abs")), {zeros})[0], {1, 1, 2, 2}, {-20, -20, -20, -20});
  expect_values(interpret(parse(ones_behind(0, "Sigmoid")), {zeros})[0], {1, 1, 2, 2}, {-2, -2, -2, -2});
}

TEST(ConvolutionDepthwise, prints_and_parses) {
  const auto g = parse(ones_behind(5, "Abs"));
  EXPECT_EQ(verify(g), Strings{});
  const auto text = print_graph(g, {.self_contained = true}).text;
  EXPECT_EQ(print_graph(parse(text), {.self_contained = true}).text, text);
}

TEST(ConvolutionDepthwise, comes_apart_with_its_epilogue_and_what_that_reads) {
  auto g = parse(R"(graph (x: f32[N,3,7,W], p: f32[N,4,4,?]) -> (y) {
  sources {
    0 "first" "Conv"
    1 "second" "Conv"
  }
  v = const f32[4,1,3,3] seed(1)
  y = ConvolutionDepthwise(x, v, _, p) strides=[2,2] auto_pad=same_upper @"second" from [0, 1] {
    body graph (r: f32[N,4,4,?], p: f32[N,4,4,?]) -> (q) {
      q = Multiply(r, p)
    }
    body graph (x: f32[N,3,7,W]) -> (t) {
      w = const f32[4,3,1,1] seed(2)
      b = const f32[4] seed(3)
      t = Convolution(x, w, b) @"first" from [0]
    }
  }
}
)");
  EXPECT_EQ(verify(g), Strings{});
  const auto before = g;
  const auto nodes = decompose(g, g.order().at(0));
  EXPECT_EQ(verify(g), Strings{});
  EXPECT_EQ(g.node_count(), 2u);
  EXPECT_EQ(g.node(nodes.front()).name, "first");
  EXPECT_EQ(g.node(nodes.back()).name, "second");
  EXPECT_EQ(g.node(nodes.back()).op.as<Convolution>()->groups, 4);
  EXPECT_EQ(g.node(nodes.back()).sources, std::vector<SourceId>{SourceId{1}});
  EXPECT_EQ(g.value(g.results()[0].value).name, "y");
  const std::vector<Tensor> in{counting({2, 3, 7, 5}), counting({2, 4, 4, 3})};
  const auto one = interpret(before, in)[0], two = interpret(g, in)[0];
  EXPECT_TRUE(one.same_as(two));
}

TEST(ConvolutionDepthwise, refuses_what_is_not_two_bodies_and_one_channel_each) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      parse(text);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string start = "graph (x: f32[1,4,5,5]) -> (y) {\n v = const f32[4,1,3,3] seed(1)\n ";
  EXPECT_NE(error(start + "y = ConvolutionDepthwise(x, v)\n}\n").find("0 bodies, wanted 2"),
            std::string::npos);
  const std::string bodies =
      " {\n body graph (r: f32[1,4,3,3]) -> (r) {\n }\n body graph (x: f32[1,4,5,5]) -> (t) {\n t = "
      "Relu(x)\n }\n }\n}\n";
  EXPECT_EQ(error(start + "y = ConvolutionDepthwise(x, v)" + bodies), "");
  EXPECT_NE(error(start + "k = const f32[4,2,3,3] seed(1)\n y = ConvolutionDepthwise(x, k)" + bodies)
                .find("number of input channels of each group"),
            std::string::npos);
  EXPECT_NE(error(start + "k = const f32[8,1,3,3] seed(1)\n y = ConvolutionDepthwise(x, k)" + bodies)
                .find("channels"),
            std::string::npos);
}

}  // namespace
}  // namespace lamina
