/// Kernels that take only the first stages of an epilogue, and the later ones behind them in the same step.
#include "base/cpu.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Offers of the graph's first node with all of its stages, by name.
std::vector<std::string> labels_of_first(const Graph& graph) {
  std::vector<std::string> out;
  for (const auto& offer : ask_kernels(NodeView(graph, graph.order()[0])).offers)
    if (offer.stages == SIZE_MAX) out.push_back(offer.label);
  return out;
}

bool one_ends_with(const std::vector<std::string>& labels, const std::string& end) {
  return std::any_of(labels.begin(), labels.end(), [&](const auto& l) { return l.ends_with(end); });
}

/// oneDNN has kernels with such stages from `least` on.
void check(const std::string& text, Isa least = Isa::avx2) {
  const auto graph = parse(text);
  const bool less_there = effective_isa() < least;
  EXPECT_TRUE(less_there || one_ends_with(labels_of_first(graph), "+stages")) << text;
  for (std::uint64_t seed = 1; seed < 5; ++seed) check_all_offers(graph, seed);
}

TEST(LaterStages, behind_a_convolution) {
  for (const int size : {4, 9, 40})
    for (const int channels : {1, 7, 16, 33})
      check(fmt::format(R"(graph (x: f32[2,16,{0},{0}]) -> (y) {{
  w = const f32[{1},16,3,3] seed(1)
  y = Convolution(x, w) pads_begin=[1,1] pads_end=[1,1] {{ body graph (a: f32[2,{1},{0},{0}]) -> (d) {{
    s = const f32[{1},1,1] seed(2)
    b = Relu(a)
    c = Erf(b)
    d = Multiply(s, c)
  }} }}
}})",
                        size, channels));
}

TEST(LaterStages, a_tensor_that_the_later_ones_read) {
  for (const int size : {5, 24})
    check(fmt::format(R"(graph (x: f32[1,8,{0},{0}], r: f32[1,12,{0},{0}]) -> (y) {{
  w = const f32[12,8,1,1] seed(1)
  y = Convolution(x, w, _, _, _, r, r) {{ body graph (a: f32[1,12,{0},{0}], p: f32[1,12,{0},{0}], q: f32[1,12,{0},{0}]) -> (e) {{
    b = Add(a, p)
    c = Erf(b)
    d = Multiply(q, c)
    e = Tanh(d)
  }} }}
}})",
                      size));
}

TEST(LaterStages, behind_products_and_poolings) {
  check(R"(graph (x: f32[3,5,16]) -> (y) {
  w = const f32[16,20] seed(1)
  y = MatMul(x, w) { body graph (a: f32[3,5,20]) -> (c) {
    s = const f32[20] seed(2)
    b = Erf(a)
    c = Subtract(s, b)
  } }
})",
        Isa::avx512);
  check(R"(graph (x: f32[1,16,9,9]) -> (y) {
  y = AvgPool(x) kernel=[3,3] { body graph (a: f32[1,16,7,7]) -> (b) {
    b = Swish(a)
  } }
})");
}

/// Results that lie in rows of a wider tensor's channels.
TEST(LaterStages, parts_of_a_concat) {
  const auto branch = [](int i) {
    return fmt::format(R"(  w{0} = const f32[20,16,3,3] seed({0})
  y{0} = Convolution(x, w{0}) {{ body graph (a: f32[1,20,10,10]) -> (c) {{
    l = const f32[] {{-1}}
    h = const f32[] {{1}}
    b = Relu(a)
    c = FakeQuantize(b, l, h, l, h) levels=16
  }} }}
)",
                       i);
  };
  const auto graph = parse("graph (x: f32[1,16,12,12]) -> (y) {\n" + branch(1) + branch(2) +
                           "  y = Concat(y1, y2) axis=1\n}");
  for (std::uint64_t seed = 1; seed < 4; ++seed) check_all_offers(graph, seed);
}

/// Elements of other sizes: what the kernel makes waits in scratch memory.
TEST(LaterStages, to_integers) {
  const auto graph = parse(R"(graph (x: f32[1,16,9,9]) -> (y) {
  y = MaxPool(x) kernel=[3,3] { body graph (a: f32[1,16,7,7]) -> (b) {
    s = const f32[] {0.125}
    b = Quantize(a, s)
  } }
})");
  check_all_offers(graph, 1);
  for (const std::string stage :
       {"b = Quantize(a, s)", "b = Convert(a) destination_type=f64", "b = Greater(a, s)"})
    check(fmt::format(R"(graph (x: f32[1,16,9,9]) -> (y) {{
  w = const f32[20,16,3,3] seed(1)
  y = Convolution(x, w) {{ body graph (a: f32[1,20,7,7]) -> (b) {{
    s = const f32[] {{0.125}}
    {}
  }} }}
}})",
                      stage));
}

}  // namespace
}  // namespace lamina::testing
