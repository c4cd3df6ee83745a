/// What is offered depends on the machine that is given, and not on the one at hand.
#include "base/machine.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

Machine machine_of(Isa level, Features more = {}) {
  Machine m;
  m.features = needed_by(level) | more;
  m.library = level;
  m.here = false;
  return m;
}

std::vector<Graph> nodes() {
  std::vector<Graph> out;
  for (const auto* text :
       {"graph (x: f32[1,64,9,9]) -> (y) {\n w = const f32[32,64,3,3] seed(1)\n y = BinaryConvolution(x, w) "
        "pads_begin=[1,1] pads_end=[1,1] mode=\"xnor-popcount\" pad_value=-1\n}\n",
        "graph (x: f32[1,24,9,9]) -> (y) {\n w = const f32[24,1,3,3] seed(1)\n y = Convolution(x, w) "
        "groups=24\n}\n",
        "graph (x: f32[1,8,20,20]) -> (y) {\n y = MaxPool(x) kernel=[3,3] strides=[1,1]\n}\n",
        "graph (x: f32[1,8,20,20]) -> (y) {\n y = Softmax(x) axis=1\n}\n",
        "graph (x: f32[20,64]) -> (y) {\n w = const f32[64,48] seed(1)\n y = MatMul(x, w)\n}\n"})
    out.push_back(parse(text));
  return out;
}

std::vector<Offer> offers_on(const Graph& g, const Machine& machine) {
  return ask_kernels(NodeView(g, g.order()[0], machine)).offers;
}

TEST(GivenMachine, labels_name_its_instructions) {
  for (const auto level : {Isa::sse41, Isa::avx2, Isa::avx512})
    for (const auto& g : nodes()) {
      const auto machine = machine_of(level);
      for (const auto& offer : offers_on(g, machine)) {
        if (!offer.kernel.starts_with("native.")) continue;
        // Fewer channels may be better in narrower vectors.
        for (const auto other : {Isa::avx2, Isa::avx512})
          if (other > level) {
            EXPECT_EQ(offer.label.find(name_of(other)), std::string::npos)
                << offer.label << " on " << name_of(level);
          }
      }
    }
}

TEST(GivenMachine, words_are_counted_where_it_can) {
  const auto g = nodes()[0];
  const auto counts = [&](const Machine& m) {
    for (const auto& offer : offers_on(g, m))
      if (offer.label.find("vpopcntdq") != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(counts(machine_of(Isa::avx512, {Feature::avx512_vpopcntdq})));
  EXPECT_FALSE(counts(machine_of(Isa::avx512)));
  EXPECT_FALSE(counts(machine_of(Isa::avx2, {Feature::avx512_vpopcntdq})));
}

TEST(GivenMachine, widths_of_vectors_are_its_own) {
  const auto g = nodes()[2];
  const auto plain = [&](Isa level) {
    for (const auto& offer : offers_on(g, machine_of(level)))
      if (offer.label.starts_with("native_maxpool") && offer.inputs[0] == Layout::plain)
        return offer.cost.us();
    return 0.0;
  };
  EXPECT_GT(plain(Isa::sse41), plain(Isa::avx512));
  EXPECT_GT(plain(Isa::avx512), 0);
}

/// Without AVX-512 oneDNN's tanh is slow: lamina's stage comes after the convolution.
TEST(GivenMachine, functions_that_onednn_computes_slowly) {
  for (const std::string stage : {"Tanh(a)", "Gelu(a) approximation_mode=tanh"}) {
    const auto g = parse(
        "graph (x: f32[1,16,9,9]) -> (y) {\n w = const f32[16,16,3,3] seed(1)\n y = "
        "Convolution(x, w) { body graph (a: f32[1,16,7,7]) -> (b) {\n  b = " +
        stage + "\n } }\n}\n");
    for (const auto level : {Isa::sse41, Isa::avx2, Isa::avx512}) {
      std::size_t seen = 0;
      for (const auto& offer : offers_on(g, machine_of(level))) {
        if (!offer.kernel.starts_with("onednn")) continue;
        EXPECT_EQ(offer.label.ends_with("+stages"), level != Isa::avx512) << offer.label;
        ++seen;
      }
      EXPECT_GT(seen, 0U) << name_of(level);
    }
    check_all_offers(g, 1);
  }
}

}  // namespace
}  // namespace lamina::testing
