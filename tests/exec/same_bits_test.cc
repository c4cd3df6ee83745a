/// Threads take pieces of loops as they come: results must not depend on who took what.
#include <cstring>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

const char* const kGraphs[] = {
    ("graph (x: f32[1,16,96,96]) -> (y) {\n w = const f32[32,16,3,3] seed(1)\n v = const f32[32,1,3,3] "
     "seed(2)\n c = "
     "Convolution(x, w) pads_begin=[1,1] pads_end=[1,1]\n h = HSwish(c)\n d = Convolution(h, v) groups=32\n "
     "y "
     "= "
     "Swish(d)\n}\n"),
    ("graph (x: f32[64,3000]) -> (a, b, c) {\n z = const i64[2] {0,1}\n o = const i64[1] {1}\n a = "
     "ReduceSum(x, z)\n b = "
     "Softmax(x) axis=1\n c = MVN(x, o)\n}\n"),
    ("graph (x: f32[300,257]) -> (y) {\n w = const f32[257,513] seed(1)\n m = MatMul(x, w)\n e = Exp(m)\n y "
     "= "
     "Tanh(e)\n}\n"),
    ("graph (x: f32[2,8,70,64]) -> (y) {\n y = ScaledDotProductAttention(x, x, x)\n}\n"),
};

TEST(SameBits, whoever_takes_which_piece) {
  for (const auto* text : kGraphs) {
    const auto g = parse(text);
    ProgramOptions options;
    options.threads = 4;
    Runner runner(std::make_shared<Program>(g, options, std::make_shared<ModelWeights>()));
    runner.set_input(0, random_inputs(g, 3)[0]);
    std::vector<Tensor> first;
    for (int round = 0; round < 30; ++round) {
      runner.run();
      for (std::size_t r = 0; r < g.results().size(); ++r) {
        const auto& now = runner.output(r);
        if (round == 0) first.push_back(now.clone());
        EXPECT_EQ(std::memcmp(now.raw(), first[r].raw(), now.bytes()), 0) << text << "result " << r;
      }
    }
  }
}

}  // namespace
}  // namespace lamina::testing
