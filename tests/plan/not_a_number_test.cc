/// NaN goes through every offer of every kernel as it goes through the reference.
#include "base/cpu.h"
#include "kernels/epilogue.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// oneDNN's ReLU and clip make a bound of NaN. With AVX2 and more they are behind convolutions and products
/// all the same: without them these would be slower.
bool known_to_lose(const Offer& offer, const std::string& text) {
  return effective_isa() != Isa::sse41 && !offer.label.starts_with("native") &&
         (text.find(" Relu(a)") != std::string::npos || text.find("Clamp(a)") != std::string::npos);
}

void check_not_a_number(const std::string& text) {
  const auto graph = parse(text);
  auto inputs = random_inputs(graph, 1);
  inputs[0].data<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  InterpreterOptions observe;
  observe.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    for (auto& offer : ask_kernels(NodeView(g, id)).offers) {
      if (offer.is_view || offer.stages < epilogue_size(g.node(id)) || known_to_lose(offer, text)) continue;
      const auto got = to_doubles(run_offer(g, id, offer, in)[0]), wanted = to_doubles(out[0]);
      std::size_t lost = 0, made = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        lost += std::isnan(wanted[i]) && !std::isnan(got[i]);
        made += !std::isnan(wanted[i]) && std::isnan(got[i]);
      }
      EXPECT_TRUE(lost == 0 && made == 0) << offer.label << " of " << g.node(id).op.name() << " loses "
                                          << lost << " NaN and makes " << made << ":\n"
                                          << text;
    }
  };
  interpret(graph, inputs, observe);
}

class NotANumber : public ::testing::TestWithParam<const char*> {};

TEST_P(NotANumber, through_convolutions) {
  const std::string stage = GetParam();
  for (const int kernel : {1, 3})
    check_not_a_number(fmt::format(R"(graph (x: f32[1,16,6,6]) -> (y) {{
  w = const f32[16,16,{0},{0}] seed(1)
  y = Convolution(x, w) {{ body graph (a: f32[1,16,{1},{1}]) -> (b) {{ {2} }} }}
}})",
                                   kernel, 7 - kernel, stage));
}

TEST_P(NotANumber, through_grouped_and_transposed_convolutions) {
  const std::string stage = GetParam();
  check_not_a_number(fmt::format(R"(graph (x: f32[1,16,6,6]) -> (y) {{
  w = const f32[16,1,3,3] seed(1)
  y = Convolution(x, w) groups=16 {{ body graph (a: f32[1,16,4,4]) -> (b) {{ {} }} }}
}})",
                                 stage));
  check_not_a_number(fmt::format(R"(graph (x: f32[1,16,6,6]) -> (y) {{
  w = const f32[16,16,2,2] seed(1)
  y = ConvolutionBackpropData(x, w) strides=[2,2] {{ body graph (a: f32[1,16,12,12]) -> (b) {{ {} }} }}
}})",
                                 stage));
}

TEST_P(NotANumber, through_products) {
  const std::string stage = GetParam();
  check_not_a_number(fmt::format(R"(graph (x: f32[5,16]) -> (y) {{
  w = const f32[16,16] seed(1)
  y = MatMul(x, w) {{ body graph (a: f32[5,16]) -> (b) {{ {} }} }}
}})",
                                 stage));
}

TEST_P(NotANumber, through_poolings) {
  const std::string stage = GetParam();
  for (const std::string pool : {"AvgPool", "MaxPool"})
    check_not_a_number(fmt::format(R"(graph (x: f32[1,16,6,6]) -> (y) {{
  y = {}(x) kernel=[2,2] strides=[2,2] {{ body graph (a: f32[1,16,3,3]) -> (b) {{ {} }} }}
}})",
                                   pool, stage));
}

TEST_P(NotANumber, alone) {
  check_not_a_number(fmt::format("graph (a: f32[1,16,6,6]) -> (b) {{ {} }}", GetParam()));
}

TEST(NotANumberElsewhere, other_operators) {
  for (const std::string op :
       {"Softmax(x) axis=1", "Softmax(x) axis=-1", "LogSoftmax(x) axis=1", "LogSoftmax(x) axis=-1",
        "LRN(x, one) size=3", "LayerNormalization(x, scale) axis=-1", "MVN(x, axes)",
        "NormalizeL2(x, axes) eps=0.001", "ReduceMean(x, axes)", "ReduceSum(x, axes)", "ReduceMax(x, axes)",
        "ReduceMin(x, axes)", "ReduceL2(x, axes)", "ReduceMean(x, last)", "ReduceSum(x, last)",
        "ReduceMax(x, last)", "ReduceMin(x, last)", "MaxPool(x) kernel=[3,3]", "AvgPool(x) kernel=[3,3]"})
    check_not_a_number(
        "graph (x: f32[1,16,6,6]) -> (y) {\n one = const i64[1] {1}\n"
        " axes = const i64[2] {2, 3}\n last = const i64[1] {3}\n"
        " scale = const f32[6] seed(2)\n y = " +
        op + "\n}\n");
}

INSTANTIATE_TEST_SUITE_P(All, NotANumber,
                         ::testing::Values("b = Relu(a)", "b = Clamp(a) min=-0.25 max=0.25", "b = Sigmoid(a)",
                                           "b = Tanh(a)", "b = Elu(a) alpha=1", "b = Abs(a)", "b = Sqrt(a)",
                                           "b = HSwish(a)", "b = HSigmoid(a)", "b = Swish(a)", "b = Gelu(a)",
                                           "b = Mish(a)", "b = SoftPlus(a)", "b = Round(a)", "b = Exp(a)",
                                           "b = Negative(a)", "s = const f32[] {0.5}\n b = PRelu(a, s)",
                                           "s = const f32[] {0.5}\n b = Maximum(a, s)",
                                           "s = const f32[] {0.5}\n b = Minimum(s, a)",
                                           "s = const f32[] {0.5}\n b = Multiply(a, s)"));

}  // namespace
}  // namespace lamina::testing
